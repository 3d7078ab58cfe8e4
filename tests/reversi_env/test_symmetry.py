"""The eight symmetries, against the oracle's turned boards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reversi_env import Position
from reversi_env.geometry import SIZES
from reversi_env.symmetry import (
    NUM_SYMMETRIES,
    canonical,
    inverse,
    square_map,
    transform,
    transform_action,
    transform_policy,
    transform_position,
)
from tests import oracle
from tests.reversi_env.strategies import positions, sizes, symmetries


@given(positions(), symmetries)
def test_turned_positions_agree_with_oracle(position: Position, symmetry: int) -> None:
    turned = transform_position(position, symmetry)
    assert list(turned.board) == oracle.symmetry(list(position.board), symmetry)
    assert (turned.side, turned.variant) == (position.side, position.variant)


@given(positions(), symmetries)
def test_a_symmetry_and_its_inverse_change_nothing(position: Position, symmetry: int) -> None:
    size = position.variant.size
    assert transform_position(transform_position(position, symmetry), inverse(symmetry)) == position
    there, back = square_map(symmetry, size), square_map(inverse(symmetry), size)
    assert back[there].tolist() == list(range(size * size))
    for action in range(size * size + 1):
        assert transform_action(transform_action(action, symmetry, size), inverse(symmetry), size) == action


@pytest.mark.parametrize("size", SIZES)
def test_the_eight_symmetries_differ_and_the_first_changes_nothing(size: int) -> None:
    maps = [square_map(symmetry, size).tolist() for symmetry in range(NUM_SYMMETRIES)]
    assert len({tuple(goes_to) for goes_to in maps}) == 8
    assert maps[0] == list(range(size * size))
    group = {tuple(goes_to) for goes_to in maps}
    assert {tuple(np.array(b)[a].tolist()) for a in maps for b in maps} == group


@given(sizes, symmetries, st.integers(0, 2**32))
def test_policies_planes_and_actions_turn_alike(size: int, symmetry: int, seed: int) -> None:
    policies = np.random.default_rng(seed).random((2, 3, size * size + 1))
    turned = transform_policy(policies, symmetry, size)
    for action in range(size * size + 1):
        assert (turned[..., transform_action(action, symmetry, size)] == policies[..., action]).all()
    planes = policies[..., :-1].reshape(2, 3, size, size)
    assert (transform(planes, symmetry) == turned[..., :-1].reshape(2, 3, size, size)).all()


@given(positions(), symmetries)
def test_equivalent_positions_have_one_canonical_form(position: Position, symmetry: int) -> None:
    least, leads_there = canonical(position)
    assert transform_position(position, leads_there) == least
    assert canonical(transform_position(position, symmetry))[0] == least
    assert canonical(least) == (least, 0)


@pytest.mark.parametrize("symmetry", [-1, 8, 100])
def test_there_are_no_other_symmetries(symmetry: int) -> None:
    with pytest.raises(ValueError, match=f"symmetries are 0 to 7, got {symmetry}"):
        square_map(symmetry, 8)
    with pytest.raises(ValueError, match=f"symmetries are 0 to 7, got {symmetry}"):
        inverse(symmetry)


def test_the_map_of_squares_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        square_map(1, 8)[0] = 5
