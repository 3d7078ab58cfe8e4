"""The replay: what goes in comes out, under every symmetry, and the oldest leave."""

import numpy as np
import pytest

from experiments.training.replay import Replay, Samples
from reversi_env import Game, Position, Variant, random_games
from tests import oracle


def samples_of(variant, num_games, seed):
    """Random games with policies and values by which a position can be told."""
    games = random_games(Position(variant), num_games, seed)
    positions = [
        position
        for moves, length in zip(games.moves, games.lengths, strict=True)
        for position in Game.from_moves(moves[:length].tolist(), variant).positions[:-1]
    ]
    rng = np.random.default_rng(seed)
    policy = np.array([position.action_mask * rng.random(variant.num_actions) for position in positions])
    return positions, Samples(
        player=np.array([position.player for position in positions]),
        opponent=np.array([position.opponent for position in positions]),
        policy=policy.astype(np.float16),
        value=np.arange(len(positions), dtype=np.float32),  # stands for the position
    )


@pytest.mark.parametrize("name", ["othello-4x4", "othello", "othello-10x10"])
def test_a_drawn_position_is_a_symmetric_image_of_one_that_was_added(name):
    variant = Variant.named(name)
    size = variant.size
    positions, samples = samples_of(variant, 3, seed=1)
    replay = Replay(variant, window=10_000)
    replay.add(samples)
    batch = replay.draw(400, np.random.default_rng(0))
    used = set()
    for planes, legal, policy, value in zip(batch.planes, batch.legal, batch.policy, batch.value, strict=True):
        position = positions[int(value)]
        shown = [
            "X" if own else "O" if other else "-" for own, other in zip(planes[0].flat, planes[1].flat, strict=True)
        ]
        board = position.board if position.is_black_to_move else position.board.translate(str.maketrans("XO", "OX"))
        images = [k for k in range(8) if oracle.symmetry(list(board), k) == shown]
        assert images, "the planes are no image of the position"
        used.update(images)
        assert np.flatnonzero(planes[2]).tolist() == oracle.legal_squares(shown, "X")
        assert np.flatnonzero(legal[:-1]).tolist() == oracle.legal_squares(shown, "X")
        assert legal[-1] == position.must_pass
        expected = samples.policy[int(value)].astype(np.float32)
        assert sorted(policy) == sorted(expected)
        assert policy[-1] == expected[-1]
        squares = [[*map(float, expected[:-1])]]
        assert any(oracle.symmetry(squares[0], k) == policy[:-1].tolist() for k in images)
    assert used == set(range(8))
    assert batch.planes.shape == (400, 3, size, size)


def test_the_oldest_positions_leave_first():
    variant = Variant.named("othello-4x4")
    _, samples = samples_of(variant, 5, seed=3)
    replay = Replay(variant, window=20)
    replay.add(samples.at(slice(0, 15)))
    assert len(replay) == 15
    replay.add(samples.at(slice(15, 30)))
    assert replay.samples.value.tolist() == list(range(10, 30))


def test_every_position_is_as_likely_as_the_others():
    variant = Variant.named("othello-4x4")
    _, samples = samples_of(variant, 2, seed=3)
    replay = Replay(variant, window=100)
    replay.add(samples.at(slice(0, 20)))
    drawn = np.bincount(replay.draw(20_000, np.random.default_rng(1)).value.astype(int), minlength=20)
    assert abs(drawn - 1000).max() < 5 * 1000**0.5


def test_arrays_of_another_board_are_refused():
    variant = Variant.named("othello-4x4")
    _, samples = samples_of(variant, 1, seed=1)
    assert len(Samples.from_arrays(samples.arrays(), variant)) == len(samples)
    with pytest.raises(ValueError, match="the replay's policy is float16"):
        Samples.from_arrays(samples.arrays(), Variant.named("othello"))
    with pytest.raises(ValueError, match="of one length"):
        Samples.from_arrays({**samples.arrays(), "value": samples.value[1:]}, variant)
