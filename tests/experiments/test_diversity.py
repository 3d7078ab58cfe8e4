"""How diverse openings are: against closed forms and the canonical positions of `reversi_env.symmetry`."""

import math

import numpy as np
import pytest

from experiments.training.diversity import diversity
from reversi_env import Game, Position, Variant, random_games
from reversi_env.symmetry import canonical, transform_position


def boards(positions: list[Position]) -> tuple[np.ndarray, np.ndarray, int]:
    sides = ([position.player for position in positions], [position.opponent for position in positions])
    return *(np.array(side, np.uint64) for side in sides), positions[0].variant.size


def after(variant: Variant, num_games: int, num_plies: int) -> list[Position]:
    games = random_games(Position(variant), num_games, seed=7)
    return [Game.from_moves(moves[:num_plies].tolist(), variant).position for moves in games.moves]


@pytest.mark.parametrize("size", [4, 6, 8, 10])
def test_positions_are_of_one_kind_where_they_are_symmetric(size: int) -> None:
    (position,) = after(Variant(size), 1, 5)
    images = [transform_position(position, symmetry) for symmetry in range(8)]
    assert len(set(images)) == 8
    assert diversity(*boards(images * 3)) == (1, pytest.approx(1))


@pytest.mark.parametrize("size", [4, 6, 8, 10])
def test_kinds_are_those_of_canonical_positions(size: int) -> None:
    positions = after(Variant(size), 200, 4)
    forms = {canonical(position)[0] for position in positions}
    assert diversity(*boards(positions)).num_kinds == len(forms) > 10


def test_equally_frequent_kinds_are_as_diverse_as_their_number() -> None:
    kinds = [*{canonical(position)[0]: position for position in after(Variant(), 100, 6)}.values()][:12]
    assert diversity(*boards(kinds * 5)) == (12, pytest.approx(12))


def test_rare_kinds_count_less() -> None:
    common, rare = after(Variant(), 2, 6)
    found = diversity(*boards([common, common, common, rare]))
    assert found.num_kinds == 2
    assert found.effective == pytest.approx(math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25))))
