"""Data sets of games on disk: a folder of NumPy files, each with some of the games, and a manifest.

    games-00000.npy     uint8 [N, L], a game a row: squares in the order of play, then padding
    scores-00000.npy    int8 [N], the final scores for black, −128 where none is told
    …
    manifest.json       variant, origin, number of games, what the rows mean, and the files' SHA-256

Such sequences are what interpretability research on Othello trains its networks on (Li et al. 2023, "Emergent World
Representations", arXiv:2210.13382). A square is row · size + column. Passes are left out ("omit"), or written as size²
("mark"). The padding is 255. L is as many moves as a game can have: 60 on 8×8, twice as many with passes. Any language
with a reader of .npy can use the files; `open_dataset` maps them into memory as a `GameDataset`.
"""

import hashlib
import io
import itertools
import json
import math
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO, SupportsIndex, TypeAlias

import numpy as np

from reversi_env.datasets import GameDataset, Part, check_seed, parts_of
from reversi_env.durable import alone_in, is_unfinished, new_file, new_folder, write_file
from reversi_env.jit import kernel
from reversi_env.naming import UnknownNameError, UsageError
from reversi_env.playouts import NO_MOVE, random_games
from reversi_env.position import Position
from reversi_env.records.record import GameRecord
from reversi_env.replay import NO_SCORE
from reversi_env.variant import Variant

FORMAT_VERSION = 1
PASSES = ("omit", "mark")
MANIFEST = "manifest.json"

_BLOCK = 1 << 14  # games made at a time
_MOST_SHARDS = 10_000
_MOST_GAMES = 1 << 40
_LARGEST_MANIFEST = 1 << 24  # bytes

OnShard: TypeAlias = Callable[[int, int, bool], None]  # shards so far, of how many, whether this one was there already


class DatasetError(ValueError):
    """A data set that is not there, unfinished or damaged; the sentence says which file and why."""


@dataclass(frozen=True)
class Plan:
    """What a data set is to hold."""

    variant: Variant
    num_games: int
    games_per_shard: int = 100_000  # a shard is held in memory while it is made
    passes: str = "omit"

    def __post_init__(self) -> None:
        for name in ("num_games", "games_per_shard"):
            object.__setattr__(self, name, _checked_number(name.removeprefix("num_"), getattr(self, name)))
        if self.passes not in PASSES:
            raise UnknownNameError("way to treat passes", self.passes, PASSES)
        if self.num_shards > _MOST_SHARDS:
            raise UsageError(
                f"{self.num_games} games make {self.num_shards} shards of {self.games_per_shard}; a data set has "
                f"{_MOST_SHARDS} at most, so put more games in each"
            )

    @property
    def num_shards(self) -> int:
        return -(-self.num_games // self.games_per_shard)

    @property
    def row_length(self) -> int:
        """The moves that a row has room for: a disc on each empty square, and at most one pass before each."""
        num_empties = Position(self.variant).num_empties
        return num_empties if self.passes == "omit" else 2 * num_empties

    def games_of(self, shard: int) -> range:
        """Returns the numbers of a shard's games."""
        first = shard * self.games_per_shard
        return range(first, min(first + self.games_per_shard, self.num_games))


def _checked_number(name: str, number: SupportsIndex) -> int:
    """Returns a number of games as a plain int; raises UsageError where it makes no sense."""
    is_whole = isinstance(number, SupportsIndex) and not isinstance(number, bool)
    if not is_whole or operator.index(number) < 1:
        raise UsageError(f"{name} is a whole number, at least 1, got {number!r}")
    if operator.index(number) > _MOST_GAMES:
        raise UsageError(f"{name} is at most {_MOST_GAMES}, more than any disk holds")
    return operator.index(number)


def write_random_games(folder: Path, plan: Plan, seed: int, on_shard: OnShard | None = None) -> None:
    """Writes a data set of random games; game n of a seed is the same whatever the number of games, in all or a shard.

    Goes on where an earlier call with the same arguments was stopped: the shards that it finished are checked and kept,
    or made anew where they are damaged.

    Raises UsageError where the folder holds a data set by another plan, DatasetError where it holds something else or
    another process writes to it, and OSError on a full disk.
    """
    described = _described(plan, {"kind": "random games", "seed": check_seed(seed)})
    folder.mkdir(parents=True, exist_ok=True)
    busy = DatasetError(f"another process is writing a data set to {folder}; name another folder")
    with alone_in(folder, busy):
        shards = _finished_shards(folder, described)
        _write_manifest(folder, described, shards)
        for shard in range(plan.num_shards):
            is_kept = shard < len(shards) and _is_intact(folder, shard, shards[shard])
            if not is_kept:
                part = _random_part(plan, seed, plan.games_of(shard))
                shards[shard : shard + 1] = [_write_shard(folder, shard, part)]
                _write_manifest(folder, described, shards)
            if on_shard:
                on_shard(shard + 1, plan.num_shards, is_kept)


def write_recorded_games(
    folder: Path,
    records: Iterable[GameRecord],
    variant: Variant,
    files: Sequence[str] = (),
    games_per_shard: int = 100_000,
    passes: str = "omit",
) -> Plan:
    """Writes a data set of recorded games as a whole, and returns what it holds; `files` are named in the manifest.

    Raises FileExistsError where the folder is there, ValueError for a game that is not played by `variant` or has a
    move that is not legal, and where there is no game; OSError on a full disk.
    """
    plan = Plan(variant, games_per_shard, games_per_shard, passes)  # of one shard at first
    remaining = iter(records)
    num_games = 0
    shards: list[dict[str, str]] = []
    folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder) as temporary:
        while parts := list(parts_of(itertools.islice(remaining, games_per_shard), variant)):
            moves = np.concatenate([_rows(part.moves, plan) for part in parts])
            scores = np.concatenate([part.black_scores for part in parts])
            shards.append(_write_shard(temporary, len(shards), Part(moves, scores)))
            num_games += len(moves)
        if not num_games:
            raise DatasetError(f"there are no games to write to {folder}")
        plan = Plan(variant, num_games, games_per_shard, passes)
        _write_manifest(temporary, _described(plan, {"kind": "records", "files": list(files)}), shards)
    return plan


def open_dataset(folder: str | os.PathLike[str], check: bool = True) -> GameDataset:
    """Returns the games of a folder, mapped into memory.

    Raises DatasetError where the folder holds no finished data set, or a file is not the one that was written: its
    size and type are always compared, its SHA-256 with `check`, which reads all of it. File names come from the shards'
    numbers and never from the manifest.
    """
    path = Path(folder)
    manifest = _read_manifest(path)
    shards = manifest.pop("shards", None)
    plan = _plan_of(path, manifest)
    _check_shards(path, shards)
    if len(shards) < plan.num_shards:
        raise DatasetError(
            f"{path} is unfinished: it has {len(shards)} of {plan.num_shards} shards; the command that began it goes on"
        )
    parts = []
    for shard, digests in enumerate(shards[: plan.num_shards]):
        num_games = len(plan.games_of(shard))
        moves, scores = (path / name for name in _file_names(shard))
        part = Part(_mapped(moves, "uint8", num_games, plan.row_length), _mapped(scores, "int8", num_games))
        if check:
            for name in _file_names(shard):
                _check_digest(path / name, digests[name])
        parts.append(part)
    return _MappedDataset(plan.variant, parts, path)


class _MappedDataset(GameDataset):
    """Games on disk; pickled, it is the name of its folder."""

    def __init__(self, variant: Variant, parts: Sequence[Part], folder: Path) -> None:
        super().__init__(variant, parts)
        self._folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return open_dataset, (self._folder.absolute(), False)


# Shards


def _random_part(plan: Plan, seed: int, numbers: range) -> Part:
    start = Position(plan.variant)
    part = Part(np.empty((len(numbers), plan.row_length), np.uint8), np.empty(len(numbers), np.int8))
    for first in range(0, len(numbers), _BLOCK):
        block = slice(first, min(first + _BLOCK, len(numbers)))
        games = random_games(start, block.stop - first, seed, numbers.start + first)
        part.moves[block] = _rows(games.moves, plan)
        part.black_scores[block] = games.black_scores
    return part


def _rows(moves: np.ndarray, plan: Plan) -> np.ndarray:
    """Returns games as the plan writes them, uint8 [N, row_length], from uint8 [N, L], passes written."""
    rows = np.full((len(moves), plan.row_length), NO_MOVE, np.uint8)
    _fill_rows(moves, plan.variant.pass_move if plan.passes == "omit" else NO_MOVE, rows)
    return rows


@kernel
def _fill_rows(moves: np.ndarray, left_out: int, rows: np.ndarray) -> None:
    """Fills the beginning of each of `rows`, uint8 [N, K], with the moves of a game but for `left_out`."""
    for game in range(moves.shape[0]):
        length = 0
        for move in moves[game]:
            if move == NO_MOVE:
                break
            if move != left_out:
                rows[game, length] = move
                length += 1


def _file_names(shard: int) -> tuple[str, str]:
    return f"games-{shard:05}.npy", f"scores-{shard:05}.npy"


def _write_shard(folder: Path, shard: int, part: Part) -> dict[str, str]:
    """Writes the files of a shard and returns their digests by name."""
    digests = {}
    for name, array in zip(_file_names(shard), part, strict=True):
        with new_file(folder / name) as file:
            writer = _Digesting(file)
            np.save(writer, array, allow_pickle=False)
        digests[name] = writer.digest.hexdigest()
    return digests


class _Digesting:
    """A file that is only written to, and digests what it is given."""

    def __init__(self, file: BinaryIO) -> None:
        self.digest = hashlib.sha256()
        self._file = file

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)


def _is_intact(folder: Path, shard: int, digests: dict[str, str]) -> bool:
    try:
        for name in _file_names(shard):
            _check_digest(folder / name, digests[name])
    except DatasetError:
        return False
    return True


def _check_digest(path: Path, digest: str) -> None:
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from None
    if found != digest:
        raise DatasetError(f"{path} is not the file that was written: it was cut short or edited (its SHA-256 differs)")


def _mapped(path: Path, dtype: str, *shape: int) -> np.ndarray:
    """Returns an array on disk.

    The header is compared and not parsed: NumPy's parser lets out errors of all kinds when a header is damaged.
    """
    header = _header(dtype, shape)
    wanted = len(header) + math.prod(shape) * np.dtype(dtype).itemsize
    try:
        with open(path, "rb") as file:
            if file.read(len(header)) != header:
                raise DatasetError(f"{path} is no NumPy file of {dtype} {list(shape)}, of which the manifest tells")
            size = os.fstat(file.fileno()).st_size
        if size != wanted:
            raise DatasetError(f"{path} has {size} bytes, where {dtype} {list(shape)} take {wanted}: it was cut short")
        return np.memmap(path, dtype, "r", len(header), shape)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from None


def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Returns how a file begins that `np.save` writes."""
    file = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, fields)
    return file.getvalue()


# The manifest


def _described(plan: Plan, origin: dict[str, Any]) -> dict[str, Any]:
    """Returns all that a manifest says, but for the shards."""
    return {
        "format_version": FORMAT_VERSION,
        "variant": asdict(plan.variant),
        "origin": origin,
        "games": plan.num_games,
        "games_per_shard": plan.games_per_shard,
        "passes": plan.passes,
        "pass": plan.variant.pass_move,
        "padding": NO_MOVE,
        "no_score": NO_SCORE,
        "dtype": "uint8",
        "shape": [plan.num_games, plan.row_length],
        "version": _version(),
    }


def _version() -> str | None:
    try:
        return version("reversi-lab")
    except PackageNotFoundError:
        return None


def _write_manifest(folder: Path, described: dict[str, Any], shards: list[dict[str, str]]) -> None:
    write_file(folder / MANIFEST, json.dumps({**described, "shards": shards}, indent=1))


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        if path.stat().st_size > _LARGEST_MANIFEST:
            raise DatasetError(f"{path} has {path.stat().st_size} bytes, more than any manifest needs")
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DatasetError(f"{folder} is no data set: {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"{path} is not JSON: {error}") from None
    if not isinstance(manifest, dict):
        raise DatasetError(f"{path} holds no JSON object")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise DatasetError(
            f"{path} is of format version {manifest.get('format_version')!r}; this program reads {FORMAT_VERSION}"
        )
    return manifest


def _plan_of(folder: Path, manifest: dict[str, Any]) -> Plan:
    """Returns the plan of a manifest; raises DatasetError where the manifest says anything else than a plan's would."""
    try:
        plan = Plan(Variant(**manifest["variant"]), manifest["games"], manifest["games_per_shard"], manifest["passes"])
        wanted = _described(plan, manifest["origin"]) | {"version": manifest["version"]}
    except (TypeError, ValueError, KeyError) as error:
        raise DatasetError(f"{folder / MANIFEST} does not describe a data set: {error}") from None
    if wrong := sorted(name for name in wanted.keys() | manifest.keys() if wanted.get(name) != manifest.get(name)):
        name = wrong[0]
        raise DatasetError(
            f"{folder / MANIFEST} says {name} {manifest.get(name)!r}, where such a data set has {wanted.get(name)!r}"
        )
    return plan


def _check_shards(folder: Path, shards: object) -> None:
    """Raises DatasetError where a manifest's shards are no digests by file name."""
    is_sound = isinstance(shards, list) and all(
        isinstance(digests, dict) and set(digests) == set(_file_names(shard)) for shard, digests in enumerate(shards)
    )
    if not is_sound:
        raise DatasetError(f"{folder / MANIFEST} does not name the files of each shard and their SHA-256")


def _finished_shards(folder: Path, described: dict[str, Any]) -> list[dict[str, str]]:
    """Returns the digests of what an earlier call finished; raises UsageError where it had another plan."""
    if not (folder / MANIFEST).exists():
        if any(not is_unfinished(name, folder / MANIFEST) for name in os.listdir(folder)):
            raise DatasetError(f"{folder} holds files, and no data set; name a folder that is new or empty")
        return []
    manifest = _read_manifest(folder)
    shards: list[dict[str, str]] = manifest.pop("shards", None)
    _check_shards(folder, shards)
    for name in described:
        if name != "version" and manifest.get(name) != described[name]:
            raise UsageError(
                f"{folder} holds a data set with {name} {manifest.get(name)!r}, not {described[name]!r}; "
                "name another folder, or ask for the same to go on with it"
            )
    return shards
