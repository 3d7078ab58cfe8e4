"""Games told by their moves alone: checked against the rules and completed with passes, thousands in a kernel call."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from reversi_env.game import Game
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.playouts import NO_MOVE
from reversi_env.position import IllegalMoveError, Position
from reversi_env.rules import MUST_MOVE, MUST_PASS, OVER, Rules, final_score, is_legal, legal_mask, play_square, status
from reversi_env.vectors import count

NO_SCORE = -128  # of a game that has not ended


class Replay(NamedTuple):
    """What became of N games, L plies at the most."""

    moves: np.ndarray  # uint8 [N, L], passes included, NO_MOVE after the end
    lengths: np.ndarray  # int16 [N], plies, passes included
    num_legal: np.ndarray  # int16 [N], how many of the moves told are legal: all of them where a game has no fault
    black_discs: np.ndarray  # int16 [N], after the last legal move
    white_discs: np.ndarray  # int16 [N]
    is_over: np.ndarray  # bool [N], whether the game has ended there
    black_scores: np.ndarray  # int8 [N], under the start's scoring and goal, NO_SCORE where it has not


@kernel
def _replay(
    player: Bitboard, opponent: Bitboard, is_black: bool, told: np.ndarray, replay: Replay, rules: Rules
) -> None:
    """Fills `replay` in place from the moves `told`, uint8 [N, M], NO_MOVE after the last."""
    pass_move = rules.size * rules.size
    for game in range(told.shape[0]):
        own, other, black = player, opponent, is_black
        legal = legal_mask(own, other, rules)
        outcome = status(own, other, legal, rules)
        length = 0
        num_legal = 0
        for move in told[game]:
            if move == NO_MOVE or outcome == OVER:
                break
            if outcome == MUST_PASS and move != pass_move:
                replay.moves[game, length] = pass_move
                length += 1
                own, other, black = other, own, not black
                legal = legal_mask(own, other, rules)
                outcome = MUST_MOVE
            if not is_legal(legal, move, rules):
                break
            replay.moves[game, length] = move
            length += 1
            num_legal += 1
            own, other = play_square(own, other, move, rules)
            black = not black
            legal = legal_mask(own, other, rules)
            outcome = status(own, other, legal, rules)
        replay.moves[game, length:] = NO_MOVE
        replay.lengths[game] = length
        replay.num_legal[game] = num_legal
        replay.black_discs[game] = count(own if black else other)
        replay.white_discs[game] = count(other if black else own)
        replay.is_over[game] = outcome == OVER
        score = final_score(own, other, rules)
        replay.black_scores[game] = NO_SCORE if outcome != OVER else score if black else -score


def replay(start: Position, told: np.ndarray) -> Replay:
    """Returns N games from `start` whose moves, uint8 [N, M], end with NO_MOVE or fill their row.

    A pass may be told, where it is legal, or left out. A game is followed up to its first move that is not legal, or
    comes after the end: `num_legal` counts those before it.
    """
    num_games = len(told)
    games = Replay(
        # No side passes twice running, and a pass may stand at the end.
        moves=np.empty((num_games, 2 * start.num_empties + 1), np.uint8),
        lengths=np.empty(num_games, np.int16),
        num_legal=np.empty(num_games, np.int16),
        black_discs=np.empty(num_games, np.int16),
        white_discs=np.empty(num_games, np.int16),
        is_over=np.empty(num_games, np.bool_),
        black_scores=np.empty(num_games, np.int8),
    )
    told = np.ascontiguousarray(told, np.uint8)
    _replay(start.player, start.opponent, start.is_black_to_move, told, games, start.variant.rules)
    return games


def first_fault(start: Position, told: Iterable[int]) -> IllegalMoveError:
    """Returns what is wrong with the first move at which `replay` stops, with its number; for a game where it does."""
    try:
        Game.from_moves(told, start)
    except IllegalMoveError as error:
        return error
    raise AssertionError("the replay stopped at a move that the game takes")


def moves_array(games: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns the moves of N games, uint8 [N, L], NO_MOVE after the last; L is the length of the longest."""
    length = max(map(len, games), default=0)
    padding = bytes((NO_MOVE,))
    joined = b"".join(bytes(moves).ljust(length, padding) for moves in games)
    return np.frombuffer(bytearray(joined), np.uint8).reshape(len(games), length)  # and not read-only
