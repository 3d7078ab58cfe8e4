"""Planes and masks say what the rule book says, on every size and start and on boards that no game reaches."""

import numpy as np
import pytest

from reversi_env import Position, Variant, random_games
from reversi_env.encoding import NUM_OBSERVATION_PLANES, NUM_PLANES, write_observation, write_planes
from reversi_env.geometry import SIZES
from reversi_env.playouts import NO_MOVE
from reversi_env.variant import STARTS
from tests import oracle

VARIANTS = [Variant(size=size, start=start) for size in SIZES for start in STARTS]


def sample(variant: Variant) -> list[Position]:
    """Returns the positions of a random game, the finished one last, and boards of random discs from bare to full."""
    rng = np.random.default_rng(variant.size)
    positions = [Position(variant)]
    for move in random_games(positions[0], 1, seed=variant.size).moves[0]:
        if move != NO_MOVE:
            positions.append(positions[-1].play(move))
    for share in np.linspace(0, 1, 9):
        cells = rng.choice(["X", "O", "-"], variant.num_squares, p=[share / 2, share / 2, 1 - share])
        positions.append(Position.from_text("".join(cells) + str(rng.choice(["X", "O"])), variant))
    return positions


def expected(position: Position) -> tuple[np.ndarray, np.ndarray]:
    """Returns the planes [3, size, size] and the mask [size² + 1] by the rule book."""
    board, side, free = list(position.board), position.side, position.variant.start == "free"
    legal = oracle.legal_squares(board, side, free)
    planes = [
        [cell == side for cell in board],
        [cell == oracle.other(side) for cell in board],
        [square in legal for square in range(len(board))],
    ]
    size = position.variant.size
    return np.reshape(planes, (3, size, size)), np.array([*planes[2], oracle.must_pass(board, side, free)])


def written(positions: list[Position], mask_type: type = np.int8) -> tuple[np.ndarray, np.ndarray]:
    """Returns what `write_planes` writes over arrays full of something else."""
    variant = positions[0].variant
    player = np.array([position.player for position in positions], np.uint64)
    opponent = np.array([position.opponent for position in positions], np.uint64)
    planes = np.full((len(positions), NUM_PLANES, variant.size, variant.size), np.nan, np.float32)
    mask: np.ndarray = np.full((len(positions), variant.num_actions), 1, mask_type)
    write_planes(player, opponent, planes, mask, variant.rules)
    return planes, mask


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_planes_and_masks_of_a_batch_agree_with_the_oracle(variant: Variant) -> None:
    positions = sample(variant)
    planes, mask = written(positions)
    for row, position in enumerate(positions):
        expected_planes, expected_mask = expected(position)
        np.testing.assert_array_equal(planes[row], expected_planes)
        np.testing.assert_array_equal(mask[row], expected_mask)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_an_observation_is_the_first_planes_and_the_mask_of_a_batch(variant: Variant) -> None:
    positions = sample(variant)
    planes, mask = written(positions)
    for row, position in enumerate(positions):
        observation = np.full((NUM_OBSERVATION_PLANES, variant.size, variant.size), -1, np.int8)
        single_mask = np.full(variant.num_actions, -1, np.int8)
        write_observation(
            position.player, position.opponent, position.legal, position.must_pass, observation, single_mask
        )
        np.testing.assert_array_equal(observation, planes[row, :NUM_OBSERVATION_PLANES])
        np.testing.assert_array_equal(single_mask, mask[row])
        np.testing.assert_array_equal(single_mask, position.action_mask)


def test_a_mask_may_be_boolean() -> None:
    positions = sample(Variant())
    _, mask = written(positions)
    _, boolean = written(positions, np.bool_)
    np.testing.assert_array_equal(boolean, mask == 1)


def test_no_position_is_no_work() -> None:
    planes, mask = written([Position()])
    nobody = np.empty((0, 1), np.uint64)
    write_planes(nobody, nobody, planes[:0], mask[:0], Variant().rules)
