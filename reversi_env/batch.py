"""Many games at once, one kernel call a step, in arrays that are filled in place: for loops of one's own.

    batch = Batch(1024, "othello", opponent="greedy", color="random")
    batch.reset(seed=1)
    while True:
        batch.step(choose(batch.observation, batch.action_mask))
        learn(batch.reward, batch.is_over, …)

The vector environment (`vector_env`) is this in Gymnasium's dress. A game of a batch is that of `ReversiEnv` with the
same seed and actions, ply by ply.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding

from reversi_env.bitboard import bit_of, load, store
from reversi_env.encoding import NUM_OBSERVATION_PLANES, write_mask, write_squares
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.naming import one_of
from reversi_env.opponent_pool import BatchOpponent, Pool, blame, exchanged, is_pool, opponents_of, positions_of
from reversi_env.opponents import Baseline, draw_favorite, square_weights
from reversi_env.options import COLORS, ILLEGAL_ACTIONS, REWARDS, checked_color, checked_position
from reversi_env.position import LEGAL, OPPONENT, PLAYER, Position
from reversi_env.random_bits import draw_below, first_state, next_state
from reversi_env.rules import MUST_MOVE, MUST_PASS, OVER, Rules, final_score, legal_mask, play_square, status
from reversi_env.variant import Variant
from reversi_env.vectors import bit, count, is_empty, no_square, overlap

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
    opponent: np.ndarray  # int64 [N], which of the pool plays the game
    rng_state: np.ndarray  # uint64 [N], SplitMix64
    last_move: np.ndarray  # int64 [N], HOLD before the first
    observation: np.ndarray  # int8 [N, 2, size, size]
    action_mask: np.ndarray  # int8 [N, A]
    reward: np.ndarray  # float64 [N]
    is_over: np.ndarray  # bool [N], whether the step ended a game; the following arrays speak of that game
    final_observation: np.ndarray  # int8 [N, 2, size, size]
    final_is_black: np.ndarray  # bool [N], whether `final_observation` is black's
    final_opponent: np.ndarray  # int64 [N]
    final_discs: np.ndarray  # int64 [N, 2], black's and white's
    final_score: np.ndarray  # int64 [N], in discs, of the side that the reward is for
    final_black_score: np.ndarray  # int64 [N]
    is_forfeited: np.ndarray  # bool [N], whether the step ended a game by an illegal action
    illegal_action: np.ndarray  # int64 [N], that action


class _Terms(NamedTuple):
    """What the games of a batch have in common beside the rules."""

    start: np.ndarray  # uint64 [3, W], as in `Games`
    is_black_first: bool
    kinds: np.ndarray  # int64 [P], the opponents' kinds in `opponents`, or _OUTSIDE; empty: the caller moves both sides
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
    pass_move = rules.size * rules.size
    for game in range(actions.shape[0]):
        action = actions[game]
        if games.turn[game] != turn:
            moves[game] = HOLD
            continue
        legal = load(games.boards, 3 * game + LEGAL, rules.squares)
        if action == pass_move:
            is_legal = is_empty(legal)
        elif 0 <= action < pass_move:
            is_legal = not is_empty(overlap(legal, bit(bit_of(action, rules.size, legal), legal)))
        else:
            is_legal = False
        moves[game] = action if is_legal else FORFEIT
        if not is_legal and first_illegal < 0:
            first_illegal = game
    return first_illegal


@kernel
def _begin(games: Games, game: int, terms: _Terms) -> None:
    """Draws the opponent and the color of a new game, where there is something to draw."""
    num_opponents = terms.kinds.shape[0]
    games.opponent[game] = draw_below(games.rng_state, game, num_opponents) if num_opponents > 1 else 0
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
    games.final_opponent[game] = games.opponent[game]
    if not for_mover and has_opponent:
        player, opponent = opponent, player
        is_black = not is_black
    games.final_is_black[game] = is_black
    # Both are written: a copy from array to array would cost seconds of compiling, for its error messages.
    _observe(player, opponent, game, games.final_observation)
    _observe(player, opponent, game, games.observation)
    write_mask(no_square(player), False, rules.size, games.action_mask, game * (rules.size * rules.size + 1))


@kernel
def _observe(player: Bitboard, opponent: Bitboard, game: int, observation: np.ndarray) -> None:
    size = observation.shape[2]
    first = game * NUM_OBSERVATION_PLANES * size * size
    write_squares(player, size, observation, first)
    write_squares(opponent, size, observation, first + size * size)


@kernel
def _advance(games: Games, moves: np.ndarray, terms: _Terms, rules: Rules) -> int:
    """Plays `moves`, int64 [N], and on until each game awaits its caller, an outside opponent's move, or nothing.

    A move is that of the side to move, and legal, or BEGIN, HOLD or FORFEIT. Returns how many games await an opponent
    from outside; or −1 − n where game n ended before its caller could act.
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
            kind = terms.kinds[games.opponent[game]]
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
            _observe(player, opponent, game, games.observation)
            write_mask(legal, outcome == MUST_PASS, rules.size, games.action_mask, game * (pass_move + 1))
    return num_waiting


class Batch:
    """N games, each against an opponent or with both sides in the caller's hands.

    variant, opponent, color, reward and illegal_action are those of `ReversiEnv`; but opponent is None unless given,
    and an illegal action raises.
    begins_anew: whether a game that ends is followed by a new one within the same step. If not, it rests until
        `reset(games=…)`, and actions for it are ignored.

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
        if num_games < 1:
            raise ValueError(f"a batch has 1 game or more, got {num_games}")
        self.variant = Variant.of(variant)
        self._opponents = opponents_of(opponent)
        self.has_pool = is_pool(opponent)
        self._color = checked_color(color, bool(self._opponents))
        self._by_score = one_of("reward", reward, REWARDS) == "score"
        self._raises = one_of("illegal_action", illegal_action, ILLEGAL_ACTIONS) == "raise"
        self._begins_anew = begins_anew
        self._terms = self._terms_of(Position(self.variant), self._color)
        self.games = _new_games(num_games, self.variant)
        self._moves = np.full(num_games, HOLD)
        self._is_seeded = False
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
        return self.games.is_learner_black if self._opponents else self.games.is_black

    @property
    def reward(self) -> np.ndarray:
        return self.games.reward

    @property
    def is_over(self) -> np.ndarray:
        return self.games.is_over

    @property
    def opponents(self) -> tuple[BatchOpponent, ...]:
        """Those of whom each game draws one; none where the caller moves both sides."""
        return self._opponents

    def set_opponent(self, opponent: Pool) -> None:
        """Changes whom games play against from their next beginning on; games under way go on against whom they had.

        So a pool may grow at its end, as in a league. Raises ValueError where a game would lose its opponent, and where
        `ReversiEnv.set_opponent` does.
        """
        opponents = exchanged(self._opponents, opponent, self.has_pool)
        is_played = (self.games.turn == CALLERS) | (self.games.turn == OUTSIDERS)
        kept = self.games.opponent[is_played].max(initial=-1) + 1
        if opponents[:kept] != self._opponents[:kept]:
            raise ValueError(f"the first {kept} of the pool are playing, so the new pool begins with them")
        self._opponents = opponents
        self._terms = self._terms_of(Position(self.variant), self._color)

    def reset(
        self,
        seed: int | Sequence[int | None] | None = None,
        games: np.ndarray | None = None,
        position: Position | str | None = None,
        color: str | None = None,
    ) -> None:
        """Begins all games, or those that `games`, bool [N], marks.

        Game n draws from `seed + n`, or from the n-th of several seeds, or goes on drawing where that is None.
        `position` and `color` hold for this call. Raises ValueError for what no game can begin with.
        """
        start = checked_position(self.variant, position)
        color = self._color if color is None else checked_color(color, bool(self._opponents))
        if games is None:
            self._moves.fill(BEGIN)
        else:
            self._moves[:] = np.where(games, BEGIN, HOLD)
        self._seed(seed, self._moves == BEGIN)
        self.games.reward[self._moves == BEGIN] = 0
        self.games.is_over[self._moves == BEGIN] = False
        terms = self._terms if position is None and color == self._color else self._terms_of(start, color)
        self._run(terms)

    def step(self, actions: np.ndarray) -> None:
        """Plays an action, integers [N], in each game, and the opponents' replies.

        Raises ResetNeeded before `reset`, ValueError for another shape or type, IllegalMoveError with all games left as
        they are.
        """
        self._require_ready()
        actions = np.asarray(actions)
        if actions.shape != self._moves.shape or not np.issubdtype(actions.dtype, np.integer):
            raise ValueError(
                f"actions are one integer a game, [{self.num_games}], not {actions.dtype} {list(actions.shape)}"
            )
        actions = np.ascontiguousarray(actions, np.int64)
        games = self.games
        illegal = _screen(games, actions, self._moves, CALLERS, self.variant.rules)
        if illegal >= 0 and self._raises:
            raise blame(f"game {illegal}", self.position(illegal), int(actions[illegal]))
        games.reward.fill(0)
        games.is_over.fill(False)
        np.equal(self._moves, FORFEIT, out=games.is_forfeited)
        games.illegal_action[:] = actions
        self._run(self._terms)

    def position(self, game: int) -> Position:
        """Returns the position of a game now."""
        self._require_ready()
        return self._position(game)

    def _position(self, game: int) -> Position:
        (position,) = positions_of(self.variant, self._boards()[[game]], self.games.is_black[[game]])
        return position

    def _boards(self) -> np.ndarray:
        """The boards as opponents see them, uint64 [N, 3, W]."""
        return self.games.boards.reshape(self.num_games, 3, -1)

    def _run(self, terms: _Terms) -> None:
        """Plays `_moves` and lets opponents from outside answer, until every game awaits its caller or rests."""
        games, rules = self.games, self.variant.rules
        self._is_ready = False  # and stays so where an opponent raises
        while (waiting := _advance(games, self._moves, terms, rules)) > 0:
            replies = self._replies()
            illegal = _screen(games, replies, self._moves, OUTSIDERS, rules)
            if illegal >= 0:
                opponent = self._opponents[games.opponent[illegal]]
                raise blame(f"opponent {opponent.name}", self._position(illegal), int(replies[illegal]))
        if waiting < 0:
            raise ValueError(
                f"the opponent's first move ends game {-1 - waiting}, which leaves the learner none: "
                f"{self.variant.name}"
            )
        self._is_ready = bool(games.turn.min() >= CALLERS)

    def _replies(self) -> np.ndarray:
        """Returns the moves of opponents from outside, int64 [N], where they are to move."""
        games = self.games
        replies = np.full(self.num_games, HOLD)
        waiting = np.flatnonzero(games.turn == OUTSIDERS)
        for index in np.unique(games.opponent[waiting]).tolist():
            rows = waiting[games.opponent[waiting] == index]
            rng_state, moves = games.rng_state[rows], replies[rows]
            opponent = self._opponents[index]
            # Everything is a copy, so that an opponent cannot change a game.
            opponent.choose(self.variant, self._boards()[rows], games.is_black[rows], rng_state, moves)
            games.rng_state[rows], replies[rows] = rng_state, moves
        return replies

    def _seed(self, seed: int | Sequence[int | None] | None, begun: np.ndarray) -> None:
        if seed is None and self._is_seeded:
            return
        if seed is None or isinstance(seed, int | np.integer):
            first = None if seed is None else int(seed)
            seeds = [None if first is None else first + game for game in range(self.num_games)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_games:
            raise ValueError(f"seeds are one a game, {self.num_games}, got {len(seeds)}")
        for game in np.flatnonzero(begun).tolist():
            if seeds[game] is not None or not self._is_seeded:
                self.games.rng_state[game] = first_state(seeding.np_random(seeds[game])[0])
        self._is_seeded = True

    def _terms_of(self, start: Position, color: str) -> _Terms:
        kinds = [opponent.kind if isinstance(opponent, Baseline) else _OUTSIDE for opponent in self._opponents]
        return _Terms(
            start=np.array([start.player, start.opponent, start.legal], np.uint64),
            is_black_first=start.is_black_to_move,
            kinds=np.array(kinds, np.int64),
            color=COLORS.index(color),
            by_score=self._by_score,
            begins_anew=self._begins_anew,
            weights=square_weights(self.variant.size),
        )

    def _require_ready(self) -> None:
        if not self._is_ready:
            raise ResetNeeded("no game has begun, or a step was broken off: call reset() first")


def _new_games(num_games: int, variant: Variant) -> Games:
    size, num_words = variant.size, len(variant.rules.squares)
    planes = (num_games, NUM_OBSERVATION_PLANES, size, size)
    return Games(
        boards=np.zeros((3 * num_games, num_words), np.uint64),
        is_black=np.zeros(num_games, np.bool_),
        turn=np.full(num_games, NOT_BEGUN, np.uint8),
        has_acted=np.zeros(num_games, np.bool_),
        is_learner_black=np.zeros(num_games, np.bool_),
        opponent=np.zeros(num_games, np.int64),
        rng_state=np.zeros(num_games, np.uint64),
        last_move=np.full(num_games, HOLD),
        observation=np.zeros(planes, np.int8),
        action_mask=np.zeros((num_games, variant.num_actions), np.int8),
        reward=np.zeros(num_games),
        is_over=np.zeros(num_games, np.bool_),
        final_observation=np.zeros(planes, np.int8),
        final_is_black=np.zeros(num_games, np.bool_),
        final_opponent=np.zeros(num_games, np.int64),
        final_discs=np.zeros((num_games, 2), np.int64),
        final_score=np.zeros(num_games, np.int64),
        final_black_score=np.zeros(num_games, np.int64),
        is_forfeited=np.zeros(num_games, np.bool_),
        illegal_action=np.zeros(num_games, np.int64),
    )
