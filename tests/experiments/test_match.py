"""Matches: pairs, openings, passes, randomness, records; and players that break the rules."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import agents
from agents.agent import Agent, Decision
from experiments.match import (
    OPENING_PLIES,
    Match,
    MatchError,
    PlayedGame,
    claimed,
    draw_openings,
    play_match,
    save_games,
)
from reversi_env import Game, Position, Variant
from reversi_env.naming import UsageError
from tests import oracle

SMALL = Variant.named("othello-6x6")
RANDOM, GREEDY = agents.make("random"), agents.make("greedy")


class FirstMove(Agent):
    """Plays the first legal move, and keeps what it was asked."""

    name = "first"

    def __init__(self) -> None:
        self.asked: list[Position] = []

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        self.asked.append(position)
        return Decision(position.legal_moves[0])


class Scripted(Agent):
    """Does in every position what it is told."""

    name = "scripted"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]  # some of what it is told is wrong


class Backwards(Agent):
    """Plays at random, working through a batch from its end."""

    name = "backwards"

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        return Decision(int(rng.choice(position.legal_moves)))

    def select_batch(self, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> list[Decision]:
        return super().select_batch(positions[::-1], rngs[::-1])[::-1]


class OneByOne(Backwards):
    """Plays as `Backwards`, working through a batch from its start."""

    def select_batch(self, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> list[Decision]:
        return Agent.select_batch(self, positions, rngs)


def untimed(match: Match) -> list[PlayedGame]:
    return [replace(game, black="", white="", black_cpu_s=0, white_cpu_s=0) for game in match.games]


def replay(game: PlayedGame, variant: Variant) -> int:
    """Returns black's score, by the oracle."""
    free = variant.start == "free"
    board, side = oracle.start_board(variant.size, variant.start), oracle.BLACK
    names = [game.moves[start : start + 2] for start in range(0, len(game.moves), 2)]
    for name in names:
        if oracle.must_pass(board, side, free):
            side = oracle.other(side)
        square = "abcdefgh".index(name[0]) + variant.size * (int(name[1]) - 1)
        board, side = oracle.play(board, side, square, free), oracle.other(side)
    assert oracle.is_over(board, free)
    return oracle.score(board, oracle.BLACK, variant.goal, variant.scoring)


@pytest.mark.parametrize("name", ["othello-4x4", "othello-6x6", "anti-reversi", "reversi-1883"])
def test_recorded_games_are_whole_and_scored_as_the_oracle_does(name: str) -> None:
    variant = Variant.named(name)
    for game in play_match(RANDOM, GREEDY, variant, 6, seed=2).games:
        assert game.black_score == replay(game, variant)
        assert game.moves.startswith(game.opening)
        assert game.variant == name


def test_every_opening_is_played_twice_with_colors_swapped() -> None:
    match = play_match(RANDOM, GREEDY, SMALL, 10, seed=1)
    for even, odd in zip(match.games[::2], match.games[1::2], strict=True):
        assert even.opening == odd.opening
        assert (even.black, even.white) == (odd.white, odd.black) == ("random", "greedy")
    assert match.num_openings == 5


def test_counts_are_the_first_players() -> None:
    match = play_match(RANDOM, GREEDY, SMALL, 20, seed=1)
    results = [(game.black_score > 0) - (game.black_score < 0) for game in match.games]
    of_first = [
        result if game.black == "random" else -result for game, result in zip(match.games, results, strict=True)
    ]
    assert (match.wins, match.draws, match.losses) == (of_first.count(1), of_first.count(0), of_first.count(-1))
    assert match.pair_points.sum() == match.wins + match.draws / 2
    assert match.pair_points.shape == (10,)


def test_fewest_discs_win_anti_reversi() -> None:
    for game in play_match(RANDOM, GREEDY, Variant.named("anti-reversi"), 4, seed=1).games:
        final = Game.from_transcript(game.moves, "anti-reversi").position
        assert game.black_score == final.num_white - final.num_black


def test_one_seed_gives_one_match_and_another_seed_another() -> None:
    first, again, other = (play_match(RANDOM, GREEDY, SMALL, 6, seed=seed) for seed in (5, 5, 6))
    assert untimed(first) == untimed(again) != untimed(other)


def test_result_does_not_depend_on_the_order_in_a_batch() -> None:
    assert untimed(play_match(Backwards(), GREEDY, SMALL, 8, 1)) == untimed(play_match(OneByOne(), GREEDY, SMALL, 8, 1))


def test_a_game_does_not_depend_on_the_games_beside_it() -> None:
    few, many = (play_match(RANDOM, RANDOM, SMALL, num_games, seed=1) for num_games in (4, 12))
    assert untimed(few) == untimed(many)[:4]


def test_a_player_against_itself_takes_half_of_every_pair_when_it_draws_no_lots() -> None:
    player = FirstMove()
    assert set(play_match(player, player, SMALL, 20, seed=1).pair_points) == {1.0}


def test_nobody_is_asked_to_pass() -> None:
    player = FirstMove()
    match = play_match(player, player, Variant.named("othello-4x4"), 24, seed=1)
    assert any(Game.from_transcript(game.moves, match.variant).moves.count(16) for game in match.games)
    assert not any(position.must_pass for position in player.asked)


def test_all_games_advance_together() -> None:
    sizes = []

    class Counting(FirstMove):
        def select_batch(self, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> list[Decision]:
            sizes.append(len(positions))
            return super().select_batch(positions, rngs)

    play_match(Counting(), RANDOM, SMALL, 40, seed=1)
    assert sizes[0] == 1  # what is compiled at a first move is no thinking
    assert sizes[1] >= 20
    assert len(sizes) < 40


def test_progress_ends_with_all_games() -> None:
    told: list[tuple[int, int]] = []
    play_match(
        RANDOM, GREEDY, SMALL, 4, seed=1, progress=lambda finished, num_games: told.append((finished, num_games))
    )
    assert told == sorted(told)
    assert told[-1] == (4, 4)


@pytest.mark.parametrize("name", Variant.NAMES)
def test_openings_are_legal_different_and_unfinished(name: str) -> None:
    variant = Variant.named(name)
    num_openings = 12 if variant.size == 4 else 60
    openings = draw_openings(variant, num_openings, seed=1)
    positions = {Game.from_moves(opening, variant).position for opening in openings}
    assert len(positions) == num_openings
    assert not any(position.is_over for position in positions)
    assert {len(opening) for opening in openings} == {OPENING_PLIES[variant.size]}


def test_openings_come_round_again_where_there_are_too_few() -> None:
    openings = draw_openings(Variant.named("othello-4x4"), 30, seed=1, plies=1)
    assert len(set(openings)) == 4
    assert openings[:4] == openings[4:8]


def test_an_opening_of_no_plies_is_the_start() -> None:
    assert draw_openings(SMALL, 2, seed=1, plies=0) == [(), ()]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"num_games": 3}, "games come in pairs, so their number is even and at least 2, got 3"),
        ({"num_games": 0}, "even and at least 2, got 0"),
        ({"seed": -1}, "the seed is 0 or more, got -1"),
        ({"opening_plies": -1}, "an opening has 0 or more plies, got -1"),
        ({"opening_plies": 70}, "no game of othello-6x6 goes on after 70 plies; ask for a shorter opening"),
    ],
)
def test_a_match_that_cannot_be_is_refused(settings: dict[str, int], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        play_match(RANDOM, GREEDY, SMALL, **({"num_games": 2, "seed": 1} | settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Decision(0), "scripted broke the rules: a1 is not legal for black in .* X; legal: c2 b3 e4 d5"),
        (Decision(36), "scripted broke the rules: pass is not legal for black in .* X; legal: "),
        (Decision(99), "scripted broke the rules: move 99 is not legal"),
        (Decision("c2"), "scripted answered no move in .* X: .* not 'c2'"),  # type: ignore[arg-type]
        (Decision(8.0), "scripted answered no move in .* X: .* not 8.0"),  # type: ignore[arg-type]
        (Decision(True), "scripted answered no move in .* X: .* not True"),
        (Decision([8]), r"scripted answered no move in .* X: .* not \[8\]"),  # type: ignore[arg-type]
        (19, "scripted answered 19, which is no Decision, in .* X"),
        (RuntimeError("no idea"), "scripted failed in .* X: RuntimeError: no idea"),
        (RuntimeError("no\nidea"), "scripted failed in .* X: RuntimeError: no idea$"),
        (RuntimeError(), "scripted failed in .* X: RuntimeError$"),
        (SystemExit(3), "scripted failed in .* X: SystemExit: 3"),
    ],
)
def test_a_player_that_breaks_off_the_match_is_named_with_the_position(answer: object, sentence: str) -> None:
    with pytest.raises(MatchError, match=sentence):
        play_match(RANDOM, Scripted(answer), SMALL, 2, seed=1)


def test_of_a_batch_the_position_in_which_a_player_fails_is_named() -> None:
    class Sulking(FirstMove):
        name = "sulking"

        def select(self, position: Position, rng: np.random.Generator) -> Decision:
            if position.num_empties < 10:
                raise KeyError("too late")
            return super().select(position, rng)

    with pytest.raises(MatchError, match="sulking failed in") as caught:
        play_match(Sulking(), RANDOM, SMALL, 20, seed=1)
    assert str(caught.value).split()[3].count("-") < 10


def test_a_missing_decision_is_noticed() -> None:
    class Forgetful(FirstMove):
        def select_batch(self, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> list[Decision]:
            return super().select_batch(positions, rngs)[1:]

    with pytest.raises(MatchError, match="first gave 0 decisions for 1 positions"):
        play_match(Forgetful(), RANDOM, SMALL, 4, seed=1)


def test_decisions_come_as_any_iterable_and_nothing_else() -> None:
    class Lazy(FirstMove):
        def select_batch(self, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> list[Decision]:
            return iter(super().select_batch(positions, rngs))  # type: ignore[return-value]

    class Silent(FirstMove):
        def select_batch(self, positions: Sequence[Position], rngs: Sequence[np.random.Generator]) -> list[Decision]:
            return None  # type: ignore[return-value]

    assert len(play_match(Lazy(), RANDOM, SMALL, 2, seed=1).games) == 2
    with pytest.raises(MatchError, match=r"first failed in .* X: TypeError: 'NoneType' object is not iterable"):
        play_match(Silent(), RANDOM, SMALL, 2, seed=1)


def test_cpu_time_goes_to_whoever_thought() -> None:
    class Slow(FirstMove):
        def select(self, position: Position, rng: np.random.Generator) -> Decision:
            sum(range(50_000))
            return super().select(position, rng)

    slow, quick = play_match(Slow(), FirstMove(), SMALL, 4, seed=1).cpu_s_per_game
    assert slow > 3 * quick > 0


def test_saved_games_are_a_line_of_json_each(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    match = play_match(RANDOM, GREEDY, SMALL, 4, seed=1)
    with claimed(path):
        assert path.exists()
        save_games(path, match.games)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [asdict(game) for game in match.games]
    assert list(tmp_path.iterdir()) == [path]


def test_claiming_refuses_a_file_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    path.write_text("precious")
    with pytest.raises(FileExistsError), claimed(path):
        pass
    assert path.read_text() == "precious"
