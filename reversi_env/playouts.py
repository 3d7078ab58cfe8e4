"""Random games by the thousand, in one kernel call."""

import operator
from typing import NamedTuple

import numpy as np

from reversi_env.bitboard import nth_bit, square_of
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.position import Position
from reversi_env.random_bits import below, next_state, stream
from reversi_env.rules import Rules, final_score, legal_mask, play
from reversi_env.vectors import bit, count, is_empty

NO_MOVE = 255  # after a game's last move; no action of 10×10 reaches it


class RandomGames(NamedTuple):
    """Games as arrays: N games, L moves at the most."""

    moves: np.ndarray  # uint8 [N, L], passes included, NO_MOVE after the end
    lengths: np.ndarray  # int16 [N], plies, passes included
    black_scores: np.ndarray  # int16 [N], under the variant's scoring and goal


@kernel
def _play_random_games(
    player: Bitboard, opponent: Bitboard, is_black: bool, seed: np.uint64, first: int, games: RandomGames, rules: Rules
) -> None:
    """Fills `games` in place; game n draws from stream `first + n`."""
    pass_move = rules.size * rules.size
    for game in range(games.lengths.shape[0]):
        state = stream(seed, first + game)
        own, other, black = player, opponent, is_black
        length = 0
        has_passed = False
        while True:
            legal = legal_mask(own, other, rules)
            if is_empty(legal):
                if has_passed:
                    break  # the pass just written was none: the game had ended
                games.moves[game, length] = pass_move
                own, other = other, own
                has_passed = True
            else:
                state = next_state(state)
                index = nth_bit(legal, below(state, count(legal)))
                games.moves[game, length] = square_of(index, rules.size, own)
                own, other = play(own, other, bit(index, own), rules)
                has_passed = False
            black = not black
            length += 1
        length -= 1
        games.moves[game, length:] = NO_MOVE
        games.lengths[game] = length
        score = final_score(own, other, rules)
        games.black_scores[game] = score if black else -score


def random_games(start: Position, num_games: int, seed: int, first: int = 0) -> RandomGames:
    """Returns `num_games` games from `start` in which every legal move is equally likely.

    Game n of a call is game `first + n` of the seed, whatever the number asked for at a time.
    """
    if num_games < 0:
        raise ValueError(f"the number of games is 0 or more, got {num_games}")
    # No side passes twice running, so a game has at most two plies an empty square, and one ply is written in vain.
    max_plies = 2 * start.num_empties + 1
    games = RandomGames(
        np.empty((num_games, max_plies), np.uint8), np.empty(num_games, np.int16), np.empty(num_games, np.int16)
    )
    _play_random_games(
        start.player,
        start.opponent,
        start.is_black_to_move,
        np.uint64(operator.index(seed) % 2**64),
        operator.index(first),
        games,
        start.variant.rules,
    )
    return games
