"""Othello from the rule book, slow and obvious: what the compiled rules are checked against.

A board is a list of characters, row by row from the top left (a1, b1, ...), `X` black, `O` white, `-` empty.
`free` says that the game began with free placement: the center is filled before anything flips.
This file imports nothing of the project and shares no table or trick with it. Keep it so.
"""

from collections.abc import Callable
from math import isqrt

BLACK, WHITE, EMPTY = "X", "O", "-"
Board = list[str]

DIRECTIONS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]  # (rows down, columns right)


def other(side: str) -> str:
    return {BLACK: WHITE, WHITE: BLACK}[side]


# The board before the first move


def center_squares(size: int) -> list[int]:
    """Returns the four squares in the middle: upper left, upper right, lower left, lower right."""
    upper, lower = size // 2 - 1, size // 2
    return [upper * size + upper, upper * size + lower, lower * size + upper, lower * size + lower]


def start_board(size: int, start: str) -> Board:
    """Returns the board on which black moves first; `start` is "diagonal" (Othello), "parallel" or "free" (empty)."""
    discs = {
        "diagonal": [WHITE, BLACK, BLACK, WHITE],
        "parallel": [WHITE, WHITE, BLACK, BLACK],
        "free": [EMPTY, EMPTY, EMPTY, EMPTY],
    }[start]
    board = [EMPTY] * (size * size)
    for square, disc in zip(center_squares(size), discs, strict=True):
        board[square] = disc
    return board


# One turn


def in_placement(board: Board, free: bool) -> bool:
    """Returns whether the players are still filling the center."""
    return free and any(board[square] == EMPTY for square in center_squares(isqrt(len(board))))


def flips(board: Board, side: str, square: int, free: bool = False) -> list[int]:
    """Returns the squares whose discs turn when `side` plays `square`; none where it is occupied, or in placement."""
    if board[square] != EMPTY or in_placement(board, free):
        return []
    size, opponent = isqrt(len(board)), other(side)
    turned = []
    for down, right in DIRECTIONS:
        row, column = square // size + down, square % size + right
        line = []
        while 0 <= row < size and 0 <= column < size and board[row * size + column] == opponent:
            line.append(row * size + column)
            row, column = row + down, column + right
        if 0 <= row < size and 0 <= column < size and board[row * size + column] == side:
            turned += line  # the line of opposing discs ends at a disc of our own
    return sorted(turned)


def legal_squares(board: Board, side: str, free: bool = False) -> list[int]:
    """Returns the squares that `side` may play; in placement, the empty center squares."""
    if in_placement(board, free):
        return [square for square in center_squares(isqrt(len(board))) if board[square] == EMPTY]
    return [square for square in range(len(board)) if flips(board, side, square)]


def play(board: Board, side: str, square: int, free: bool = False) -> Board:
    """Returns the board after `side` plays `square`, and leaves `board` alone. Raises ValueError if it is illegal."""
    if not 0 <= square < len(board):
        raise ValueError(f"square {square} is not on the board")
    turned = flips(board, side, square, free)
    placed = in_placement(board, free) and square in legal_squares(board, side, free)
    if not turned and not placed:
        raise ValueError(f"{side} may not play square {square} on {''.join(board)}")
    after = board.copy()
    for changed in [square, *turned]:
        after[changed] = side
    return after


def is_over(board: Board, free: bool = False) -> bool:
    return not legal_squares(board, BLACK, free) and not legal_squares(board, WHITE, free)


def must_pass(board: Board, side: str, free: bool = False) -> bool:
    """Returns whether `side` has no square to play though the game goes on."""
    return not legal_squares(board, side, free) and not is_over(board, free)


def turns(board: Board, side: str, free: bool = False) -> list[Board]:
    """Returns every board that `side` can hand over: the same one for a pass, none when the game is over."""
    squares = legal_squares(board, side, free)
    if squares:
        return [play(board, side, square, free) for square in squares]
    return [] if is_over(board, free) else [board]


# The end


def score(board: Board, side: str, goal: str = "most", scoring: str = "board") -> int:
    """Returns the final score of `side`: its discs minus the opponent's, negated where the goal is "fewest".

    Scoring "tournament" first gives the empty squares to the side with more discs, whatever the goal; scoring "board"
    counts the discs as they lie. Equal discs are 0.
    """
    difference = board.count(side) - board.count(other(side))
    given = {"board": 0, "tournament": board.count(EMPTY)}[scoring]
    if difference > 0:
        difference += given
    if difference < 0:
        difference -= given
    return {"most": difference, "fewest": -difference}[goal]


def result(board: Board, side: str, goal: str = "most", scoring: str = "board") -> int:
    """Returns 1 where `side` has won the finished game, -1 where it has lost, 0 for a draw."""
    final = score(board, side, goal, scoring)
    return 1 if final > 0 else -1 if final < 0 else 0


# Looking ahead


def perft(board: Board, side: str, depth: int, free: bool = False) -> int:
    """Returns the number of lines of `depth` plies; a pass is one ply, a game that ends sooner is one line."""
    if depth == 0:
        return 1
    boards = turns(board, side, free)
    if not boards:
        return 1
    return sum(perft(after, other(side), depth - 1, free) for after in boards)


def negamax(
    board: Board,
    side: str,
    goal: str = "most",
    scoring: str = "board",
    free: bool = False,
    known: dict[tuple[str, str], int] | None = None,
) -> int:
    """Returns the final score of `side` when both play perfectly to the end.

    Many orders of moves meet in one position: `known` has scores by board and side, of these rules, and gets more.
    """
    known = {} if known is None else known

    def solve(board: Board, side: str) -> int:
        position = ("".join(board), side)
        if position not in known:
            values = [-solve(after, other(side)) for after in turns(board, side, free)]
            known[position] = max(values) if values else score(board, side, goal, scoring)
        return known[position]

    return solve(board, side)


def minimax(
    board: Board,
    side: str,
    depth: int,
    leaf: Callable[[Board, str], int],
    goal: str,
    scoring: str,
    free: bool = False,
) -> int:
    """Returns the value for `side` of looking `depth` plies ahead, a pass being one ply.

    A finished game counts its score, also at depth 0; any other board at depth 0 counts `leaf(board, side to move)`.
    """
    if depth == 0 and not is_over(board, free):
        return leaf(board, side)
    values = [-minimax(after, other(side), depth - 1, leaf, goal, scoring, free) for after in turns(board, side, free)]
    return max(values) if values else score(board, side, goal, scoring)


# The eight symmetries


def symmetry(board: Board, k: int) -> Board:
    """Returns the board mirrored in the diagonal a1-h8 if k is 4 or more, then turned k % 4 quarters clockwise."""
    size = isqrt(len(board))
    if k >= 4:
        board = [board[column * size + row] for row in range(size) for column in range(size)]
    for _ in range(k % 4):
        board = [board[(size - 1 - column) * size + row] for row in range(size) for column in range(size)]
    return board
