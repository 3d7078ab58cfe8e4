"""Games of one start as arrays, as kernels take them."""

from collections.abc import Sequence

import numpy as np

from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.playouts import NO_MOVE
from reversi_env.position import Position
from reversi_env.rules import MUST_PASS, OVER, Rules, final_score, legal_mask, play_square, status

NO_SCORE = -128  # of a game that has not ended


def moves_array(games: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns the moves of N games, uint8 [N, L], NO_MOVE after the last; L is the length of the longest."""
    length = max(map(len, games), default=0)
    padding = bytes((NO_MOVE,))
    joined = b"".join(bytes(moves).ljust(length, padding) for moves in games)
    return np.frombuffer(bytearray(joined), np.uint8).reshape(len(games), length)  # and not read-only


@kernel
def _write_black_scores(
    player: Bitboard, opponent: Bitboard, is_black: bool, moves: np.ndarray, scores: np.ndarray, rules: Rules
) -> None:
    """Fills `scores`, int8 [N], from legal moves, uint8 [N, L]."""
    pass_move = rules.size * rules.size
    for game in range(moves.shape[0]):
        own, other, black = player, opponent, is_black
        for move in moves[game]:
            if move == NO_MOVE:
                break
            legal = legal_mask(own, other, rules)
            if move != pass_move and status(own, other, legal, rules) == MUST_PASS:
                own, other, black = other, own, not black
            own, other = play_square(own, other, move, rules)
            black = not black
        if status(own, other, legal_mask(own, other, rules), rules) == OVER:
            score = final_score(own, other, rules)
            scores[game] = score if black else -score
        else:
            scores[game] = NO_SCORE


def black_scores(start: Position, moves: np.ndarray) -> np.ndarray:
    """Returns the final scores of N games of legal moves, uint8 [N, L], for black, int8 [N].

    They are under the start's scoring and goal, and NO_SCORE where the moves do not lead to the end. Passes may be left
    out.
    """
    scores = np.empty(len(moves), np.int8)
    moves = np.ascontiguousarray(moves)
    _write_black_scores(start.player, start.opponent, start.is_black_to_move, moves, scores, start.variant.rules)
    return scores
