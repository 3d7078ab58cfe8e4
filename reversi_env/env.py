"""`Reversi-v0`: the game as a Gymnasium environment, against an opponent or with both sides in the caller's hands.

    env = gymnasium.make("reversi_env:Reversi-v0", variant="othello-6x6", opponent="greedy")
    observation, info = env.reset(seed=1)
    while True:
        action = env.action_space.sample(mask=info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(action)
        if terminated:
            break

With `opponent=None` the same loop plays both sides, and `info["to_play"]` says which one is asked.
"""

import operator
from dataclasses import replace
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias, cast

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from reversi_env.bitboard import load, store
from reversi_env.drawing.diagram import Diagram
from reversi_env.drawing.rgb import check_pixels, to_rgb
from reversi_env.drawing.text import shows_color, to_ansi
from reversi_env.encoding import NUM_OBSERVATION_PLANES, write_observation
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.naming import one_of
from reversi_env.opponent_pool import BatchOpponent, Pool, ask, blame, exchanged, is_pool, opponents_of
from reversi_env.options import (
    COLORS,
    ILLEGAL_ACTIONS,
    RESET_OPTIONS,
    REWARDS,
    checked_color,
    checked_position,
)
from reversi_env.position import LEGAL, OPPONENT, PLAYER, Position
from reversi_env.random_bits import draw_below, first_state
from reversi_env.rules import MUST_PASS, OVER, is_legal, legal_mask, play_square, rules_for_moves, status
from reversi_env.variant import Variant

Observation: TypeAlias = dict[str, np.ndarray]

_NOT_BEGUN = "no game has begun: call reset() first"
_BROKEN_OFF = "the game was broken off by an error: call reset() before step()"
_ENDED = "the game has ended: call reset() before step()"
_ILLEGAL = 3  # beside the statuses of `rules`


@kernel
def _play(
    boards: np.ndarray,
    action: int,
    planes: np.ndarray,
    mask: np.ndarray,
    field: np.ndarray,
    size: int,
    like: Bitboard,
) -> int:
    """Plays `action` on `boards`, uint64 [3, W] as in `Position`, and writes what the next side to move observes.

    Returns the status after it; or _ILLEGAL, and changes nothing. `field` is `Variant.field`.
    """
    rules = rules_for_moves(field, size, False, like)
    legal = load(boards, LEGAL, like)
    if not is_legal(legal, action, rules):
        return _ILLEGAL
    player, opponent = play_square(load(boards, PLAYER, like), load(boards, OPPONENT, like), action, rules)
    legal = legal_mask(player, opponent, rules)
    store(boards, PLAYER, player)
    store(boards, OPPONENT, opponent)
    store(boards, LEGAL, legal)
    outcome = status(player, opponent, legal, rules)
    write_observation(player, opponent, legal, outcome == MUST_PASS, planes, mask)
    return outcome


@kernel
def _play_one_word(
    boards: np.ndarray, action: int, planes: np.ndarray, mask: np.ndarray, field: np.ndarray, size: int
) -> int:
    return _play(boards, action, planes, mask, field, size, (np.uint64(0),))


@kernel
def _play_two_words(
    boards: np.ndarray, action: int, planes: np.ndarray, mask: np.ndarray, field: np.ndarray, size: int
) -> int:
    return _play(boards, action, planes, mask, field, size, (np.uint64(0), np.uint64(0)))


def action_space(variant: Variant) -> gymnasium.spaces.Discrete:
    """Returns the space of a variant's actions: the squares and the pass."""
    return gymnasium.spaces.Discrete(variant.num_actions)


def observation_space(variant: Variant) -> gymnasium.Space[Observation]:
    """Returns the space of what the side to play observes."""
    size = variant.size
    space = gymnasium.spaces.Dict(
        observation=gymnasium.spaces.Box(0, 1, (NUM_OBSERVATION_PLANES, size, size), np.int8),
        action_mask=gymnasium.spaces.Box(0, 1, (variant.num_actions,), np.int8),
    )
    # Gymnasium's type of a Dict space speaks of its parts, not of its samples.
    return cast(gymnasium.Space[Observation], space)


def with_last_move(position: Position, last_move: int | None) -> Diagram:
    """Returns the diagram of a position, with the move that led to it where there was one."""
    diagram = position.diagram()
    if last_move is None:
        return diagram
    mover = "white" if position.is_black_to_move else "black"
    return replace(
        diagram,
        last_move=None if last_move == position.variant.pass_move else last_move,
        caption=f"{mover} {position.move_name(last_move)}, {diagram.caption}",
    )


class ReversiEnv(gymnasium.Env[Observation, SupportsIndex]):
    """One game at a time. An action is a square, row · size + column, or the pass, size².

    variant: a name of `Variant.NAMES`, or a `Variant`.
    opponent: "random", "greedy", "positional"; a callable `(position, rng) -> move`, or an object that answers many
        games at once (`opponent_pool.BatchOpponent`); "module:factory", where `factory()` makes such a one; a list of
        these, of which each game draws one; or None: the caller moves both sides.
    color: the learner's where there is an opponent: "black" moves first, "white", or "random", drawn at each reset.
    reward: "result" (−1, 0, +1 at the end) or "score" (the final score / size²). It is the learner's, whoever moved
        last; without an opponent, that of the side whose action it was.
    illegal_action: "terminate" ends the game with −1, "raise" raises IllegalMoveError and leaves the game as it is.
    render_mode: "ansi" and "rgb_array" return the board from `render`, "human" prints each position.
    render_pixels: the height and width of "rgb_array".

    The observation holds `observation`, int8 [2, size, size] (the discs of the side to play, those of the other side),
    and `action_mask`, int8 [size² + 1]: the pass is set exactly when the side to play must pass, and must then be
    played as an action; at the end the mask is all zero. The opponent's moves and passes happen inside `step`, and
    inside `reset` where it moves first; the side to play is then always the learner, also at the end.

    `info` holds `action_mask` and `to_play`, and where the opponents are a list `opponent`, an index into it; at the
    end also `discs`, `winner` ("black", "white" or "draw") and `score`, in discs, from the point of view of the reward;
    after an illegal action also `illegal_action`, and the score is that of losing every square.

    `reset` takes the options `position`, as text or a `Position`, and `color`. Unknown names raise UnknownNameError.
    """

    metadata = {"render_modes": ["ansi", "human", "rgb_array"], "render_fps": 2}

    def __init__(
        self,
        variant: Variant | str = "othello",
        opponent: Pool = "random",
        color: str = "black",
        reward: str = "result",
        illegal_action: str = "terminate",
        render_mode: str | None = None,
        render_pixels: int = 512,
    ) -> None:
        self.variant = Variant.of(variant)
        self._opponents = opponents_of(opponent)
        self._has_pool = is_pool(opponent)
        self._color = checked_color(color, bool(self._opponents))
        self._reward = one_of("reward", reward, REWARDS)
        self._illegal_action = one_of("illegal_action", illegal_action, ILLEGAL_ACTIONS)
        self.render_mode = (
            None if render_mode is None else one_of("render mode", render_mode, self.metadata["render_modes"])
        )
        check_pixels(self.variant.size, render_pixels)
        self.render_pixels = render_pixels

        self.action_space = action_space(self.variant)
        self.observation_space = observation_space(self.variant)

        # The game now, relative to the side to move; `reset` fills it. Kernels write here, callers get copies.
        self._boards = np.zeros((3, len(self.variant.rules.squares)), np.uint64)
        self._planes = np.zeros((NUM_OBSERVATION_PLANES, self.variant.size, self.variant.size), np.int8)
        self._mask = np.zeros(self.variant.num_actions, np.int8)
        self._play = _play_one_word if self._boards.shape[1] == 1 else _play_two_words
        self._is_black_to_move = True
        self._is_learner_black = True
        self._last_move: int | None = None
        self._opponent_index = 0  # in the pool, drawn at each reset
        self._opponent: BatchOpponent | None = None
        self._rng_state = np.zeros(1, np.uint64)  # what everything random is drawn from
        self._is_seeded = False
        self._refusal: str | None = _NOT_BEGUN  # why `step` plays nothing

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins a game; raises ValueError for options that no game can begin with."""
        super().reset(seed=seed)
        options = options or {}
        for option in options:
            one_of("option of reset", option, RESET_OPTIONS)
        position = checked_position(self.variant, options.get("position"))
        has_opponent = bool(self._opponents)
        color = self._color if options.get("color") is None else checked_color(options["color"], has_opponent)

        if seed is not None or not self._is_seeded:
            self._rng_state[0] = first_state(self.np_random)
            self._is_seeded = True
        num_opponents = len(self._opponents)
        self._opponent_index = draw_below(self._rng_state, 0, num_opponents) if num_opponents > 1 else 0
        self._opponent = self._opponents[self._opponent_index] if has_opponent else None
        if color == "random":
            color = COLORS[draw_below(self._rng_state, 0, 2)]

        self._is_learner_black = color == "black"
        self._is_black_to_move = position.is_black_to_move
        self._boards[PLAYER], self._boards[OPPONENT] = position.player, position.opponent
        self._boards[LEGAL] = position.legal
        write_observation(
            position.player, position.opponent, position.legal, position.must_pass, self._planes, self._mask
        )
        self._last_move = None
        self._refusal = _BROKEN_OFF
        self._show()
        if has_opponent and not self._is_learner_to_move and self._reply() == OVER:
            raise ValueError(f"the opponent's first move ends the game, which leaves the learner none: {position.text}")
        self._refusal = None
        return self._observe()

    def step(self, action: SupportsIndex) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Plays the action, and the opponent's reply where there is an opponent."""
        if self._refusal is not None:
            raise ResetNeeded(self._refusal)
        move = _index(action, self.variant)
        self._refusal = _BROKEN_OFF  # which stays where drawing or the opponent raises
        outcome = self._advance(move)
        if outcome == _ILLEGAL:
            return self._forfeit(move)
        if outcome != OVER and self._opponents:
            outcome = self._reply()
        if outcome == OVER:
            return self._finish()
        self._refusal = None
        observation, info = self._observe()
        return observation, 0.0, False, False, info

    @property
    def position(self) -> Position:
        """The position now, with the side to move by the rules."""
        self._require_reset()
        player, opponent = tuple(self._boards[PLAYER]), tuple(self._boards[OPPONENT])
        return Position.from_bitboards(self.variant, player, opponent, self._is_black_to_move)

    @property
    def opponents(self) -> tuple[BatchOpponent, ...]:
        """Those of whom each game draws one; none where the caller moves both sides."""
        return self._opponents

    def set_opponent(self, opponent: Pool) -> None:
        """Changes whom games are played against from the next reset on, as where a league takes in a new player.

        Raises ValueError where that would make two-sided games one-sided or the other way round, or a pool of a single
        opponent or the other way round.
        """
        self._opponents = exchanged(self._opponents, opponent, self._has_pool)

    def action_masks(self) -> np.ndarray:
        """Returns a new int8 array [size² + 1], one on each legal action: where sb3-contrib looks for it."""
        self._require_reset()
        return self._mask.copy()

    def render(self) -> str | np.ndarray | None:
        """Returns the board as text ("ansi") or as uint8 [P, P, 3] ("rgb_array"); None where it is printed."""
        self._require_reset()
        if self.render_mode is None:
            gymnasium.logger.warn('render() shows nothing without a render mode: make(…, render_mode="ansi")')
        elif self.render_mode == "ansi":
            return to_ansi(self._diagram(), color=True)
        elif self.render_mode == "rgb_array":
            return to_rgb(self._diagram(), self.render_pixels)
        return None

    @property
    def _is_learner_to_move(self) -> bool:
        return self._is_black_to_move == self._is_learner_black

    def _advance(self, move: int) -> int:
        """Plays one ply and returns the status after it; or _ILLEGAL, and changes nothing."""
        if not 0 <= move <= self.variant.pass_move:  # no kernel takes integers of every size
            return _ILLEGAL
        outcome = self._play(self._boards, move, self._planes, self._mask, self.variant.field, self.variant.size)
        if outcome != _ILLEGAL:
            self._is_black_to_move = not self._is_black_to_move
            self._last_move = move
            self._show()
        return outcome

    def _reply(self) -> int:
        """Plays the opponent's move, or its forced pass, and returns the status after it."""
        if self._mask[-1]:
            return self._advance(self.variant.pass_move)
        assert self._opponent is not None
        self._rng_state, moves = ask(
            self._opponent,
            self.variant,
            self._boards.copy()[None],
            np.array([self._is_black_to_move]),
            self._rng_state.copy(),
        )
        move = int(moves[0])
        outcome = self._advance(move)
        if outcome == _ILLEGAL:
            raise blame(f"opponent {self._opponent.name}", self.position, move)
        return outcome

    def _observe(self) -> tuple[Observation, dict[str, Any]]:
        planes, is_black = self._planes, self._is_black_to_move
        if self._opponents and is_black != self._is_learner_black:
            planes, is_black = planes[::-1], not is_black  # the learner ended the game
        info: dict[str, Any] = {"action_mask": self._mask.copy(), "to_play": "black" if is_black else "white"}
        if self._has_pool:
            info["opponent"] = self._opponent_index
        return {"observation": planes.copy(), "action_mask": self._mask.copy()}, info

    def _finish(self) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        position = self.position
        is_black = self._is_learner_black if self._opponents else not self._is_black_to_move
        score = position.black_score if is_black else -position.black_score
        return self._end(position, score, is_black)

    def _forfeit(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        position = self.position
        if self._illegal_action == "raise":
            self._refusal = None
            position.play(action)  # raises, with a sentence
        self._mask[:] = 0
        observation, reward, terminated, truncated, info = self._end(
            position, -self.variant.num_squares, self._is_black_to_move
        )
        return observation, reward, terminated, truncated, {**info, "illegal_action": action}

    def _end(
        self, position: Position, score: int, is_black: bool
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Returns what the last step of a game returns; `score` is that of black or of white."""
        self._refusal = _ENDED
        observation, info = self._observe()
        black_score = score if is_black else -score
        info["discs"] = {"black": position.num_black, "white": position.num_white}
        info["winner"] = "black" if black_score > 0 else "white" if black_score < 0 else "draw"
        info["score"] = score
        result = (score > 0) - (score < 0)
        reward = result if self._reward == "result" else score / self.variant.num_squares
        return observation, float(reward), True, False, info

    def _show(self) -> None:
        if self.render_mode == "human":
            print(to_ansi(self._diagram(), color=shows_color()), end="\n\n", flush=True)

    def _diagram(self) -> Diagram:
        return with_last_move(self.position, self._last_move)

    def _require_reset(self) -> None:
        if self._refusal is _NOT_BEGUN:
            raise ResetNeeded(_NOT_BEGUN)


def _index(action: SupportsIndex, variant: Variant) -> int:
    try:
        return operator.index(action)
    except TypeError:
        raise TypeError(f"an action is an integer from 0 to {variant.pass_move}, the pass, not {action!r}") from None
