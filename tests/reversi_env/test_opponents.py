"""Random, greedy and positional play: their favorites by the rule book, ties drawn evenly, passes and ends."""

import numpy as np
import pytest

from reversi_env import Position, Variant, random_games
from reversi_env.geometry import SIZES
from reversi_env.opponents import BASELINES, square_weights
from reversi_env.playouts import NO_MOVE
from reversi_env.variant import GOALS
from tests import oracle

VARIANTS = [
    *(Variant(size=size, goal=goal) for size in SIZES for goal in GOALS),
    Variant(start="parallel"),
    Variant(start="free"),
]


def middle_games(variant: Variant, num_games: int = 2) -> list[Position]:
    """Returns the positions of random games in which the side to move has a square."""
    positions = []
    for game in random_games(Position(variant), num_games, seed=5).moves:
        position = Position(variant)
        for move in game[game != NO_MOVE]:
            if not position.must_pass:
                positions.append(position)
            position = position.play(move)
    return positions


def favorites(name: str, position: Position) -> set[int]:
    """Returns the moves that are best by the rule book and the player's own measure."""
    board, side, variant = list(position.board), position.side, position.variant
    free = variant.start == "free"
    weights: list[int] = square_weights(variant.size).tolist()
    sign = -1 if variant.goal == "fewest" else 1

    def worth(square: int) -> int:
        if name == "greedy":
            return sign * len(oracle.flips(board, side, square, free))
        after = oracle.play(board, side, square, free)
        owners = {side: 1, oracle.other(side): -1, oracle.EMPTY: 0}
        return sign * sum(owners[cell] * weight for cell, weight in zip(after, weights, strict=True))

    squares = oracle.legal_squares(board, side, free)
    if name == "random":
        return set(squares)
    best = max(map(worth, squares))
    return {square for square in squares if worth(square) == best}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_plays_one_of_its_favorites_by_the_oracle(name: str, variant: Variant) -> None:
    rng = np.random.default_rng(3)
    for position in middle_games(variant):
        assert BASELINES[name](position, rng) in favorites(name, position)


@pytest.mark.parametrize("name", BASELINES)
def test_all_favorites_are_equally_likely(name: str) -> None:
    num_draws = 6000
    several = [position for position in middle_games(Variant(size=6), 4) if len(favorites(name, position)) > 1]
    assert len(several) > 10
    for position in several:
        moves, counts = np.unique(choices(name, position, num_draws), return_counts=True)
        assert set(moves.tolist()) == favorites(name, position)
        share = 1 / len(moves)
        five_deviations = 5 * (num_draws * share * (1 - share)) ** 0.5
        assert np.abs(counts - num_draws * share).max() < five_deviations


def choices(name: str, position: Position, num_games: int) -> np.ndarray:
    """Returns what the opponent chooses in many games that stand alike but draw differently."""
    board = [position.player, position.opponent, position.legal]
    boards = np.array([board] * num_games, np.uint64)
    is_black = np.full(num_games, position.is_black_to_move)
    moves = np.empty(num_games, np.int64)
    rng_state = np.random.default_rng(3).integers(0, 1 << 64, num_games, np.uint64)
    BASELINES[name].choose(position.variant, boards, is_black, rng_state, moves)
    return moves


@pytest.mark.parametrize("name", BASELINES)
def test_equal_generators_play_equal_games(name: str) -> None:
    def game(seed: int) -> list[int]:
        rng, position, moves = np.random.default_rng(seed), Position(), []
        while not position.is_over:
            moves.append(BASELINES[name](position, rng))
            position = position.play(moves[-1])
        return moves

    assert game(1) == game(1)
    assert len({tuple(game(seed)) for seed in range(4)}) > 1


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_passes_when_it_must_and_refuses_a_finished_game(name: str) -> None:
    rng = np.random.default_rng(0)
    assert BASELINES[name](Position.from_text("OX-------------- X"), rng) == 16
    with pytest.raises(ValueError, match="the game is over"):
        BASELINES[name](Position.from_text("XXXX------------ X"), rng)


def test_in_anti_reversi_a_corner_is_the_last_choice_of_positional() -> None:
    board = "-OX- ---- -XO- ---- X"
    most, fewest = (Position.from_text(board, Variant(size=4, goal=goal)) for goal in GOALS)
    rng = np.random.default_rng(0)
    assert {BASELINES["positional"](most, rng) for _ in range(20)} == {0}
    assert len(fewest.legal_moves) > 1
    assert 0 not in {BASELINES["positional"](fewest, rng) for _ in range(20)}


@pytest.mark.parametrize("size", SIZES)
def test_weights_are_symmetric_and_highest_in_the_corners(size: int) -> None:
    weights = square_weights(size)
    assert weights.shape == (size * size,)
    for k in range(8):
        assert oracle.symmetry(weights.tolist(), k) == weights.tolist()
    assert set(np.flatnonzero(weights == weights.max())) == {0, size - 1, size * (size - 1), size * size - 1}
    assert weights[size + 1] == weights.min()


def test_weights_cannot_be_changed_by_their_reader() -> None:
    with pytest.raises(ValueError, match="read-only"):
        square_weights(8)[0] = 0
