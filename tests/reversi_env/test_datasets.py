"""Data sets: every sample against the oracle, torch's loaders, and folders that neither damage nor a stop can spoil."""

import json
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from reversi_env import Position, UnknownNameError, Variant, random_games, shards
from reversi_env.datasets import GameDataset, Part, PositionDataset, Sample
from reversi_env.durable import locked
from reversi_env.naming import UsageError
from reversi_env.notation import parse_transcript
from reversi_env.playouts import NO_MOVE
from reversi_env.records.formats import read_records
from reversi_env.records.record import GameRecord
from reversi_env.replay import NO_SCORE, moves_array, replay
from reversi_env.shards import DatasetError, Plan, open_dataset, write_random_games, write_recorded_games
from tests import oracle

VARIANTS = [
    Variant(4, "parallel", "fewest"),
    Variant(6, "free", scoring="tournament"),
    Variant(8),
    Variant(8, "-" * 27 + "OX------XO" + "-" * 27 + " O", "most", "tournament"),  # white begins
    Variant(10),
]


def records_of(variant: Variant, number: int, seed: int = 1) -> list[GameRecord]:
    games = random_games(Position(variant), number, seed)
    return [
        GameRecord(variant, tuple(moves[:length]))
        for moves, length in zip(games.moves.tolist(), games.lengths, strict=True)
    ]


class Expected:
    """What the oracle says of a position and what became of it."""

    def __init__(self, board: oracle.Board, side: str, move: int, variant: Variant) -> None:
        self.board, self.side, self.move, self.variant = board, side, move, variant
        self.score = 0

    def compare(self, sample: Sample) -> None:
        size, free = self.variant.size, self.variant.start == "free"
        squares = oracle.legal_squares(self.board, self.side, free)
        own = [float(cell == self.side) for cell in self.board]
        other = [float(cell == oracle.other(self.side)) for cell in self.board]
        legal = [float(square in squares) for square in range(size * size)]
        assert sample["planes"].dtype == np.float32
        assert sample["planes"].tolist() == np.reshape([own, other, legal], (3, size, size)).tolist()
        assert sample["action_mask"].dtype == np.int8
        assert sample["action_mask"].tolist() == [*legal, not squares]
        assert sample["move"] == self.move
        assert sample["score"] == self.score
        assert sample["result"] == (self.score > 0) - (self.score < 0)


def expected_positions(record: GameRecord, with_passes: bool) -> list[Expected]:
    """Plays a game by the oracle's rules."""
    variant, free = record.variant, record.variant.start == "free"
    board, side = list(variant.start_board[0]), variant.start_board[1]
    positions = []
    for move in record.moves:
        if with_passes or move != variant.pass_move:
            positions.append(Expected(board, side, move, variant))
        if move != variant.pass_move:
            board = oracle.play(board, side, move, free)
        side = oracle.other(side)
    for position in positions:
        position.score = oracle.score(board, position.side, variant.goal, variant.scoring)
    return positions


# In memory


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name[:20])
def test_every_position_agrees_with_the_oracle(variant: Variant) -> None:
    records = records_of(variant, 12)
    dataset = PositionDataset(GameDataset.from_records(records))
    expected = [position for record in records for position in expected_positions(record, with_passes=True)]
    assert len(dataset) == len(expected)
    batch = dataset[:]
    for index, position in enumerate(expected):
        position.compare({name: values[index] for name, values in batch.items()})
    expected[7].compare(dataset[7])
    expected[-1].compare(dataset[-1])


def test_passes_left_out_make_no_position_and_change_no_other() -> None:
    variant = Variant(4)
    records = records_of(variant, 30)
    squares = [tuple(move for move in record.moves if move != variant.pass_move) for record in records]
    assert squares != [record.moves for record in records]
    moves = moves_array(squares)
    dataset = PositionDataset(GameDataset(variant, [Part(moves, replay(Position(variant), moves).black_scores)]))
    expected = [position for record in records for position in expected_positions(record, with_passes=False)]
    assert len(dataset) == len(expected)
    for index, position in enumerate(expected):
        position.compare(dataset[index])


def test_random_games_are_those_of_the_seed() -> None:
    dataset = GameDataset.random("othello-6x6", 10, seed=3, first=5)
    games = random_games(Position("othello-6x6"), 10, seed=3, first=5)
    for index, sample in enumerate(dataset[i] for i in range(10)):
        assert sample["moves"].tolist() == games.moves[index].tolist()
        assert (sample["length"], sample["black_score"]) == (games.lengths[index], games.black_scores[index])


def test_scores_follow_from_the_moves_or_else_are_as_stated() -> None:
    (finished,) = records_of(Variant(), 1)
    moves = finished.moves
    records = [
        GameRecord(Variant(), moves, black_score=99),
        GameRecord(Variant(), moves[:9], black_score=-12),
        GameRecord(Variant(), moves[:9], black_score=1000),
        GameRecord(Variant(), moves[:9], black_score=-1000),
        GameRecord(Variant(), moves[:9]),
    ]
    games = GameDataset.from_records(records)
    final = finished.game.position.black_score
    assert games[:]["black_score"].tolist() == [final, -12, 64, -64, NO_SCORE]
    assert len(PositionDataset(games)) == len(moves) + 9 + 9 + 9  # none of the game without a score


def test_games_of_another_variant_are_refused_but_their_scoring_may_differ() -> None:
    with pytest.raises(ValueError, match="a game of othello-6x6 is none of othello"):
        GameDataset.from_records(records_of(Variant(), 1) + records_of(Variant(6), 1))
    with pytest.raises(ValueError, match="there are no games, and no variant is given"):
        GameDataset.from_records([])
    assert len(GameDataset.from_records([], Variant())) == 0
    wipeout = GameRecord(Variant(), tuple(parse_transcript("e6f4e3f6g5d6e7f5c5", 8)))
    assert GameDataset.from_records([wipeout])[0]["black_score"] == 13
    assert GameDataset.from_records([wipeout], Variant(scoring="tournament"))[0]["black_score"] == 64


@pytest.mark.parametrize("index", [5, -6, [0, 5], np.array([-6])])
def test_an_index_outside_is_an_error(index: Any) -> None:
    with pytest.raises(IndexError, match="the data set has 5"):
        GameDataset.random("othello-4x4", 5, seed=1)[index]
    assert len(list(GameDataset.random("othello-4x4", 5, seed=1))) == 5  # so a loop ends


class Tensor:
    """What torch and others hand over: something that NumPy can turn into an array."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._values, dtype)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ([], []),
        ([-5, 4], [0, 4]),
        ((1, 2), [1, 2]),
        (range(3), [0, 1, 2]),
        (np.array([1, -1], np.int8), [1, 4]),
        (np.array([1, 3], np.uint64), [1, 3]),
        ([True, False, False, True, False], [0, 3]),
        (np.array([False] * 5), []),
        (Tensor([2, 0]), [2, 0]),
        (Tensor([False, True, False, False, False]), [1]),
        (slice(None, None, -2), [4, 2, 0]),
        (np.int64(3), 3),
        (Tensor(-2), 3),
    ],
)
def test_indices_and_masks_choose_samples(index: Any, expected: list[int] | int) -> None:
    dataset = GameDataset.random("othello-4x4", 5, seed=1)
    assert dataset[index]["moves"].tolist() == dataset[:]["moves"][expected].tolist()


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ([True, False], IndexError),
        (np.ones(6, bool), IndexError),
        ([[1, 2]], IndexError),
        (np.array([2**63], np.uint64), IndexError),
        (np.uint64(2**63), IndexError),
        ([1.0, 2.0], TypeError),
        (1.0, TypeError),
        (True, TypeError),
        ("1", TypeError),
        (["1"], TypeError),
        (None, TypeError),
        ([2**70], TypeError),
    ],
)
def test_what_is_no_index_is_refused(index: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        GameDataset.random("othello-4x4", 5, seed=1)[index]


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_that_would_be_taken_for_others_are_refused(tmp_path: Path, seed: int) -> None:
    with pytest.raises(UsageError, match="a seed is a whole number from 0 to"):
        GameDataset.random("othello-4x4", 1, seed)
    with pytest.raises(UsageError, match="a seed is a whole number from 0 to"):
        write_random_games(tmp_path / "games", Plan(Variant(4), 1), seed)
    assert not list(tmp_path.iterdir())
    assert len(GameDataset.random("othello-4x4", 1, 2**64 - 1)) == 1


@pytest.mark.parametrize(
    ("moves", "sentence"),
    [((0,) * 200_000, "move 1: a1 is not legal"), ((1, 0, 255, 255), "move 2"), ((300,), "move 1"), ((16,), "move 1")],
)
@pytest.mark.parametrize("passes", ["omit", "mark"])
def test_recorded_games_with_moves_that_are_not_legal_are_refused(
    tmp_path: Path, moves: tuple[int, ...], sentence: str, passes: str
) -> None:
    records = [GameRecord(Variant(4), (1,)), *[GameRecord(Variant(4), moves)] * 50]
    with pytest.raises(ValueError, match=sentence):
        write_recorded_games(tmp_path / "games", records, Variant(4), passes=passes)
    with pytest.raises(ValueError, match=sentence):
        GameDataset.from_records(records)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("passes", ["omit", "mark"])
def test_passes_left_out_of_records_are_written_where_they_are_marked(tmp_path: Path, passes: str) -> None:
    variant = Variant(4)
    whole = records_of(variant, 30)
    bare = [GameRecord(variant, tuple(move for move in game.moves if move != variant.pass_move)) for game in whole]
    for name, records in (("whole", whole), ("bare", bare)):
        write_recorded_games(tmp_path / name, records, variant, passes=passes)
    assert (rows_of(tmp_path / "whole") == rows_of(tmp_path / "bare")).all()
    assert (rows_of(tmp_path / "whole") == variant.pass_move).any() == (passes == "mark")


# Torch


def loaders(dataset: GameDataset | PositionDataset) -> Iterator[DataLoader[Any]]:
    yield DataLoader(dataset, batch_size=7, shuffle=True)  # type: ignore[arg-type]  # torch's protocol has no name
    sampler = BatchSampler(RandomSampler(dataset), 7, drop_last=False)  # type: ignore[arg-type]
    yield DataLoader(dataset, batch_size=None, sampler=sampler)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [GameDataset, PositionDataset])
def test_loaders_give_every_sample_once(kind: type) -> None:
    games = GameDataset.random("othello-4x4", 20, seed=1)
    dataset = games if kind is GameDataset else PositionDataset(games)
    for loader in loaders(dataset):
        batches = list(loader)
        assert len(batches) == -(-len(dataset) // 7)
        for name, values in dataset[:].items():
            found = np.concatenate([batch[name].numpy() for batch in batches])
            assert found.dtype == values.dtype
            assert sorted(found.reshape(len(dataset), -1).tolist()) == sorted(values.reshape(len(dataset), -1).tolist())


def spawned_sum(dataset: PositionDataset) -> float:
    return float(dataset[:]["planes"].sum())


def test_data_sets_go_to_spawned_processes(tmp_path: Path) -> None:
    write_random_games(tmp_path / "games", Plan(Variant(4), 30, 8), seed=1)
    on_disk = open_dataset(tmp_path / "games")
    assert len(pickle.dumps(on_disk)) < 1000  # the folder's name and not the games
    for games in (on_disk, GameDataset.random("othello-4x4", 30, seed=1)):
        dataset = PositionDataset(games)
        copied = pickle.loads(pickle.dumps(dataset))
        assert all((values == copied[:][name]).all() for name, values in dataset[:].items())


@pytest.mark.slow
def test_spawned_workers_load(tmp_path: Path) -> None:
    dataset = PositionDataset(GameDataset.random("othello-4x4", 30, seed=1))
    context = multiprocessing.get_context("spawn")
    loader = DataLoader(dataset, batch_size=16, num_workers=1, multiprocessing_context=context)  # type: ignore[arg-type]
    assert sum(float(batch["planes"].sum()) for batch in loader) == spawned_sum(dataset)


# On disk


def rows_of(folder: Path, kind: str = "games") -> np.ndarray:
    return np.concatenate([np.load(path) for path in sorted(folder.glob(f"{kind}-*.npy"))])


@pytest.mark.parametrize("passes", ["omit", "mark"])
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name[:20])
def test_shards_hold_the_games_of_the_seed_whatever_their_size(tmp_path: Path, variant: Variant, passes: str) -> None:
    games = random_games(Position(variant), 50, seed=9)
    sequences = [moves[:length] for moves, length in zip(games.moves.tolist(), games.lengths, strict=True)]
    if passes == "omit":
        sequences = [[move for move in moves if move != variant.pass_move] for moves in sequences]
    for games_per_shard in (1000, 50, 7):
        folder = tmp_path / str(games_per_shard)
        write_random_games(folder, Plan(variant, 50, games_per_shard, passes), seed=9)
        rows = rows_of(folder)
        assert rows.dtype == np.uint8
        assert rows.shape[1] == Position(variant).num_empties * (1 if passes == "omit" else 2)
        assert [[move for move in row if move != NO_MOVE] for row in rows.tolist()] == sequences
        assert all((row[:-1] != NO_MOVE)[row[1:] != NO_MOVE].all() for row in rows)  # padding at the end alone
        assert rows_of(folder, "scores").tolist() == games.black_scores.tolist()
        dataset = open_dataset(folder)
        assert dataset[:]["moves"].tolist() == rows.tolist()
        assert [dataset[index]["moves"].tolist() for index in (49, 0, 8)] == [
            rows[index].tolist() for index in (49, 0, 8)
        ]
        assert dataset[[49, 0, 8]]["black_score"].tolist() == games.black_scores[[49, 0, 8]].tolist()


def test_positions_on_disk_agree_with_the_oracle(tmp_path: Path) -> None:
    variant = Variant(4)
    write_random_games(tmp_path / "games", Plan(variant, 20, 6), seed=1)
    dataset = PositionDataset(open_dataset(tmp_path / "games"))
    expected = [position for record in records_of(variant, 20) for position in expected_positions(record, False)]
    assert len(dataset) == len(expected)
    for index in (0, 1, 70, 130, len(expected) - 1):
        expected[index].compare(dataset[index])


def test_recorded_games_are_written_with_their_scores(tmp_path: Path, data: Callable[[str], Path]) -> None:
    source = data("wthor/WTH_1983.wtb")
    records = [record for record in read_records(source) if isinstance(record, GameRecord)]
    plan = write_recorded_games(tmp_path / "games", records, records[0].variant, ["WTH_1983.wtb"], games_per_shard=100)
    dataset = open_dataset(tmp_path / "games")
    assert plan.num_games == len(dataset) == len(records)
    content = source.read_bytes()
    for row, (sample, record) in enumerate(zip(dataset, records, strict=True)):  # type: ignore[arg-type]
        told = content[16 + 68 * row + 8 : 16 + 68 * (row + 1)].rstrip(b"\0")
        assert [10 * (move // 8 + 1) + move % 8 + 1 for move in sample["moves"].tolist() if move != NO_MOVE] == list(
            told
        )
        assert sample["black_score"] == record.black_score
    with pytest.raises(FileExistsError, match="is there already"):
        write_recorded_games(tmp_path / "games", records, records[0].variant)
    with pytest.raises(DatasetError, match="there are no games to write"):
        write_recorded_games(tmp_path / "none", [], Variant())
    assert [path.name for path in tmp_path.iterdir()] == ["games"]


def test_a_shard_of_more_games_than_are_made_at_a_time_repeats_none(tmp_path: Path) -> None:
    number = shards._BLOCK + 20
    write_random_games(tmp_path, Plan(Variant(4), number), seed=1)
    games = random_games(Position(Variant(4)), 20, seed=1, first=shards._BLOCK)
    found = [[move for move in row if move != NO_MOVE] for row in rows_of(tmp_path)[-20:].tolist()]
    assert found == [[move for move in row if move not in (16, NO_MOVE)] for row in games.moves.tolist()]


def test_a_data_set_on_disk_is_found_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_random_games(Path("games"), Plan(Variant(4), 5), seed=1)
    pickled = pickle.dumps(open_dataset("games"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert len(pickle.loads(pickled)) == 5


# Interruption


class Killed(BaseException):
    pass


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stop_after(shards: int) -> Callable[[int, int, bool], None]:
    def on_shard(number: int, of: int, was_there: bool) -> None:
        if number == shards:
            raise Killed

    return on_shard


def test_what_was_stopped_goes_on_and_comes_out_the_same(tmp_path: Path) -> None:
    plan = Plan(Variant(4), 50, 10)
    write_random_games(tmp_path / "whole", plan, seed=2)
    folder = tmp_path / "stopped"
    with pytest.raises(Killed):
        write_random_games(folder, plan, 2, stop_after(3))
    with pytest.raises(DatasetError, match="is unfinished: it has 3 of 5 shards"):
        open_dataset(folder)
    (folder / ".games-00003.npy.x1y2z_34.tmp").write_bytes(b"half a shard that a killed process left")
    (folder / ".manifest.json.x1y2z_34.tmp").write_bytes(b"{")
    (folder / "games-00003.npy").write_bytes(b"a shard that the manifest does not know yet")
    kept = []
    write_random_games(folder, plan, 2, lambda number, of, was_there: kept.append((number, of, was_there)))
    assert kept == [(1, 5, True), (2, 5, True), (3, 5, True), (4, 5, False), (5, 5, False)]
    assert files_of(folder) == files_of(tmp_path / "whole")


def test_a_damaged_shard_is_made_anew_and_the_others_stay(tmp_path: Path) -> None:
    plan = Plan(Variant(4), 50, 10)
    write_random_games(tmp_path, plan, seed=2)
    before = files_of(tmp_path)
    (tmp_path / "games-00001.npy").write_bytes(before["games-00001.npy"][:-1] + b"\0")
    (tmp_path / "scores-00003.npy").unlink()
    made: list[int] = []
    write_random_games(tmp_path, plan, 2, lambda number, of, was_there: None if was_there else made.append(number))
    assert made == [2, 4]
    assert files_of(tmp_path) == before


@pytest.mark.parametrize(
    ("plan", "seed", "difference"),
    [
        (Plan(Variant(4), 50, 10), 3, "origin .*'seed': 2}, not .*'seed': 3}"),
        (Plan(Variant(4), 60, 10), 2, "games 50, not 60"),
        (Plan(Variant(4), 50, 11), 2, "games_per_shard 10, not 11"),
        (Plan(Variant(6), 50, 10), 2, "variant .*'size': 4.*'size': 6"),
        (Plan(Variant(4), 50, 10, "mark"), 2, "passes 'omit', not 'mark'"),
    ],
)
def test_a_folder_of_another_plan_is_left_alone(tmp_path: Path, plan: Plan, seed: int, difference: str) -> None:
    write_random_games(tmp_path, Plan(Variant(4), 50, 10), seed=2)
    before = files_of(tmp_path)
    with pytest.raises(UsageError, match=f"holds a data set with {difference}"):
        write_random_games(tmp_path, plan, seed)
    assert files_of(tmp_path) == before


def test_a_data_set_begun_by_another_version_goes_on(tmp_path: Path) -> None:
    write_random_games(tmp_path, Plan(Variant(4), 5), seed=1)
    edit(tmp_path, version="0.0.1")
    kept = []
    write_random_games(tmp_path, Plan(Variant(4), 5), 1, lambda number, of, was_there: kept.append(was_there))
    assert kept == [True]


def test_what_a_killed_process_left_of_the_first_manifest_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / ".manifest.json.x1y2z_34.tmp").write_bytes(b"{")
    write_random_games(tmp_path, Plan(Variant(4), 5), seed=1)
    assert sorted(files_of(tmp_path)) == ["games-00000.npy", "manifest.json", "scores-00000.npy"]


def test_an_editor_s_files_stay_where_writing_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".manifest.json.swp").write_text("mine")
    with pytest.raises(DatasetError, match="holds files, and no data set"):
        write_random_games(tmp_path, Plan(Variant(4), 5), seed=1)
    assert [path.name for path in tmp_path.iterdir()] == [".manifest.json.swp"]


def test_two_processes_do_not_write_one_data_set(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(DatasetError, match="another process is writing a data set to"):
        write_random_games(tmp_path, Plan(Variant(4), 5), seed=1)
    write_random_games(tmp_path, Plan(Variant(4), 5), seed=1)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(DatasetError, match="holds files, and no data set; name a folder that is new or empty"):
        write_random_games(tmp_path, Plan(Variant(4), 5), seed=1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


# Damage


def edit(folder: Path, **changes: object) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **changes}))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def damage_header(folder: Path, old: bytes, new: bytes) -> None:
    path = folder / "games-00000.npy"
    content = path.read_bytes()
    assert old in content
    assert len(old) == len(new)
    path.write_bytes(content.replace(old, new))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (
        lambda folder: (folder / "manifest.json").unlink(),
        "is no data set: .*manifest.json cannot be read",
    ),
    "no JSON": (lambda folder: (folder / "manifest.json").write_text("{"), "manifest.json is not JSON"),
    "deep JSON": (lambda folder: (folder / "manifest.json").write_text("[" * 100_000), "manifest.json is not JSON"),
    "a list": (lambda folder: (folder / "manifest.json").write_text("[]"), "holds no JSON object"),
    "newer": (lambda folder: edit(folder, format_version=2), "is of format version 2; this program reads 1"),
    "variant": (lambda folder: edit(folder, variant={"size": 7}), "does not describe a data set: a board has 4, 6, 8"),
    "no variant": (lambda folder: edit(folder, variant=None), "does not describe a data set"),
    "games": (lambda folder: edit(folder, games="10"), "games is a whole number"),
    "more games": (lambda folder: edit(folder, games=10**6), "make .* shards"),
    "many games": (lambda folder: edit(folder, games=10**400), "games is at most 1099511627776"),
    "passes": (lambda folder: edit(folder, passes="some"), "unknown way to treat passes 'some'"),
    "padding": (lambda folder: edit(folder, padding=0), "says padding 0, where such a data set has 255"),
    "unknown key": (lambda folder: edit(folder, path="/etc"), "says path '/etc', where such a data set has None"),
    "file names": (lambda folder: edit(folder, shards=[{"../x.npy": "0"}]), "does not name the files of each shard"),
    "shards": (lambda folder: edit(folder, shards=5), "does not name the files of each shard"),
    "missing shard": (lambda folder: (folder / "games-00001.npy").unlink(), "games-00001.npy cannot be read: No such"),
    "short shard": (
        lambda folder: truncate(folder / "games-00001.npy"),
        "games-00001.npy has 171 bytes, where .* take 176: it was cut short",
    ),
    "no NumPy": (
        lambda folder: (folder / "scores-00000.npy").write_bytes(b"PK\3\4"),
        "scores-00000.npy is no NumPy file",
    ),
    "objects": (
        lambda folder: np.save(folder / "games-00000.npy", np.array([{}], object), allow_pickle=True),
        "games-00000.npy is no NumPy file",
    ),
    "shape": (
        lambda folder: np.save(folder / "games-00000.npy", np.zeros((6, 13), np.uint8)),
        r"games-00000.npy is no NumPy file of uint8 \[6, 12\], of which the manifest tells",
    ),
    "dtype": (
        lambda folder: np.save(folder / "scores-00001.npy", np.zeros(4, np.int16)),
        r"scores-00001.npy is no NumPy file of int8 \[4\], of which the manifest tells",
    ),
    "open bracket": (
        lambda folder: damage_header(folder, b"(6, 12)", b"(((((6,"),
        "games-00000.npy is no NumPy file of uint8",
    ),
    "huge shape": (
        lambda folder: damage_header(folder, b"(6, 12), }" + b" " * 30, b"(" + b"9" * 34 + b",), }"),
        "games-00000.npy is no NumPy file of uint8",
    ),
    "fields": (lambda folder: damage_header(folder, b"'|u1'", b"[1,2]"), "games-00000.npy is no NumPy file of uint8"),
    "content": (
        lambda folder: np.save(folder / "games-00000.npy", np.zeros((6, 12), np.uint8)),
        "games-00000.npy is not the file that was written",
    ),
}


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_told_in_a_sentence(tmp_path: Path, damage: Callable[[Path], object], sentence: str) -> None:
    write_random_games(tmp_path / "games", Plan(Variant(4), 10, 6), seed=1)
    damage(tmp_path / "games")
    with pytest.raises(DatasetError, match=sentence) as raised:
        open_dataset(tmp_path / "games")
    assert "\n" not in str(raised.value)


def test_plans_that_make_no_sense_are_refused() -> None:
    for games, games_per_shard in ((0, 1), (1, 0), (-1, 5), (2.5, 1), (True, 1), ("5", 1)):
        with pytest.raises(UsageError, match="is a whole number, at least 1"):
            Plan(Variant(), games, games_per_shard)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="games_per_shard is at most"):
        Plan(Variant(), 1, 2**41)
    assert json.dumps(Plan(Variant(), np.int64(5)).num_games) == "5"  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="make 20000 shards of 1"):
        Plan(Variant(), 20_000, 1)
    with pytest.raises(UnknownNameError, match="did you mean omit"):
        Plan(Variant(), 1, 1, "omitt")


def test_shards_of_a_plan_tile_the_games() -> None:
    plan = Plan(Variant(), 25, 10)
    numbers = [number for shard in range(plan.num_shards) for number in plan.games_of(shard)]
    assert numbers == list(range(25))
    assert all(last.start == first.stop for first, last in pairwise(map(plan.games_of, range(3))))
