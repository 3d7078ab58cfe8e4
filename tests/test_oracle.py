"""Proves the rule book itself: against published counts, results and games, and boards small enough to check by eye."""

import csv
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import oracle
from tests.oracle import BLACK, EMPTY, WHITE, Board

Data = Callable[[str], Path]


def drawn(picture: str) -> Board:
    return list("".join(picture.split()))


def square(name: str, size: int = 8) -> int:
    return (int(name[1:]) - 1) * size + "abcdefghij".index(name[0])


def squares(names: str, size: int = 8) -> list[int]:
    return sorted(square(name, size) for name in names.split())


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def replay(moves: list[int]) -> tuple[list[Board], list[str], int]:
    """Returns the boards of an 8x8 game from start to end, who made each move, and the number of passes."""
    boards, movers, num_passes, side = [oracle.start_board(8, "diagonal")], [], 0, BLACK
    for move in moves:
        if oracle.must_pass(boards[-1], side):
            num_passes += 1
            side = oracle.other(side)
        boards.append(oracle.play(boards[-1], side, move))
        movers.append(side)
        side = oracle.other(side)
    return boards, movers, num_passes


# Starts, moves and flips


def test_diagonal_start_has_white_on_d4_and_e5() -> None:
    board = drawn("""
        - - - - - - - -
        - - - - - - - -
        - - - - - - - -
        - - - O X - - -
        - - - X O - - -
        - - - - - - - -
        - - - - - - - -
        - - - - - - - -
    """)
    assert oracle.start_board(8, "diagonal") == board
    assert oracle.center_squares(8) == squares("d4 e4 d5 e5")
    assert oracle.legal_squares(board, BLACK) == squares("d3 c4 f5 e6")
    assert oracle.legal_squares(board, WHITE) == squares("e3 f4 c5 d6")


def test_parallel_start_has_white_above_black() -> None:
    assert oracle.start_board(4, "parallel") == drawn("---- -OO- -XX- ----")
    assert oracle.legal_squares(oracle.start_board(4, "parallel"), BLACK) == squares("a1 b1 c1 d1", 4)


@pytest.mark.parametrize("size", [4, 6, 8, 10])
def test_every_start_fills_only_the_center(size: int) -> None:
    for start, num_each in [("diagonal", 2), ("parallel", 2), ("free", 0)]:
        board = oracle.start_board(size, start)
        assert len(board) == size * size
        assert board.count(BLACK) == board.count(WHITE) == num_each
        assert {i for i, disc in enumerate(board) if disc != EMPTY} <= set(oracle.center_squares(size))


STAR = """
    X - - X - - X -
    - O - O - O - -
    - - O O O - - -
    X O O - O O O X
    - - O O O - - -
    - O - O - O - -
    X - - O - - X -
    - - - X - - - -
"""


def test_a_move_flips_in_all_eight_directions() -> None:
    after = """
        X - - X - - X -
        - X - X - X - -
        - - X X X - - -
        X X X X X X X X
        - - X X X - - -
        - X - X - X - -
        X - - X - - X -
        - - - X - - - -
    """
    assert oracle.flips(drawn(STAR), BLACK, square("d4")) == squares(
        "b2 d2 f2 c3 d3 e3 b4 c4 e4 f4 g4 c5 d5 e5 b6 d6 f6 d7"
    )
    assert oracle.play(drawn(STAR), BLACK, square("d4")) == drawn(after)


def test_a_line_flips_only_when_a_disc_of_the_mover_closes_it() -> None:
    board = drawn("-OX- ---- O--- O---")
    assert oracle.flips(board, BLACK, square("a1", 4)) == squares("b1", 4)
    assert oracle.flips(board, BLACK, square("a2", 4)) == []  # the line down to a4 runs off the board
    assert oracle.flips(board, WHITE, square("d1", 4)) == squares("c1", 4)
    assert oracle.flips(drawn("-O-X ---- ---- ----"), BLACK, square("a1", 4)) == []  # c1 is a gap


@pytest.mark.parametrize("picture", ["---O X--- ---- ----", "---X O--- ---- ----"])
def test_lines_do_not_run_around_the_edge(picture: str) -> None:
    assert oracle.legal_squares(drawn(picture), BLACK) == []  # d1 and a2 are neighbors in the list, not on the board


def test_an_occupied_square_flips_nothing() -> None:
    assert oracle.flips(drawn("XOX- ---- ---- ----"), BLACK, square("a1", 4)) == []
    assert oracle.flips(drawn("OOX- ---- ---- ----"), BLACK, square("a1", 4)) == []


def test_play_leaves_its_board_alone() -> None:
    board = oracle.start_board(8, "diagonal")
    oracle.play(board, BLACK, square("d3"))
    assert board == oracle.start_board(8, "diagonal")


@pytest.mark.parametrize("illegal", [square("d4"), square("a1"), square("e3"), -1, 64])
def test_play_refuses_what_is_not_legal(illegal: int) -> None:
    with pytest.raises(ValueError, match="square"):
        oracle.play(oracle.start_board(8, "diagonal"), BLACK, illegal)


def test_play_refuses_a_square_above_the_board() -> None:
    with pytest.raises(ValueError, match="not on the board"):  # -1 is the square above d1, whose disc is closed by d2
        oracle.play(drawn("---O ---X ---- ----"), BLACK, -1)


# Passes and ends

BLACK_IS_BLOCKED = "OX-- X--- ---- ----"  # white may play c1 or a3, and black has no move to the end


def test_pass_is_forced_only_without_moves_while_the_game_goes_on() -> None:
    assert oracle.must_pass(drawn(BLACK_IS_BLOCKED), BLACK)
    assert not oracle.must_pass(drawn(BLACK_IS_BLOCKED), WHITE)
    assert not oracle.is_over(drawn(BLACK_IS_BLOCKED))


@pytest.mark.parametrize(
    "picture",
    [
        pytest.param("XXXO XXOO XOXO OOOO", id="full board"),
        pytest.param("XXX- ---- ---- ---O", id="both blocked"),
        pytest.param("---- -XX- -XX- -X--", id="wipe-out"),
    ],
)
def test_game_ends_when_neither_side_can_move(picture: str) -> None:
    board = drawn(picture)
    assert oracle.is_over(board)
    for side in (BLACK, WHITE):
        assert oracle.legal_squares(board, side) == []
        assert not oracle.must_pass(board, side)
        assert oracle.perft(board, side, 5) == 1


def test_perft_counts_a_pass_as_one_ply() -> None:
    board = drawn(BLACK_IS_BLOCKED)
    assert [oracle.perft(board, BLACK, depth) for depth in range(6)] == [1, 1, 2, 2, 2, 2]
    assert [oracle.perft(board, WHITE, depth) for depth in range(5)] == [1, 2, 2, 2, 2]


# Scores


@pytest.mark.parametrize(
    ("picture", "by_discs", "by_tournament"),  # for black, when most discs win
    [
        pytest.param("XXX- ---- ---- ---O", 2, 14, id="3-1 becomes 15-1"),
        pytest.param("OOO- ---- ---- ---X", -2, -14, id="1-3 becomes 1-15"),
        pytest.param("XX-- ---- ---- --OO", 0, 0, id="2-2 stays a draw"),
        pytest.param("---- -XX- -XX- -X--", 5, 16, id="white wiped out"),
        pytest.param("---- -OO- -OO- -O--", -5, -16, id="black wiped out"),
        pytest.param("XXXX XXXX XXOO OOOO", 4, 4, id="full board has nothing to give"),
    ],
)
def test_scores_by_hand(picture: str, by_discs: int, by_tournament: int) -> None:
    board = drawn(picture)
    assert oracle.is_over(board)
    for scoring, expected in [("board", by_discs), ("tournament", by_tournament)]:
        assert oracle.score(board, BLACK, "most", scoring) == expected
        assert oracle.score(board, WHITE, "most", scoring) == -expected
        assert oracle.score(board, BLACK, "fewest", scoring) == -expected
        assert oracle.score(board, WHITE, "fewest", scoring) == expected


def test_result_is_the_sign_of_the_score() -> None:
    board = drawn("XXX- ---- ---- ---O")
    assert (oracle.result(board, BLACK), oracle.result(board, WHITE)) == (1, -1)
    assert (oracle.result(board, BLACK, "fewest"), oracle.result(board, WHITE, "fewest")) == (-1, 1)
    assert oracle.result(drawn("XX-- ---- ---- --OO"), WHITE, "fewest", "tournament") == 0


def test_a_side_without_discs_wins_anti_reversi() -> None:
    board = drawn("---- -XX- -XX- -X--")
    assert oracle.result(board, WHITE, "fewest") == 1
    assert oracle.negamax(board, WHITE, "fewest", "tournament") == 16


# Free placement


def test_in_placement_exactly_the_empty_center_squares_are_legal() -> None:
    board = drawn("---- -XO- ---- ----")  # by the ordinary rule black could play d2
    assert oracle.legal_squares(board, BLACK) == squares("d2", 4)
    assert oracle.legal_squares(board, BLACK, free=True) == squares("b3 c3", 4)
    with pytest.raises(ValueError, match="may not play"):
        oracle.play(board, BLACK, square("d2", 4), free=True)
    with pytest.raises(ValueError, match="may not play"):
        oracle.play(board, BLACK, square("b2", 4), free=True)


def test_in_placement_nothing_flips_nobody_passes_nothing_ends() -> None:
    board, side = oracle.start_board(4, "free"), BLACK
    for name in ["b2", "c3", "c2", "b3"]:
        assert not oracle.is_over(board, free=True)
        assert not oracle.must_pass(board, side, free=True)
        assert all(oracle.flips(board, side, center, free=True) == [] for center in range(16))
        board, side = oracle.play(board, side, square(name, 4), free=True), oracle.other(side)
    assert board == drawn("---- -XX- -OO- ----")
    assert oracle.legal_squares(board, BLACK, free=True) == squares("a4 b4 c4 d4", 4)


@pytest.mark.parametrize(("k", "diagonal", "parallel"), [(0, 1, 1), (1, 4, 4), (2, 12, 14), (3, 56, 68)])
def test_free_placement_reaches_two_diagonal_and_four_parallel_starts(k: int, diagonal: int, parallel: int) -> None:
    leaves = oracle.perft(oracle.start_board(8, "free"), BLACK, 4 + k, free=True)
    assert leaves == 4 * (2 * diagonal + 4 * parallel)


# Published counts, results and games


@pytest.mark.parametrize(
    ("start", "size"),
    [("othello", 4), ("othello", 6), ("othello", 8), ("othello", 10), ("parallel", 6), ("parallel", 8)],
)
def test_perft_agrees_with_published_counts(data: Data, start: str, size: int) -> None:
    board = oracle.start_board(size, "diagonal" if start == "othello" else start)
    table = [row for row in rows(data("perft.tsv")) if (row["start"], row["size"]) == (start, str(size))]
    quick = [row for row in table if int(row["leaves"]) < 10_000]
    assert len(quick) >= 6
    for row in quick:
        assert oracle.perft(board, BLACK, int(row["depth"])) == int(row["leaves"]), f"depth {row['depth']}"


@pytest.mark.slow
def test_perft_of_4x4_counts_every_whole_game(data: Data) -> None:
    deepest = [row for row in rows(data("perft.tsv")) if row["size"] == "4"][-1]
    leaves = oracle.perft(oracle.start_board(4, "diagonal"), BLACK, int(deepest["depth"]))
    assert leaves == int(deepest["leaves"])


@pytest.mark.parametrize(("scoring", "value"), [("board", -8), ("tournament", -10)])
def test_4x4_is_lost_for_black_by_three_discs_to_eleven(scoring: str, value: int) -> None:
    assert oracle.negamax(oracle.start_board(4, "diagonal"), BLACK, "most", scoring) == value


def test_stress_games_replay_to_what_is_said_of_them(data: Data) -> None:
    games = {}
    for row in rows(data("stress_games.tsv")):
        text = row["transcript"]
        games[row["name"]] = replay([square(text[i : i + 2]) for i in range(0, len(text), 2)])
    for boards, _, _ in games.values():
        assert [oracle.is_over(board) for board in boards] == [False] * (len(boards) - 1) + [True]

    boards, movers, _ = games["wipeout9_a"]
    assert len(movers) == 9
    assert (boards[-1].count(BLACK), boards[-1].count(WHITE)) == (13, 0)
    assert oracle.score(boards[-1], BLACK) == 13
    assert oracle.score(boards[-1], BLACK, "most", "tournament") == 64

    boards, movers, _ = games["nonwipeout_short11"]
    assert len(movers) == 11
    assert (boards[-1].count(BLACK), boards[-1].count(WHITE)) == (14, 1)

    boards, movers, _ = games["run11"]
    assert any(len(set(movers[i : i + 12])) == 1 for i in range(len(movers) - 11))
    assert all(len(set(movers[i : i + 13])) == 2 for i in range(len(movers) - 12))

    boards, movers, _ = games["mob31"]
    assert len(oracle.legal_squares(boards[28], movers[28])) == 31

    assert games["wthor_passes15"][2] == 15


def test_best_moves_of_the_ffo_suite_are_legal(data: Data) -> None:
    problems = rows(data("ffo.tsv"))
    assert len(problems) == 44
    for problem in problems:
        board = list(problem["board64"])
        assert board.count(EMPTY) == int(problem["empties"])
        assert set(squares(problem["best_moves"])) <= set(oracle.legal_squares(board, problem["side"]))


def test_tournament_games_replay_to_their_recorded_scores(data: Data) -> None:
    content = data("wthor/WTH_1982.wtb").read_bytes()  # 110 games, all of them finished, two of them wipe-outs
    for black_discs, *moves in struct.iter_unpack("<6xBx60B", content[16:]):
        boards, _, _ = replay([(move // 10 - 1) * 8 + move % 10 - 1 for move in moves if move])
        assert oracle.is_over(boards[-1])
        assert oracle.score(boards[-1], BLACK, "most", "tournament") == 2 * black_discs - 64


# Looking ahead


def leaf_discs(board: Board, side: str) -> int:
    return board.count(side)


def test_minimax_counts_the_leaf_from_the_side_to_move() -> None:
    board = oracle.start_board(8, "diagonal")
    assert oracle.minimax(board, BLACK, 0, leaf_discs, "most", "board") == 2
    assert oracle.minimax(board, BLACK, 1, leaf_discs, "most", "board") == -1  # white keeps one disc
    assert oracle.minimax(board, BLACK, 2, leaf_discs, "most", "board") == 3  # then white takes one back


def test_minimax_spends_a_ply_on_a_pass() -> None:
    board = drawn(BLACK_IS_BLOCKED)
    assert oracle.minimax(board, BLACK, 0, leaf_discs, "most", "board") == 2
    assert oracle.minimax(board, BLACK, 1, leaf_discs, "most", "board") == -1
    assert oracle.minimax(board, BLACK, 2, leaf_discs, "most", "board") == 1


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_minimax_counts_the_score_of_a_finished_game_at_every_depth(depth: int) -> None:
    board = drawn("XXX- ---- ---- ---O")
    assert oracle.minimax(board, BLACK, depth, leaf_discs, "most", "tournament") == 14
    assert oracle.minimax(board, BLACK, depth, leaf_discs, "fewest", "board") == -2


@pytest.mark.parametrize("scoring", ["board", "tournament"])
@pytest.mark.parametrize("goal", ["most", "fewest"])
def test_minimax_to_the_end_agrees_with_negamax(goal: str, scoring: str) -> None:
    board, side = oracle.start_board(4, "diagonal"), BLACK
    for _ in range(5):
        board, side = oracle.turns(board, side)[-1], oracle.other(side)
    deep = oracle.minimax(board, side, 99, leaf_discs, goal, scoring)
    assert deep == oracle.negamax(board, side, goal, scoring)


def test_negamax_of_a_drawn_ending() -> None:
    board = drawn("OX-- X--- ---- ----")  # white takes everything: 0-5 after c1 and a3
    assert oracle.negamax(board, WHITE) == 5
    assert oracle.negamax(board, BLACK, "most", "tournament") == -16
    assert oracle.negamax(board, WHITE, "fewest") == -5


# Symmetries

CORNER = "XO-- X--- ---- ----"


@pytest.mark.parametrize(
    ("k", "picture"),
    [
        (0, "XO-- X--- ---- ----"),
        (1, "--XX ---O ---- ----"),
        (2, "---- ---- ---X --OX"),
        (3, "---- ---- O--- XX--"),
        (4, "XX-- O--- ---- ----"),
        (5, "--OX ---X ---- ----"),
        (6, "---- ---- ---O --XX"),
        (7, "---- ---- X--- XO--"),
    ],
)
def test_symmetries_by_hand(k: int, picture: str) -> None:
    assert oracle.symmetry(drawn(CORNER), k) == drawn(picture)


@pytest.mark.parametrize("k", range(8))
def test_legal_squares_turn_with_the_board(k: int) -> None:
    board = oracle.play(oracle.start_board(8, "diagonal"), BLACK, square("d3"))
    marked = ["*" if i in oracle.legal_squares(board, WHITE) else disc for i, disc in enumerate(board)]
    turned = oracle.symmetry(board, k)
    expected = ["*" if i in oracle.legal_squares(turned, WHITE) else disc for i, disc in enumerate(turned)]
    assert oracle.symmetry(marked, k) == expected
