"""Games and positions as data sets: what `torch.utils.data.DataLoader` takes, without torch.

A data set has a length, and answers an index with one sample and a list, array or slice of indices with a batch, made
in one kernel call. A loader asks for batches by itself; the quickest is

    DataLoader(dataset, batch_size=None, sampler=BatchSampler(RandomSampler(dataset), 1024, drop_last=False))

which takes each batch as it is. Data sets can be pickled, so workers may be spawned.
"""

import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from reversi_env.bitboard import store
from reversi_env.encoding import NUM_PLANES, write_planes
from reversi_env.geometry import Bitboard
from reversi_env.jit import kernel
from reversi_env.naming import UsageError
from reversi_env.playouts import NO_MOVE, random_games
from reversi_env.position import Position
from reversi_env.records.record import GameRecord
from reversi_env.replay import NO_SCORE, first_fault, moves_array, replay
from reversi_env.rules import MUST_PASS, Rules, legal_mask, play_square, status
from reversi_env.variant import Variant

Sample: TypeAlias = dict[str, Any]  # arrays by name

_BLOCK = 1 << 16  # games looked at together
_UINT8 = frozenset(range(256))


class Part(NamedTuple):
    """Some of a data set's games, in memory or on disk."""

    moves: np.ndarray  # uint8 [N, L], NO_MOVE after the last; passes written or left out
    black_scores: np.ndarray  # int8 [N], under the variant's scoring and goal, or NO_SCORE


class _Dataset(ABC):
    """What a loader asks of a data set."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batch(self, indices: np.ndarray) -> Sample:
        """Returns the samples at `indices`, int64 [B], each in 0..len−1."""

    def __getitem__(self, index: int | slice | Sequence[int] | np.ndarray) -> Sample:
        """Returns a sample, or a batch for a slice, for several indices, or for a mask, bool [len].

        An index may count from the end. Raises IndexError for one outside, and TypeError for what is no index.
        """
        if isinstance(index, slice):
            return self.batch(np.arange(*index.indices(len(self)), dtype=np.int64))
        indices = np.asarray(index)
        if indices.ndim:
            return self.batch(self._checked(indices))
        if indices.dtype == bool:
            raise TypeError(f"a sample's index is an integer, not {index!r}")
        batch = self.batch(self._checked(indices.reshape(1)))
        return {name: values[0] for name, values in batch.items()}

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Returns the samples at `indices` one by one, but made together; this is how a loader asks."""
        batch = self[indices]
        return [{name: values[row] for name, values in batch.items()} for row in range(len(indices))]

    def _checked(self, indices: np.ndarray) -> np.ndarray:
        """Returns indices, or the places of a mask, int64 [B], each in 0..len−1."""
        size = len(self)
        if indices.ndim != 1:
            raise IndexError(f"indices have one dimension, not {indices.ndim}")
        if indices.dtype == bool:
            if len(indices) != size:
                raise IndexError(f"the mask is for {len(indices)} samples; the data set has {size}")
            return np.flatnonzero(indices)
        if not len(indices):
            return np.zeros(0, np.int64)
        if indices.dtype.kind not in "iu":
            raise TypeError(f"indices are integers of 64 bits, not {indices.dtype}: {indices[0]!r}")
        if len(wrong := indices[(indices < -size) | (indices >= size)]):
            raise IndexError(f"there is no sample {wrong[0]}; the data set has {size}")
        indices = indices.astype(np.int64)
        return np.where(indices < 0, indices + size, indices)


class GameDataset(_Dataset):
    """Games of one variant. A sample holds

    moves: uint8 [L], 255 after the last; passes are size², or left out.
    length: int64, the number of moves.
    black_score: int8, the final score for black under the variant's scoring and goal, NO_SCORE where none is told.
    """

    def __init__(self, variant: Variant, parts: Sequence[Part]) -> None:
        """Takes the games of all parts, one after the other. Their moves must be legal."""
        self.variant = variant
        self._parts = tuple(parts)
        self._ends = np.cumsum([len(part.moves) for part in parts], dtype=np.int64)

    @classmethod
    def random(cls, variant: Variant | str, num_games: int, seed: int, first: int = 0) -> Self:
        """Returns `random_games` of a seed from a variant's start, passes written."""
        variant = Variant.of(variant)
        games = random_games(Position(variant), num_games, check_seed(seed), first)
        return cls(variant, [Part(games.moves, games.black_scores.astype(np.int8))])

    @classmethod
    def from_records(cls, records: Iterable[GameRecord], variant: Variant | None = None) -> Self:
        """Returns recorded games, passes written; scores follow from the moves, or else are as stated.

        The variant is the first game's where none is given. Raises ValueError for a game that is not played by it, or
        has a move that is not legal.
        """
        records = iter(records)
        if variant is None:
            first = next(records, None)
            if first is None:
                raise ValueError("there are no games, and no variant is given")
            variant, records = first.variant, itertools.chain([first], records)
        return cls(variant, list(parts_of(records, variant)))

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def parts(self) -> tuple[Part, ...]:
        """The games as they lie."""
        return self._parts

    def batch(self, indices: np.ndarray) -> Sample:
        moves = np.full(
            (len(indices), max((part.moves.shape[1] for part in self._parts), default=0)), NO_MOVE, np.uint8
        )
        scores = np.empty(len(indices), np.int8)
        homes = np.searchsorted(self._ends, indices, side="right")
        for home in np.unique(homes):
            part = self._parts[home]
            here = np.flatnonzero(homes == home)
            rows = indices[here] - (self._ends[home] - len(part.moves))
            moves[here, : part.moves.shape[1]] = part.moves[rows]
            scores[here] = part.black_scores[rows]
        return {"moves": moves, "length": _lengths(moves), "black_score": scores}


class PositionDataset(_Dataset):
    """The positions of games whose score is told: one before each move, and before each pass that is written.

    A sample is what a network learns from, all of it from the mover's point of view:

    planes: float32 [3, size, size], the mover's discs, the other side's, and the legal squares, as `encoding` has them.
    action_mask: int8 [size² + 1].
    move: int64, the action that was played.
    score, result: float32, the final score in discs, and its sign.

    A batch is played anew from the moves, about 300,000 positions a second; beside the games, eight bytes are kept for
    each of them.
    """

    def __init__(self, games: GameDataset) -> None:
        self.games = games
        lengths = [
            np.where(scores == NO_SCORE, 0, _lengths(moves)) for part in games.parts for moves, scores in _blocks(part)
        ]
        self._ends = np.cumsum(np.concatenate([*lengths, np.zeros(0, np.int64)]), dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def batch(self, indices: np.ndarray) -> Sample:
        owners = np.searchsorted(self._ends, indices, side="right")
        games = self.games.batch(owners)
        plies = indices - (self._ends[owners] - games["length"])
        variant = self.games.variant
        start, num_samples = Position(variant), len(indices)
        boards = np.empty((2, num_samples, len(start.player)), np.uint64)
        is_black = np.empty(num_samples, np.bool_)
        planes = np.empty((num_samples, NUM_PLANES, variant.size, variant.size), np.float32)
        mask = np.empty((num_samples, variant.num_actions), np.int8)
        first = start.player, start.opponent, start.is_black_to_move
        _find_positions(*first, games["moves"], plies, boards[0], boards[1], is_black, variant.rules)
        write_planes(boards[0], boards[1], planes, mask, variant.rules)
        score = np.where(is_black, 1, -1) * games["black_score"].astype(np.float32)
        return {
            "planes": planes,
            "action_mask": mask,
            "move": games["moves"][np.arange(num_samples), plies].astype(np.int64),
            "score": score.astype(np.float32),
            "result": np.sign(score).astype(np.float32),
        }


@kernel
def _find_positions(
    player: Bitboard,
    opponent: Bitboard,
    is_black: bool,
    moves: np.ndarray,
    plies: np.ndarray,
    players: np.ndarray,
    opponents: np.ndarray,
    blacks: np.ndarray,
    rules: Rules,
) -> None:
    """Fills in who stands where before move `plies[row]`, int64 [N], of each row of `moves`, uint8 [N, L].

    players, opponents: uint64 [N, W], the discs of the side that makes the move and of the other one.
    blacks: bool [N], whether that side is black.
    """
    pass_move = rules.size * rules.size
    for row in range(moves.shape[0]):
        own, other, black = player, opponent, is_black
        for ply in range(plies[row] + 1):
            move = moves[row, ply]
            if move != pass_move and status(own, other, legal_mask(own, other, rules), rules) == MUST_PASS:
                own, other, black = other, own, not black
            if ply < plies[row]:
                own, other = play_square(own, other, move, rules)
                black = not black
        store(players, row, own)
        store(opponents, row, other)
        blacks[row] = black


def check_seed(seed: int) -> int:
    """Returns the seed of random games; raises UsageError for one that would be taken for another."""
    if not 0 <= operator.index(seed) < 2**64:
        raise UsageError(f"a seed is a whole number from 0 to 2^64 - 1, got {seed}")
    return operator.index(seed)


# Records as arrays


def parts_of(records: Iterable[GameRecord], variant: Variant) -> Iterator[Part]:
    """Yields recorded games by the thousand, passes written.

    Scores are those to which the moves lead under the variant, or else as stated, within what a board can hold. Raises
    ValueError for a game that is not played by `variant`, or has a move that is not legal.
    """
    start = Position(variant)
    remaining = iter(records)
    while block := list(itertools.islice(remaining, _BLOCK)):
        for record in block:
            if not record.variant.is_played_like(variant):
                raise ValueError(f"a game of {record.variant.name} is none of {variant.name}")
            if len(record.moves) > 2 * variant.num_squares or not _UINT8.issuperset(record.moves):
                raise first_fault(start, record.moves)
        games = replay(start, moves_array([record.moves for record in block]))
        for index in np.flatnonzero(games.num_legal != [len(record.moves) for record in block]):
            raise first_fault(start, block[index].moves)
        stated = [NO_SCORE if record.black_score is None else record.black_score for record in block]
        most = variant.num_squares
        told = np.array([score if score == NO_SCORE else max(-most, min(score, most)) for score in stated], np.int8)
        longest = games.lengths.max()
        yield Part(games.moves[:, :longest], np.where(games.black_scores == NO_SCORE, told, games.black_scores))


def _blocks(part: Part) -> Iterator[Part]:
    for first in range(0, len(part.moves), _BLOCK):
        yield Part(part.moves[first : first + _BLOCK], part.black_scores[first : first + _BLOCK])


def _lengths(moves: np.ndarray) -> np.ndarray:
    """Returns the number of moves of each game, int64 [N]."""
    lengths: np.ndarray = (moves != NO_MOVE).sum(1, dtype=np.int64)
    return lengths
