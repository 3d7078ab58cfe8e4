"""Many games at once, one kernel call a step, in arrays that are filled in place: for loops of one's own.

    batch = Batch(1024, "othello", opponent="greedy", color="random")
    batch.reset(seed=1)
    while True:
        batch.step(choose(batch.observation, batch.action_mask))
        learn(batch.reward, batch.is_over, …)

The vector environment (`vector_env`) is this in Gymnasium's dress. A game of a batch is that of `ReversiEnv` with the
same seed and actions, ply by ply.
"""

import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding

from reversi_env.bitboard import load, store
from reversi_env.encoding import NUM_OBSERVATION_PLANES, write_discs, write_mask
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.naming import one_of
from reversi_env.opponent_pool import BatchOpponent, Pool, ask, blame, exchanged, is_pool, opponents_of, positions_of
from reversi_env.opponents import Baseline, draw_favorite, square_weights
from reversi_env.options import COLORS, ILLEGAL_ACTIONS, REWARDS, checked_color, checked_position
from reversi_env.position import LEGAL, OPPONENT, PLAYER, Position
from reversi_env.random_bits import draw_below, first_state, next_state
from reversi_env.rules import (
    MUST_MOVE,
    MUST_PASS,
    OVER,
    Rules,
    final_score,
    is_legal,
    legal_mask,
    play_square,
    status,
)
from reversi_env.variant import Variant
from reversi_env.vectors import count, is_empty, no_square

# What stands instead of a move where none is to be played.
BEGIN, HOLD, FORFEIT = -1, -2, -3

# Whose turn it is in a game; when a step is done, only the last two.
NOT_BEGUN, OUTSIDERS, CALLERS, NOBODYS = 0, 1, 2, 3

_BLACK, _DRAWN = COLORS.index("black"), COLORS.index("random")
_OUTSIDE = -1  # the kind of an opponent that kernels do not know


class Games(NamedTuple):
    """N games, as kernels see them; A = size² + 1."""

    boards: np.ndarray  # uint64 [3 · N, W]; row 3n + PLAYER, OPPONENT or LEGAL is that of the side to move in game n
    is_black: np.ndarray  # bool [N], whether the side to move is black
    turn: np.ndarray  # uint8 [N], whose turn it is, as above
    has_acted: np.ndarray  # bool [N], whether the caller has played an action in the game
    is_learner_black: np.ndarray  # bool [N]
    opponent_index: np.ndarray  # int64 [N], which of the pool plays the game
    opponent_row: np.ndarray  # int64 [N], the same in `_Terms.kinds`, where former pools stand too
    rng_state: np.ndarray  # uint64 [N], SplitMix64
    last_move: np.ndarray  # int64 [N], HOLD before the first
    observation: np.ndarray  # int8 [N, 2, size, size]
    action_mask: np.ndarray  # int8 [N, A]
    reward: np.ndarray  # float64 [N]
    is_over: np.ndarray  # bool [N], whether the step ended a game; the following arrays speak of that game
    final_observation: np.ndarray  # int8 [N, 2, size, size]
    final_is_black: np.ndarray  # bool [N], whether `final_observation` is black's
    final_opponent_index: np.ndarray  # int64 [N]
    final_discs: np.ndarray  # int64 [N, 2], black's and white's
    final_score: np.ndarray  # int64 [N], in discs, of the side that the reward is for
    final_black_score: np.ndarray  # int64 [N]
    is_forfeited: np.ndarray  # bool [N], whether the step ended a game by an illegal action
    action: np.ndarray  # int64 [N], the caller's in the last step


class _Terms(NamedTuple):
    """What the games of a batch have in common beside the rules."""

    start: np.ndarray  # uint64 [3, W], as in `Games`
    is_black_first: bool
    kinds: np.ndarray  # int64 [P], the opponents' kinds in `opponents`, or _OUTSIDE; empty: the caller moves both sides
    first_row: int  # of the pool that new games draw from, the last rows of `kinds`
    color: int  # the learner's, an index of COLORS
    by_score: bool  # the reward
    begins_anew: bool  # whether a game that ends is followed by another at once
    weights: np.ndarray  # int64 [size²], `square_weights`


@kernel
def _screen(games: Games, actions: np.ndarray, moves: np.ndarray, turn: int, rules: Rules) -> int:
    """Fills `moves`, int64 [N], with `actions` where it is this turn: FORFEIT for an illegal one, HOLD elsewhere.

    Returns the first game whose action is illegal, or −1.
    """
    first_illegal = -1
    for game in range(actions.shape[0]):
        action = actions[game]
        if games.turn[game] != turn:
            moves[game] = HOLD
            continue
        if is_legal(load(games.boards, 3 * game + LEGAL, rules.squares), action, rules):
            moves[game] = action
            continue
        moves[game] = FORFEIT
        if first_illegal < 0:
            first_illegal = game
    return first_illegal


@kernel
def _begin(games: Games, game: int, terms: _Terms) -> None:
    """Draws the opponent and the color of a new game, where there is something to draw."""
    num_opponents = terms.kinds.shape[0] - terms.first_row
    index = draw_below(games.rng_state, game, num_opponents) if num_opponents > 1 else 0
    games.opponent_index[game] = index
    games.opponent_row[game] = terms.first_row + index
    if terms.color == _DRAWN:
        games.is_learner_black[game] = draw_below(games.rng_state, game, 2) == _BLACK
    else:
        games.is_learner_black[game] = terms.color == _BLACK
    games.has_acted[game] = False
    games.last_move[game] = HOLD


@kernel
def _finish(
    games: Games,
    game: int,
    player: Bitboard,
    opponent: Bitboard,
    is_black: bool,
    forfeited: bool,
    terms: _Terms,
    rules: Rules,
) -> None:
    """Writes what a game ended with; the boards and the color are those of the side that would be to move."""
    has_opponent = terms.kinds.shape[0] > 0
    if forfeited:
        mover_score = -rules.size * rules.size
        for_mover = True
    else:
        mover_score = final_score(player, opponent, rules)
        for_mover = has_opponent and is_black == games.is_learner_black[game]
    score = mover_score if for_mover else -mover_score
    games.final_score[game] = score
    games.final_black_score[game] = mover_score if is_black else -mover_score
    games.reward[game] = score / (rules.size * rules.size) if terms.by_score else float((score > 0) - (score < 0))
    games.is_over[game] = True
    games.final_discs[game, 0] = count(player if is_black else opponent)
    games.final_discs[game, 1] = count(opponent if is_black else player)
    games.final_opponent_index[game] = games.opponent_index[game]
    if not for_mover and has_opponent:
        player, opponent = opponent, player
        is_black = not is_black
    games.final_is_black[game] = is_black
    # Both are written: a copy from array to array would cost seconds of compiling, for its error messages.
    write_discs(player, opponent, rules.size, games.final_observation, game)
    write_discs(player, opponent, rules.size, games.observation, game)
    write_mask(no_square(player), False, rules.size, games.action_mask, game)


@kernel
def _advance(games: Games, moves: np.ndarray, terms: _Terms, rules: Rules) -> int:
    """Plays `moves`, int64 [N], and on until each game awaits its caller, an outside opponent's move, or nothing.

    A move is that of the side to move, and legal, or BEGIN, HOLD or FORFEIT. Returns how many games await an opponent
    from outside; or −1 − n where game n ended before its caller could act, and then the games after it have not moved.
    """
    num_waiting = 0
    has_opponent = terms.kinds.shape[0] > 0
    pass_move = rules.size * rules.size
    nothing = no_square(rules.squares)
    for game in range(moves.shape[0]):
        move = moves[game]
        if move == HOLD:
            continue
        player = load(games.boards, 3 * game + PLAYER, nothing)
        opponent = load(games.boards, 3 * game + OPPONENT, nothing)
        is_black = games.is_black[game]
        legal = nothing
        outcome = OVER
        if move >= 0 and games.turn[game] == CALLERS:
            games.has_acted[game] = True
        while True:
            if move >= 0:
                player, opponent = play_square(player, opponent, move, rules)
                is_black = not is_black
                legal = legal_mask(player, opponent, rules)
                outcome = status(player, opponent, legal, rules)
                games.last_move[game] = move
            if move == BEGIN:
                _begin(games, game, terms)
                player, opponent = load(terms.start, PLAYER, nothing), load(terms.start, OPPONENT, nothing)
                is_black = terms.is_black_first
                legal = load(terms.start, LEGAL, nothing)
                outcome = MUST_PASS if is_empty(legal) else MUST_MOVE  # no game begins at its end
            elif outcome == OVER:
                if move != FORFEIT and not games.has_acted[game]:
                    return -1 - game
                _finish(games, game, player, opponent, is_black, move == FORFEIT, terms, rules)
                if not terms.begins_anew:
                    games.turn[game] = NOBODYS
                    break
                move = BEGIN
                continue
            if not has_opponent or is_black == games.is_learner_black[game]:
                games.turn[game] = CALLERS
                break
            kind = terms.kinds[games.opponent_row[game]]
            if outcome == MUST_PASS:
                move = pass_move
            elif kind == _OUTSIDE:
                games.turn[game] = OUTSIDERS
                num_waiting += 1
                break
            else:
                state = next_state(games.rng_state[game])
                games.rng_state[game] = state
                move = draw_favorite(player, opponent, legal, kind, state, terms.weights, rules)
        store(games.boards, 3 * game + PLAYER, player)
        store(games.boards, 3 * game + OPPONENT, opponent)
        store(games.boards, 3 * game + LEGAL, legal)
        games.is_black[game] = is_black
        if games.turn[game] == CALLERS:
            write_discs(player, opponent, rules.size, games.observation, game)
            write_mask(legal, outcome == MUST_PASS, rules.size, games.action_mask, game)
    return num_waiting


class Batch:
    """N games, each against an opponent or with both sides in the caller's hands.

    variant, opponent, color, reward and illegal_action are those of `ReversiEnv`; but opponent is None unless given,
    and an illegal action raises.
    begins_anew: whether a game that ends is followed by a new one within the same step. If not, it rests until
        `reset(reset_mask=…)`, and actions for it are ignored.

    The arrays that follow belong to the batch and change in place with each call; copy what must stay.

    observation: int8 [N, 2, size, size], the discs of the side to play and of the other side.
    action_mask: int8 [N, size² + 1], the legal actions; all zero for a game that rests.
    is_black: bool [N], whether the side to play is black. Against an opponent it is always the learner.
    reward: float64 [N], of the last step.
    is_over: bool [N], whether the last step ended a game; `games` says in its `final_…` arrays how.
    """

    def __init__(
        self,
        num_games: int,
        variant: Variant | str = "othello",
        opponent: Pool = None,
        color: str = "black",
        reward: str = "result",
        illegal_action: str = "raise",
        begins_anew: bool = True,
    ) -> None:
        num_games = _checked_number(num_games)
        self.variant = Variant.of(variant)
        self._pool = opponents_of(opponent)
        self._opponents = self._pool  # behind those of former pools whose games go on
        self.has_pool = is_pool(opponent)
        self._color = checked_color(color, bool(self._pool))
        self._by_score = one_of("reward", reward, REWARDS) == "score"
        self._raises = one_of("illegal_action", illegal_action, ILLEGAL_ACTIONS) == "raise"
        self._begins_anew = begins_anew
        self._terms = self._terms_of(Position(self.variant), self._color)
        self.games = _new_games(num_games, self.variant)
        self._moves = np.full(num_games, HOLD)
        self._is_seeded = np.zeros(num_games, np.bool_)
        self._is_ready = False

    @property
    def num_games(self) -> int:
        return len(self._moves)

    @property
    def observation(self) -> np.ndarray:
        return self.games.observation

    @property
    def action_mask(self) -> np.ndarray:
        return self.games.action_mask

    @property
    def is_black(self) -> np.ndarray:
        return self.games.is_learner_black if self._pool else self.games.is_black

    @property
    def reward(self) -> np.ndarray:
        return self.games.reward

    @property
    def is_over(self) -> np.ndarray:
        return self.games.is_over

    @property
    def opponents(self) -> tuple[BatchOpponent, ...]:
        """Those of whom each new game draws one; none where the caller moves both sides."""
        return self._pool

    def set_opponent(self, opponent: Pool) -> None:
        """Changes whom games play against from their next beginning on; games under way go on against whom they had.

        So a league grows: `set_opponent([*batch.opponents, newcomer])`. Raises ValueError where
        `ReversiEnv.set_opponent` does.
        """
        pool = exchanged(self._pool, opponent, self.has_pool)
        games = self.games
        playing, rows = np.unique(games.opponent_row, return_inverse=True)
        self._pool = pool
        self._opponents = (*(self._opponents[row] for row in playing.tolist() if self._opponents), *pool)
        games.opponent_row[:] = rows
        self._terms = self._terms_of(Position(self.variant), self._color)

    def reset(
        self,
        seed: int | Sequence[int | None] | None = None,
        reset_mask: np.ndarray | None = None,
        position: Position | str | None = None,
        color: str | None = None,
    ) -> None:
        """Begins all games, or those that `reset_mask`, bool [N], marks.

        Game n draws from `seed + n`, or from the n-th of several seeds, or goes on drawing where that is None.
        `position` and `color` hold for this call. Raises ValueError for what no game can begin with.
        """
        start = checked_position(self.variant, position)
        color = self._color if color is None else checked_color(color, bool(self._pool))
        begun_mask = np.ones(self.num_games, np.bool_) if reset_mask is None else self._checked_mask(reset_mask)
        self._seed(seed, begun_mask)
        self.games.reward[begun_mask] = 0
        self.games.is_over[begun_mask] = False
        self.games.is_forfeited[begun_mask] = False
        self._moves[:] = np.where(begun_mask, BEGIN, HOLD)
        terms = self._terms if position is None and color == self._color else self._terms_of(start, color)
        self._run(terms)

    def step(self, actions: np.ndarray) -> None:
        """Plays an action, integers [N], in each game, and the opponents' replies.

        Raises ResetNeeded before `reset`, ValueError for another shape or type, IllegalMoveError with all games left as
        they are.
        """
        self._require_ready()
        given = np.asarray(actions)
        if given.shape != self._moves.shape or given.dtype.kind not in "iu":
            raise ValueError(
                f"actions are one integer a game, [{self.num_games}], not {given.dtype} {list(given.shape)}"
            )
        games = self.games
        games.action[:] = given
        illegal = _screen(games, games.action, self._moves, CALLERS, self.variant.rules)
        if illegal >= 0 and self._raises:
            raise blame(f"game {illegal}", self._position(illegal), int(given[illegal]))
        games.reward.fill(0)
        games.is_over.fill(False)
        np.equal(self._moves, FORFEIT, out=games.is_forfeited)
        self._run(self._terms)

    def position(self, game: int) -> Position:
        """Returns the position of a game now; raises ValueError where there is no such game."""
        self._require_ready()
        if not 0 <= game < self.num_games:
            raise ValueError(f"there is no game {game}; games are 0 to {self.num_games - 1}")
        return self._position(game)

    def _position(self, game: int) -> Position:
        (position,) = positions_of(self.variant, self._boards()[[game]], self.games.is_black[[game]])
        return position

    def _boards(self) -> np.ndarray:
        """The boards as opponents see them, uint64 [N, 3, W]."""
        return self.games.boards.reshape(self.num_games, 3, -1)

    def _run(self, terms: _Terms) -> None:
        """Plays `_moves` and lets opponents from outside answer, until every game awaits its caller or rests.

        Where that is broken off the games that were to move have none any more, and must begin anew.
        """
        games = self.games
        moving_mask = self._moves != HOLD
        self._is_ready = False
        try:
            while (waiting := _advance(games, self._moves, terms, self.variant.rules)) > 0:
                self._reply()
            if waiting < 0:
                raise ValueError(
                    f"the opponent's first move ends game {-1 - waiting}, which leaves the learner none: "
                    f"{self.variant.name}"
                )
        except BaseException:
            games.turn[moving_mask] = NOT_BEGUN
            raise
        self._is_ready = bool(games.turn.min() >= CALLERS)

    def _reply(self) -> None:
        """Fills `_moves` with the moves of opponents from outside, where they are to move."""
        games = self.games
        replies = np.full(self.num_games, HOLD)
        waiting = np.flatnonzero(games.turn == OUTSIDERS)
        for row in np.unique(games.opponent_row[waiting]).tolist():
            asked = waiting[games.opponent_row[waiting] == row]
            boards, is_black, rng_state = self._boards()[asked], games.is_black[asked], games.rng_state[asked]
            games.rng_state[asked], replies[asked] = ask(
                self._opponents[row], self.variant, boards, is_black, rng_state
            )
        illegal = _screen(games, replies, self._moves, OUTSIDERS, self.variant.rules)
        if illegal >= 0:
            opponent = self._opponents[games.opponent_row[illegal]]
            raise blame(f"opponent {opponent.name}", self._position(illegal), int(replies[illegal]))

    def _seed(self, seed: int | Sequence[int | None] | None, begun_mask: np.ndarray) -> None:
        """Draws the states of the games that begin with a seed, or for the first time; nothing changes on an error."""
        drawn_mask = begun_mask & ~self._is_seeded
        seeds: dict[int, int] = {}
        if seed is not None:
            seeds = {game: one for game, one in enumerate(_seeds_of(seed, self.num_games)) if one is not None}
            drawn_mask |= begun_mask & np.isin(np.arange(self.num_games), list(seeds))
        games = np.flatnonzero(drawn_mask)
        states = [first_state(seeding.np_random(seeds.get(game))[0]) for game in games.tolist()]
        self.games.rng_state[games] = states
        self._is_seeded |= begun_mask

    def _checked_mask(self, reset_mask: object) -> np.ndarray:
        if isinstance(reset_mask, np.ndarray) and (reset_mask.dtype, reset_mask.shape) == (np.bool_, (self.num_games,)):
            return reset_mask
        raise ValueError(f"reset_mask is a bool array [{self.num_games}], not {reset_mask!r}")

    def _terms_of(self, start: Position, color: str) -> _Terms:
        kinds = [opponent.kind if isinstance(opponent, Baseline) else _OUTSIDE for opponent in self._opponents]
        return _Terms(
            start=np.array([start.player, start.opponent, start.legal], np.uint64),
            is_black_first=start.is_black_to_move,
            kinds=np.array(kinds, np.int64),
            first_row=len(self._opponents) - len(self._pool),
            color=COLORS.index(color),
            by_score=self._by_score,
            begins_anew=self._begins_anew,
            weights=square_weights(self.variant.size).copy(),  # to be written to, as after unpickling
        )

    def _require_ready(self) -> None:
        if not self._is_ready:
            raise ResetNeeded("games have not begun, or were broken off by an error: call reset() before step()")


def _checked_number(num_games: int) -> int:
    try:
        number = operator.index(num_games)
    except TypeError:
        raise TypeError(f"the number of games is a whole number, not {num_games!r}") from None
    if number < 1:
        raise ValueError(f"a batch has 1 game or more, got {number}")
    return number


def _seeds_of(seed: int | Sequence[int | None], num_games: int) -> list[int | None]:
    """Returns a seed for each game; raises ValueError for a wrong number of them, TypeError for what is no seed."""
    try:
        if isinstance(seed, int | np.integer):
            seed = range(operator.index(seed), operator.index(seed) + num_games)
        seeds = [None if one is None else operator.index(one) for one in seed]
    except TypeError:
        raise TypeError(f"a seed is a whole number, or one for each game, not {seed!r}") from None
    if len(seeds) != num_games:
        raise ValueError(f"seeds are one a game, {num_games}, got {len(seeds)}")
    if (least := min((one for one in seeds if one is not None), default=0)) < 0:
        raise ValueError(f"a seed is 0 or more, got {least}")
    return seeds


def _new_games(num_games: int, variant: Variant) -> Games:
    size, num_words = variant.size, len(variant.rules.squares)
    planes = (num_games, NUM_OBSERVATION_PLANES, size, size)
    return Games(
        boards=np.zeros((3 * num_games, num_words), np.uint64),
        is_black=np.zeros(num_games, np.bool_),
        turn=np.full(num_games, NOT_BEGUN, np.uint8),
        has_acted=np.zeros(num_games, np.bool_),
        is_learner_black=np.zeros(num_games, np.bool_),
        opponent_index=np.zeros(num_games, np.int64),
        opponent_row=np.zeros(num_games, np.int64),
        rng_state=np.zeros(num_games, np.uint64),
        last_move=np.full(num_games, HOLD),
        observation=np.zeros(planes, np.int8),
        action_mask=np.zeros((num_games, variant.num_actions), np.int8),
        reward=np.zeros(num_games),
        is_over=np.zeros(num_games, np.bool_),
        final_observation=np.zeros(planes, np.int8),
        final_is_black=np.zeros(num_games, np.bool_),
        final_opponent_index=np.zeros(num_games, np.int64),
        final_discs=np.zeros((num_games, 2), np.int64),
        final_score=np.zeros(num_games, np.int64),
        final_black_score=np.zeros(num_games, np.int64),
        is_forfeited=np.zeros(num_games, np.bool_),
        action=np.zeros(num_games, np.int64),
    )
