"""The truth for any learner: wrappers that tell, near the end of a game, what every action is worth.

    env = agents.ExactInfo(agents.make_env("greedy"), empties=14)          # or of agents.make_vec("greedy", 64)
    observation, info = env.reset(seed=1)
    while True:
        observation, reward, terminated, truncated, info = env.step(choose(observation))
        info["exact_scores"], info["optimal_mask"], info["regret"]

They speak of the side to play with the variant's scoring and goal, and of perfect play by both sides, whoever the
opponent is. Around `CanonicalSymmetry` they speak of the board as it is shown; inside it they cannot.

A position is solved when it is reached, and what was solved is remembered; other positions cost a game 0.05 ms, and one
of many a thousandth. Solving takes these CPU milliseconds by the number of empty squares, on average over positions of
random games:

    empty squares    14   13   12   10    8    6    4
    othello          29   20   14    8    5    2    1
    anti-reversi     52   29   16    7    2    1    1
    othello-10x10   174   78   34   10    4    2    1
"""

import operator
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper

from agents.search.solver import Solver
from reversi_env import Position, Variant
from reversi_env.batch import NOBODYS
from reversi_env.env import ReversiEnv
from reversi_env.symmetry import transform_policy
from reversi_env.vector_env import ReversiVectorEnv

UNKNOWN_SCORE = int(np.iinfo(np.int16).min)  # of an illegal action, and of all where the position is not solved
UNKNOWN_REGRET = -1  # no NaN, which `check_env` would take for an environment that does not repeat itself
DEFAULT_EMPTIES = 14

_TABLE_ENTRIES = 1 << 16  # 2 MB, on 10×10 4; a larger one solves no faster with so few empty squares
_ILLEGAL = -1  # stands for an action of any size
_MOST_REMEMBERED = 1 << 14  # positions, in some 12 MB; learners meet those of 4×4 again and again

Info: TypeAlias = dict[str, Any]
Env: TypeAlias = gymnasium.Env[Any, SupportsIndex]
Vector: TypeAlias = VectorEnv[Any, np.ndarray, np.ndarray]


class ExactScores:
    """Solves positions of one variant with few empty squares; what it has solved it remembers."""

    def __init__(self, variant: Variant, empties: int = DEFAULT_EMPTIES) -> None:
        if empties < 0:
            raise ValueError(f"empties is a number of squares, 0 or more, got {empties}")
        self.variant = variant
        self.empties = empties
        self._solver = Solver(variant, _TABLE_ENTRIES)
        self._remembered: dict[Position, np.ndarray] = {}

    def of(self, position: Position) -> np.ndarray:
        """Returns the final score of each action under perfect play, for the side to move: int16 [size² + 1].

        UNKNOWN_SCORE stands for illegal actions; and for all where the game is over, or more squares are empty than
        are solved.
        """
        scores = np.full(self.variant.num_actions, UNKNOWN_SCORE, np.int16)
        if position.num_empties > self.empties:
            return scores
        if position not in self._remembered:
            for move, solution in self._solver.solve_moves(position).items():
                scores[move] = solution.score
            if len(self._remembered) == _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[position] = scores
        return self._remembered[position].copy()

    def regret(self, scores: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Returns what actions, int [N], lose in discs, int64 [N], where they have these scores, int16 [N, size² + 1].

        An action without a score, or none at all, loses every square, as the environments count an illegal one.
        """
        best = scores.max(axis=1).astype(np.int64)
        is_action = (actions >= 0) & (actions < self.variant.num_actions)
        taken = scores[np.arange(len(scores)), np.where(is_action, actions, 0)]
        is_legal = is_action & (taken != UNKNOWN_SCORE)
        loss = best - np.where(is_legal, taken, -self.variant.num_squares)
        regret: np.ndarray = np.where(best == UNKNOWN_SCORE, UNKNOWN_REGRET, loss)
        return regret


def optimal_mask(scores: np.ndarray) -> np.ndarray:
    """Returns which actions have the best known score, int8 of the shape of `scores`, [..., size² + 1]."""
    best = scores.max(axis=-1, keepdims=True)
    mask: np.ndarray = ((scores == best) & (best != UNKNOWN_SCORE)).astype(np.int8)
    return mask


class ExactInfo(gymnasium.Wrapper[Any, SupportsIndex, Any, SupportsIndex], RecordConstructorArgs):
    """A game whose `info` tells the truth of positions with at most `empties` empty squares; 4×4 begins with 12.

    exact_scores: int16 [size² + 1], the final score of each legal action under perfect play, for the side to play;
        UNKNOWN_SCORE elsewhere, and everywhere in a position that is not solved.
    optimal_mask: int8 [size² + 1], one on the best of them; all zero in a position that is not solved.
    regret: after a step, how many discs its action lost against the best one; UNKNOWN_REGRET where that position was
        not solved. An illegal action that ends the game counts as losing every square.

    Given a vector environment it makes the wrapper for that, `ExactVectorInfo`.
    """

    def __new__(cls, env: Any = None, empties: int = DEFAULT_EMPTIES) -> Any:  # copies are made without arguments
        return ExactVectorInfo(env, empties) if isinstance(env, VectorEnv) else super().__new__(cls)

    def __init__(self, env: Env, empties: int = DEFAULT_EMPTIES) -> None:
        RecordConstructorArgs.__init__(self, empties=empties)
        super().__init__(env)
        if not isinstance(env.unwrapped, ReversiEnv):
            raise TypeError(f"ExactInfo solves the positions of Reversi-v0, not of {env.unwrapped!r}")
        self._game = env.unwrapped
        self._exact = ExactScores(self._game.variant, empties)
        self._scores = np.empty(0, np.int16)  # of the actions now

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Info]:
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info | self._look(info)

    def step(self, action: SupportsIndex) -> tuple[Any, SupportsFloat, bool, bool, Info]:
        scores = self._scores
        observation, reward, terminated, truncated, info = self.env.step(action)
        taken = _ILLEGAL if "illegal_action" in info else operator.index(action)
        (regret,) = self._exact.regret(scores[None], np.array([taken])).tolist()
        return observation, reward, terminated, truncated, info | self._look(info) | {"regret": regret}

    def action_masks(self) -> np.ndarray:
        """Returns a new int8 array [size² + 1], one on each action that `step` takes as legal."""
        masks: np.ndarray = self.env.get_wrapper_attr("action_masks")()
        return masks

    def _look(self, info: Info) -> Info:
        """Returns what is told of the position now, and keeps the scores."""
        if info["action_mask"].any():
            scores = self._exact.of(self._game.position)
            scores = transform_policy(scores, info.get("symmetry", 0), self._game.variant.size)
        else:
            scores = np.full_like(info["action_mask"], UNKNOWN_SCORE, np.int16)
        self._scores = scores
        return {"exact_scores": scores.copy(), "optimal_mask": optimal_mask(scores)}


class ExactVectorInfo(VectorWrapper):  # which takes no types before Gymnasium 1.4
    """Many games that tell what `ExactInfo` does, as Gymnasium's vector environments hand it on.

    `infos["_regret"]` says in which games a step was made; of a game that ended and was followed by another within
    the step, `infos["final_info"]` tells it.
    """

    def __init__(self, env: Vector, empties: int = DEFAULT_EMPTIES) -> None:
        super().__init__(env)
        if not isinstance(env.unwrapped, ReversiVectorEnv):
            raise TypeError(
                f"ExactInfo solves the positions of Reversi-v0, not of {env.unwrapped!r}; single environments side by "
                'side wear it one by one: gymnasium.make_vec(…, vectorization_mode="sync", wrappers=[ExactInfo])'
            )
        self._batch = env.unwrapped.batch
        self._exact = ExactScores(env.unwrapped.variant, empties)
        self._scores = np.empty(0, np.int16)  # [N, size² + 1], of the actions now

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Info]:
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # seeds may be many
        self._look()
        return observations, infos | self._told(self._scores, infos["_action_mask"])

    def step(self, actions: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, Info]:
        scores, has_acted = self._scores, self._batch.games.turn != NOBODYS
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        self._look()
        infos |= self._told(self._scores, infos["_action_mask"])
        regret = self._exact.regret(scores, np.asarray(actions))
        if "final_info" in infos:
            ended = infos["_final_info"]
            nothing = np.full_like(scores, UNKNOWN_SCORE)
            infos["final_info"] |= self._told(nothing, ended) | _masked("regret", regret, ended)
            has_acted &= ~ended
        if has_acted.any():
            infos |= _masked("regret", regret, has_acted)
        return observations, rewards, terminations, truncations, infos

    def action_masks(self) -> np.ndarray:
        """Returns a new int8 array [N, size² + 1], one on each legal action."""
        return self._batch.action_mask.copy()

    def _look(self) -> None:
        """Keeps the scores of the actions now."""
        batch = self._batch
        self._scores = np.full(batch.action_mask.shape, UNKNOWN_SCORE, np.int16)
        num_empties = self._exact.variant.num_squares - np.count_nonzero(batch.observation, axis=(1, 2, 3))
        for game in np.flatnonzero((batch.games.turn != NOBODYS) & (num_empties <= self._exact.empties)).tolist():
            self._scores[game] = self._exact.of(batch.position(game))

    def _told(self, scores: np.ndarray, told_mask: np.ndarray) -> Info:
        return _masked("exact_scores", scores, told_mask) | _masked("optimal_mask", optimal_mask(scores), told_mask)


def _masked(name: str, values: np.ndarray, told_mask: np.ndarray) -> Info:
    """Returns an info as Gymnasium's vector environments give it: zeros for games of which it is not told."""
    told = told_mask.reshape(-1, *[1] * (values.ndim - 1))
    return {name: np.where(told, values, 0).astype(values.dtype), f"_{name}": told_mask.copy()}
