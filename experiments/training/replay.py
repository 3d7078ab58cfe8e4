"""The positions that the learner draws from: the newest of a run, on disk, mapped into memory.

Each round of games is a shard, a folder under the replay's own:

    000012/positions.npy     the positions, a row each: the fields of `Samples`
    000012/manifest.json     variant, number of positions, and the file's SHA-256

A shard is written under a temporary name, synced and renamed, and never changed afterwards. A checkpoint holds no
positions: it tells the rounds and digests of the shards that it needs (`Replay.arrays`), and these are kept for as long
as it is. What is read is compared with what ought to be there, and never unpickled.
"""

import contextlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from agents.manifest import MANIFEST, CheckpointError, check_file, digest_of, read_manifest
from agents.runs import TRAINER_TENSORS
from reversi_env import Variant
from reversi_env.bitboard import load
from reversi_env.durable import new_folder
from reversi_env.encoding import NUM_PLANES, write_squares
from reversi_env.jit import kernel
from reversi_env.rules import MUST_PASS, Rules, legal_mask, status
from reversi_env.symmetry import NUM_SYMMETRIES, inverse, square_map

FORMAT_VERSION = 1  # of a shard
REPLAY = "replay"  # under which a run has its shards, and a checkpoint its arrays: `replay.rounds`

_POSITIONS = "positions.npy"
_BLOCK = 1 << 12  # positions that are checked together
_DRAWN_TOGETHER = 1 << 14  # positions: some megabytes, and with hundreds of shards still many of each


@dataclass
class ReplayConfig:
    """How many of the newest positions are learned from: all at first, then a share that shrinks.

    Of N so far they are c · (1 + β · ((N / c)^α − 1) / α), as in KataGo (Wu 2019, arXiv:1902.10565, appendix C): the
    window is c when it is first full, grows there by β for each new position, and ever slower afterwards.
    """

    initial_window: int = 50_000  # c, positions
    window_growth: float = 0.4  # β; 0: the window stays as it is
    window_exponent: float = 0.75  # α

    def __post_init__(self) -> None:
        if not 1 <= self.initial_window <= 1 << 40:
            raise ValueError(f"initial_window must be from 1 to {1 << 40:,}, got {self.initial_window}")
        if not 0 <= self.window_growth <= 1:
            raise ValueError(f"window_growth must be from 0 to 1, got {self.window_growth}")
        if not 0 < self.window_exponent <= 1:
            raise ValueError(f"window_exponent must be above 0 and at most 1, got {self.window_exponent}")

    def window(self, num_positions: int) -> int:
        """Returns how many of so many positions are learned from."""
        first, exponent = self.initial_window, self.window_exponent
        if num_positions <= first:
            return num_positions
        growth = self.window_growth * ((num_positions / first) ** exponent - 1) / exponent
        return int(first * (1 + growth))


@dataclass(frozen=True)
class Samples:
    """Positions with what search and the game's end said of them; n of them.

    All is told for the side to move, which has a legal square or must pass.
    """

    player: np.ndarray  # uint64  [n, W]
    opponent: np.ndarray  # uint64  [n, W]
    policy: np.ndarray  # float16 [n, A]  what search made of the priors; sums to one
    policy_weight: np.ndarray  # float16 [n]  how much the policy counts; 0 where the search was too quick to teach
    value: np.ndarray  # float16 [n]  the search's expected result, in [-1, 1]
    result: np.ndarray  # int8    [n]  the game's: -1, 0, 1
    score: np.ndarray  # int8    [n]  the game's final score
    final_player: np.ndarray  # uint64  [n, W]  the discs that it holds at the game's end
    final_opponent: np.ndarray  # uint64  [n, W]  and those of the other side

    def __len__(self) -> int:
        return len(self.result)

    def at(self, rows: np.ndarray | slice) -> "Samples":
        return Samples(*(array[rows] for array in self.arrays().values()))

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays by name."""
        return {name: getattr(self, name) for name in _SAMPLE_ARRAYS}

    def check(self, variant: Variant) -> None:
        """Raises ValueError where shapes or dtypes are another variant's, or a position is none that can be learned.

        For samples that come from elsewhere.
        """
        dtype = _row_dtype(variant)
        for name, array in self.arrays().items():
            wanted, shape = dtype[name].base, (len(self), *dtype[name].shape)
            if array.dtype != wanted or array.shape != shape:
                raise ValueError(
                    f"{name} is {array.dtype} {list(array.shape)}; {variant.name} has {wanted} {list(shape)}"
                )
        for first in range(0, len(self), _BLOCK):
            for fault, is_at in _faults(_rows_of(self.at(slice(first, first + _BLOCK)), variant), variant):
                if is_at.any():
                    raise ValueError(f"position {first + int(is_at.argmax())}: {fault}")

    @staticmethod
    def empty(variant: Variant) -> "Samples":
        return _fields_of(np.empty(0, _row_dtype(variant)))

    @staticmethod
    def joined(parts: "Sequence[Samples]") -> "Samples":
        return Samples(*(np.concatenate([getattr(part, name) for part in parts]) for name in _SAMPLE_ARRAYS))


_SAMPLE_ARRAYS = tuple(field.name for field in fields(Samples))


def _row_dtype(variant: Variant) -> np.dtype[np.void]:
    """Returns how one position lies in a shard: the largest numbers first, so that nothing is out of line or wasted."""
    boards, actions = (len(variant.rules.squares),), (variant.num_actions,)
    return np.dtype(
        [
            ("player", "<u8", boards),
            ("opponent", "<u8", boards),
            ("final_player", "<u8", boards),
            ("final_opponent", "<u8", boards),
            ("policy", "<f2", actions),
            ("policy_weight", "<f2"),
            ("value", "<f2"),
            ("result", "i1"),
            ("score", "i1"),
        ]
    )


def _fields_of(rows: np.ndarray) -> Samples:
    """Returns the samples in rows of `_row_dtype`; views."""
    return Samples(*(rows[name] for name in _SAMPLE_ARRAYS))


def _rows_of(samples: Samples, variant: Variant) -> np.ndarray:
    """Returns samples as rows of `_row_dtype`; a copy."""
    rows = np.empty(len(samples), _row_dtype(variant))
    for name, array in samples.arrays().items():
        rows[name] = array
    return rows


def _faults(rows: np.ndarray, variant: Variant) -> Iterator[tuple[str, Any]]:
    """Yields what may be wrong with a position, and with which of `rows` it is, bool [n]."""
    samples = _fields_of(rows)
    squares = np.array(variant.rules.squares, np.uint64)
    for boards in ((samples.player, samples.opponent), (samples.final_player, samples.final_opponent)):
        yield "a square has two discs", (boards[0] & boards[1]).max(axis=1) > 0
        yield "a disc lies beside the board", ((boards[0] | boards[1]) & ~squares).max(axis=1) > 0
    policy, weight = samples.policy.astype(np.float32), samples.policy_weight.astype(np.float32)
    legal = _batch_of(rows, np.zeros(len(rows), np.int64), variant).legal
    yield "it is over", ~legal.any(axis=1)
    yield "the policy is not within 0..1", ~((policy >= 0) & (policy <= 1)).all(axis=1)
    yield "the policy has a move that is not legal", ((policy > 0) & ~legal).any(axis=1)
    yield "the policy does not sum to one", np.abs(policy.sum(axis=1) - 1) > 0.02  # float16 rounds each by 2^-11
    yield "the policy's weight is not finite and at least 0", ~((weight >= 0) & (weight < np.inf))
    yield "the value is not within -1..1", ~(np.abs(samples.value) <= 1)
    yield "the result is none of -1, 0, 1", (samples.result < -1) | (samples.result > 1)
    yield "the score is more than the board holds", np.abs(samples.score.astype(np.int16)) > variant.num_squares


@dataclass(frozen=True)
class Batch:
    """What a training step takes."""

    planes: np.ndarray  # float32 [B, 3, S, S]
    legal: np.ndarray  # bool    [B, A]
    policy: np.ndarray  # float16 [B, A]
    policy_weight: np.ndarray  # float16 [B]
    value: np.ndarray  # float16 [B]
    result: np.ndarray  # int8    [B]
    score: np.ndarray  # int8    [B]
    owner: np.ndarray  # int8    [B, S * S]  whose disc lies there at the end: 1 the side to move's, -1 the other's

    def __len__(self) -> int:
        return len(self.result)

    def at(self, rows: slice) -> "Batch":
        return Batch(*(getattr(self, field.name)[rows] for field in fields(self)))

    @staticmethod
    def empty(size: int, variant: Variant) -> "Batch":
        """Returns room for `size` positions."""
        return Batch(
            planes=np.empty((size, NUM_PLANES, variant.size, variant.size), np.float32),
            legal=np.empty((size, variant.num_actions), np.bool_),
            policy=np.empty((size, variant.num_actions), np.float16),
            policy_weight=np.empty(size, np.float16),
            value=np.empty(size, np.float16),
            result=np.empty(size, np.int8),
            score=np.empty(size, np.int8),
            owner=np.empty((size, variant.num_squares), np.int8),
        )


class _Shard(NamedTuple):
    """A round's positions, mapped into memory."""

    round: int
    digest: str
    rows: np.ndarray  # of `_row_dtype` [n]


class _Window(NamedTuple):
    """The newest positions: those of `shards` but for the first `num_left_out`."""

    shards: tuple[_Shard, ...]
    ends: np.ndarray  # int64 [k]  how many positions there are up to the end of each shard
    num_left_out: int

    @property
    def size(self) -> int:
        return int(self.ends[-1]) - self.num_left_out if len(self.ends) else 0


class Replay:
    """The newest positions of a run: learners draw from them, and each round of games adds some.

    One thread may draw while another adds: what is asked for at once is drawn from the window as it is then.
    """

    def __init__(self, variant: Variant, config: ReplayConfig, folder: Path | None = None) -> None:
        """Begins without positions. Shards go to `folder`, which is made with the first, or else to a temporary one."""
        self.variant = variant
        self.config = config
        self.num_rounds = 0
        self.num_positions = 0  # ever added
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="reversi-replay-")  # as long as this object lives
            folder = Path(self._temporary.name)
        self._folder = folder
        self._window = _window_of((), 0)

    def __len__(self) -> int:
        """Returns how many positions there are in the window."""
        return self._window.size

    @property
    def age(self) -> float:
        """The mean age of the window's positions in rounds, 0 for the newest."""
        window = self._window
        sizes = np.diff(window.ends, prepend=window.num_left_out)
        ages = [self.num_rounds - 1 - shard.round for shard in window.shards]
        return float(np.average(ages, weights=sizes)) if ages else 0.0

    def add(self, samples: Samples) -> None:
        """Adds a round's positions, and moves the window on. Raises OSError, which names the shard, on a full disk."""
        if len(samples):
            folder = self._folder / f"{self.num_rounds:06}"
            digest = _write_shard(folder, samples, self.variant)
            shard = _Shard(self.num_rounds, digest, _mapped(folder / _POSITIONS, self.variant, len(samples)))
            self.num_positions += len(samples)
            shards = (*self._window.shards, shard)
            self._window = _window_of(shards, self.config.window(self.num_positions))
        self.num_rounds += 1

    def batches(self, batch_size: int, num_batches: int, rng: np.random.Generator) -> Iterator[Batch]:
        """Yields batches of positions drawn uniformly with replacement, each under a symmetry drawn for it.

        Several batches are looked up together, which costs less where the window lies in many shards.
        """
        window = self._window
        num_together = max(_DRAWN_TOGETHER // batch_size, 1)
        for first in range(0, num_batches, num_together):
            num_now = min(num_together, num_batches - first)
            rows = _drawn(window, num_now * batch_size, self.variant, rng)
            symmetries = rng.integers(NUM_SYMMETRIES, size=len(rows))
            for begin in range(0, len(rows), batch_size):
                batch = slice(begin, begin + batch_size)
                yield _batch_of(rows[batch], symmetries[batch], self.variant)

    def draw(self, batch_size: int, rng: np.random.Generator) -> Batch:
        """Returns one batch, as `batches` yields them."""
        return next(self.batches(batch_size, 1, rng))

    def draw_samples(self, num_samples: int, rng: np.random.Generator) -> Samples:
        """Returns positions drawn uniformly with replacement, as they are."""
        return _fields_of(_drawn(self._window, num_samples, self.variant, rng))

    def parts(self) -> Iterator[Samples]:
        """Yields the window's positions a shard at a time, the oldest first; views of what lies on disk, read-only."""
        window = self._window
        for index, shard in enumerate(window.shards):
            yield _fields_of(shard.rows[window.num_left_out if index == 0 else 0 :])

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns what a checkpoint keeps: which shards the window lies in, and how much was added ever."""
        shards = self._window.shards
        return {
            "rounds": np.array([shard.round for shard in shards], np.int64),
            "digests": np.array([list(bytes.fromhex(shard.digest)) for shard in shards], np.uint8).reshape(-1, 32),
            "totals": np.array([self.num_rounds, self.num_positions], np.int64),
        }

    def load_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Takes up the shards that `arrays` told of; rounds from then on will be written anew.

        Raises ValueError where the arrays mean nothing, CheckpointError for a shard that is missing or damaged.
        """
        totals = arrays.get("totals", np.zeros(0))
        if arrays.keys() != self.arrays().keys() or totals.shape != (2,) or totals.dtype != np.int64:
            raise ValueError(f"the replay has {', '.join(sorted(arrays))}, expected {', '.join(sorted(self.arrays()))}")
        num_rounds, num_positions = totals.tolist()
        needed = _needed(arrays["rounds"], arrays["digests"])
        shards = tuple(
            _read_shard(self._folder / f"{number:06}", number, digest, self.variant)
            for number, digest in needed.items()
        )
        num_found = sum(len(shard.rows) for shard in shards)
        if num_rounds < 0 or any(number >= num_rounds for number in needed) or num_positions < num_found:
            raise ValueError(
                f"the replay counts {num_rounds} rounds of {num_positions} positions, and has more than that"
            )
        window = self.config.window(num_positions)
        self.num_rounds, self.num_positions = num_rounds, num_positions
        self._window = _window_of(shards, window)

    def prune(self, checkpoints: Iterable[Path]) -> None:
        """Removes the shards that neither the window nor one of these checkpoints needs."""
        needed = {shard.round for shard in self._window.shards}
        for checkpoint in checkpoints:
            with contextlib.suppress(CheckpointError):  # one that is damaged is of no use anyway
                needed |= needed_shards(checkpoint).keys()
        for folder in self._folder.iterdir() if self._folder.is_dir() else ():
            if folder.name.isdecimal() and int(folder.name) not in needed:
                shutil.rmtree(folder, ignore_errors=True)


def _window_of(shards: tuple[_Shard, ...], size: int) -> _Window:
    """Returns the newest `size` positions of shards, or all of fewer, without the shards that have none of them."""
    num_left_out = max(sum(len(shard.rows) for shard in shards) - size, 0)
    while shards and num_left_out >= len(shards[0].rows):
        num_left_out -= len(shards[0].rows)
        shards = shards[1:]
    return _Window(shards, np.cumsum([len(shard.rows) for shard in shards], dtype=np.int64), num_left_out)


def _drawn(window: _Window, num_rows: int, variant: Variant, rng: np.random.Generator) -> np.ndarray:
    """Returns rows drawn from a window uniformly with replacement."""
    places = window.num_left_out + rng.integers(window.size, size=num_rows)
    rows = np.empty(num_rows, _row_dtype(variant))
    order = np.argsort(places)
    bounds = np.searchsorted(places[order], window.ends)
    begin = 0
    for shard, end, bound in zip(window.shards, window.ends, bounds, strict=True):
        if begin < bound:
            ours = order[begin:bound]
            rows[ours] = shard.rows[places[ours] - (end - len(shard.rows))]
            begin = bound
    return rows


# Checkpoints and their shards


def needed_shards(checkpoint: Path) -> dict[int, str]:
    """Returns the rounds of the shards that a checkpoint needs, with their digests; none where it has no replay.

    Raises CheckpointError where its trainer state cannot be read.
    """
    path = checkpoint / TRAINER_TENSORS
    if not path.exists():
        return {}
    names = [f"{REPLAY}.rounds", f"{REPLAY}.digests"]
    try:
        with safe_open(path, framework="numpy") as file:
            found = [file.get_tensor(name) for name in names if name in file.keys()]  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is no file of tensors: {error}") from None
    try:
        return _needed(*found) if len(found) == len(names) else {}
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None


def check_shards(checkpoint: Path, folder: Path) -> None:
    """Raises CheckpointError where a shard that a checkpoint needs is missing in a replay's folder, or damaged."""
    for number, digest in needed_shards(checkpoint).items():
        _check_shard(folder / f"{number:06}", number, digest)


def _needed(rounds: np.ndarray, digests: np.ndarray) -> dict[int, str]:
    """Returns the digest of each round, in their order; raises ValueError where the arrays mean nothing."""
    is_fit = rounds.dtype == np.int64 and digests.dtype == np.uint8 and digests.shape == (*rounds.shape, 32)
    if not is_fit or rounds.ndim != 1 or (np.diff(rounds, prepend=-1) <= 0).any():
        raise ValueError("the replay's rounds or digests are none")
    return {number: digest.tobytes().hex() for number, digest in zip(rounds.tolist(), digests, strict=True)}


def _write_shard(folder: Path, samples: Samples, variant: Variant) -> str:
    """Writes a shard, over one that another run of the same folder has left, and returns its digest."""
    content = _header(variant, len(samples)) + _rows_of(samples, variant).tobytes()
    digest = digest_of(content)
    manifest = {
        "format_version": FORMAT_VERSION,
        "variant": asdict(variant),
        "positions": len(samples),
        "files": {_POSITIONS: digest},
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
    with new_folder(folder) as temporary:
        (temporary / _POSITIONS).write_bytes(content)
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1))
    return digest


def _read_shard(folder: Path, number: int, digest: str, variant: Variant) -> _Shard:
    """Returns a shard whose every position was looked at; raises CheckpointError for any other."""
    manifest = _check_shard(folder, number, digest)
    num_positions = manifest.get("positions")
    if manifest.get("variant") != asdict(variant) or type(num_positions) is not int or num_positions < 1:
        raise CheckpointError(f"{folder} holds no positions of {variant.name}")
    rows = _mapped(folder / _POSITIONS, variant, num_positions)
    try:
        _fields_of(rows).check(variant)
    except ValueError as error:
        raise CheckpointError(f"{folder / _POSITIONS} cannot be learned from: {error}") from None
    return _Shard(number, digest, rows)


def _check_shard(folder: Path, number: int, digest: str) -> dict[str, Any]:
    """Returns a shard's manifest; raises CheckpointError where it is not the one of that digest."""
    if not folder.exists():
        raise CheckpointError(f"{folder} is missing: the positions of round {number}, which the checkpoint needs")
    manifest = read_manifest(folder, "a replay's shard", FORMAT_VERSION)
    check_file(folder / _POSITIONS, digest)
    return manifest


def _mapped(path: Path, variant: Variant, num_positions: int) -> np.ndarray:
    """Returns a shard's rows on disk; raises CheckpointError where the file is no such array."""
    header, dtype = _header(variant, num_positions), _row_dtype(variant)
    wanted = len(header) + num_positions * dtype.itemsize
    try:
        with open(path, "rb") as file:
            is_ours = file.read(len(header)) == header and os.fstat(file.fileno()).st_size == wanted
        if not is_ours:
            raise CheckpointError(f"{path} does not hold the {num_positions} positions of which its manifest tells")
        return np.memmap(path, dtype, "r", len(header), (num_positions,)).view(np.ndarray)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from None


def _header(variant: Variant, num_positions: int) -> bytes:
    """Returns how the file of so many positions begins; it is compared, since NumPy's parser may fail in any way."""
    file = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(_row_dtype(variant)), "fortran_order": False}
    np.lib.format.write_array_header_1_0(file, {**described, "shape": (num_positions,)})
    return file.getvalue()


# Batches


def _batch_of(rows: np.ndarray, symmetries: np.ndarray, variant: Variant) -> Batch:
    """Returns rows of `_row_dtype` [B], each under its symmetry, int64 [B]."""
    num_rows, size = len(rows), variant.size
    planes = np.empty((num_rows, NUM_PLANES, size, size), np.float32)
    legal = np.empty((num_rows, variant.num_actions), np.bool_)
    policy = np.empty((num_rows, variant.num_actions), np.uint16)
    owner = np.empty((num_rows, variant.num_squares), np.int8)
    _write_batch(
        rows["player"],
        rows["opponent"],
        rows["final_player"],
        rows["final_opponent"],
        rows["policy"].view(np.uint16),
        symmetries,
        _origins(size),
        planes.reshape(num_rows, NUM_PLANES, variant.num_squares),
        legal,
        policy,
        owner,
        variant.rules,
    )
    return Batch(
        planes=planes,
        legal=legal,
        policy=policy.view(np.float16),
        policy_weight=rows["policy_weight"],
        value=rows["value"],
        result=rows["result"],
        score=rows["score"],
        owner=owner,
    )


@kernel
def _write_batch(
    player: np.ndarray,
    opponent: np.ndarray,
    final_player: np.ndarray,
    final_opponent: np.ndarray,
    policies: np.ndarray,
    symmetries: np.ndarray,
    origins: np.ndarray,
    planes: np.ndarray,
    legal: np.ndarray,
    policy: np.ndarray,
    owner: np.ndarray,
    rules: Rules,
) -> None:
    """Fills planes, legal, policy and owner, as `Batch` has them, each row under its symmetry.

    policies, policy: uint16 [B, A], the bits of float16, with which kernels cannot reckon.
    origins: int64 [8, S * S], which square each was before a symmetry.
    planes: float32 [B, 3, S * S].
    """
    size = rules.size
    num_squares = size * size
    squares = np.empty((5, num_squares), np.int8)
    for row in range(player.shape[0]):
        own, other = load(player, row, rules.squares), load(opponent, row, rules.squares)
        moves = legal_mask(own, other, rules)
        write_squares(own, size, squares, 0)
        write_squares(other, size, squares, num_squares)
        write_squares(moves, size, squares, 2 * num_squares)
        write_squares(load(final_player, row, rules.squares), size, squares, 3 * num_squares)
        write_squares(load(final_opponent, row, rules.squares), size, squares, 4 * num_squares)
        origin = origins[symmetries[row]]
        for square in range(num_squares):
            source = origin[square]
            for plane in range(3):
                planes[row, plane, square] = squares[plane, source]
            legal[row, square] = squares[2, source] != 0
            policy[row, square] = policies[row, source]
            owner[row, square] = squares[3, source] - squares[4, source]
        legal[row, num_squares] = status(own, other, moves, rules) == MUST_PASS
        policy[row, num_squares] = policies[row, num_squares]


@cache
def _origins(size: int) -> np.ndarray:
    """Returns which square each square was before each symmetry, int64 [8, S * S]."""
    return np.array([square_map(inverse(symmetry), size) for symmetry in range(NUM_SYMMETRIES)])
