"""Perft: published numbers of leaves, and the oracle's count from positions of every kind."""

import _thread
import csv
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given

from reversi_env import Position, Variant, perft
from reversi_env.notation import BLACK, WHITE
from reversi_env.variant import STARTS
from tests import oracle
from tests.reversi_env.strategies import arbitrary_positions, played_positions

Data = Callable[[str], Path]


def published(data: Data) -> dict[tuple[str, int, int], int]:
    """Returns the leaves by start, size and depth."""
    with data("perft.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    starts = {"othello": "diagonal", "parallel": "parallel"}
    return {(starts[row["start"]], int(row["size"]), int(row["depth"])): int(row["leaves"]) for row in rows}


def test_perft_is_as_published(data: Data) -> None:
    table = published(data)
    assert max(table.values()) == 212_258_800  # 8×8 to depth 11: the whole table, not its beginning
    for (start, size, depth), leaves in table.items():
        assert perft(Position(Variant(size, start)), depth) == leaves, f"{start} {size}×{size} depth {depth}"


@pytest.mark.parametrize("k", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [4, 6, 8, 10])
def test_free_placement_leads_to_two_diagonal_and_four_parallel_starts(data: Data, size: int, k: int) -> None:
    table = published(data)
    # Where the table has no row for the size, the oracle counts; at depth 0 a start is one leaf.
    counts = {
        start: table.get((start, size, k)) or oracle.perft(oracle.start_board(size, start), BLACK, k)
        for start in ("diagonal", "parallel")
    }
    leaves = 4 * (2 * counts["diagonal"] + 4 * counts["parallel"])
    assert perft(Position(Variant(size, "free")), 4 + k) == leaves


@pytest.mark.parametrize(("depth", "leaves"), [(1, 4), (2, 12), (3, 24), (4, 24)])
def test_placement_counts_the_orders_of_filling_the_center(depth: int, leaves: int) -> None:
    assert perft(Position("reversi-1883"), depth) == leaves


@given(arbitrary_positions() | played_positions())
def test_perft_agrees_with_oracle(position: Position) -> None:
    free = position.variant.start == "free"
    board, side = list(position.board), position.side
    assert [perft(position, depth) for depth in range(3)] == [
        oracle.perft(board, side, depth, free) for depth in range(3)
    ]


def test_perft_counts_every_whole_game_of_4x4(data: Data) -> None:
    table = published(data)
    deepest = max(depth for start, size, depth in table if (start, size) == ("diagonal", 4))
    start = Position("othello-4x4")
    beyond = [perft(start, depth) for depth in (deepest, 24, 25, 1000, 10**30)]
    assert beyond[0] == table["diagonal", 4, deepest]
    assert len(set(beyond[1:])) == 1  # nobody passes twice running: no game is longer than 24 plies


@pytest.mark.parametrize("start", STARTS)
def test_perft_of_depth_0_is_one_leaf(start: str) -> None:
    assert perft(Position(Variant(start=start)), 0) == 1


def test_a_pass_is_a_ply_and_a_finished_game_a_leaf_at_any_depth() -> None:
    blocked = Position.from_text("OX-- X--- ---- ---- X")
    assert [perft(blocked, depth) for depth in range(6)] == [1, 1, 2, 2, 2, 2]
    finished = Position.from_text(f"XX-- {'-' * 12} {WHITE}")
    assert [perft(finished, depth) for depth in (0, 1, 2, 9)] == [1, 1, 1, 1]


def test_a_long_count_can_be_interrupted() -> None:
    perft(Position(), 2)  # compiles
    threading.Timer(0.2, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        perft(Position(), 14)


def test_perft_refuses_a_depth_that_is_none() -> None:
    with pytest.raises(ValueError, match="0 or more, got -1"):
        perft(Position(), -1)
    with pytest.raises(TypeError):
        perft(Position(), 2.5)  # type: ignore[arg-type]  # it would never come to zero
