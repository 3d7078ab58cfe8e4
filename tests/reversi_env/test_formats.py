"""Files of records: the format by the name, games that survive a chain of formats, and old files that stay."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reversi_env import Position, Variant, random_games
from reversi_env.naming import UnknownNameError, UsageError
from reversi_env.records import wthor
from reversi_env.records.formats import FORMATS, Record, format_of, read_records, write_records
from reversi_env.records.record import GameRecord, ProblemRecord, RecordError, WthorFacts
from reversi_env.replay import NO_SCORE, moves_array, replay


def games_of(path: Path) -> list[GameRecord]:
    games = list(read_records(path))
    assert all(isinstance(game, GameRecord) for game in games)
    return games  # type: ignore[return-value]  # as asserted


def random_records(number: int, variant: Variant | None = None) -> list[GameRecord]:
    variant = variant or Variant(scoring="tournament")
    games = random_games(Position(variant), number, seed=4)
    rows = zip(games.moves.tolist(), games.lengths.tolist(), games.black_scores.tolist(), strict=True)
    return [GameRecord(variant, tuple(moves[:length]), black_score=score) for moves, length, score in rows]


# Names


@pytest.mark.parametrize(
    ("name", "known"),
    [("a.ggf", "GGF"), ("a.SGF", "SGF"), ("a.txt", "transcripts"), ("a.obf", "OBF"), ("WTH_1977.WTB", "WTHOR")],
)
def test_the_format_is_told_by_the_ending_in_any_case(name: str, known: str) -> None:
    assert format_of(name).name == known


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("games.ggb", "unknown record format of games.ggb: '.ggb'; did you mean .ggf"),
        ("games", "unknown record format of games: ''; there are: .ggf, .obf, .sgf, .txt, .wtb"),
    ],
)
def test_an_unknown_ending_is_refused_before_anything_is_opened(name: str, sentence: str) -> None:
    with pytest.raises(UnknownNameError) as raised:
        read_records(name)
    assert str(raised.value).startswith(sentence)
    with pytest.raises(UnknownNameError):
        write_records(name, [])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        list(read_records(tmp_path / "none.ggf"))
    assert raised.value.filename == str(tmp_path / "none.ggf")


# What survives


def finished_games(path: Path) -> list[bytes]:
    """Returns the games of a WTHOR file that are over, as bytes."""
    content = path.read_bytes()
    records = games_of(path)
    scores = replay(Position(records[0].variant), moves_array([record.moves for record in records])).black_scores
    return [content[16 + 68 * row : 16 + 68 * (row + 1)] for row in np.flatnonzero(scores != NO_SCORE)]


def walk_the_chain(source: Path, folder: Path) -> None:
    """Leads the finished games of a year through all formats of games and compares bytes and moves."""
    original = source.read_bytes()
    finished = finished_games(source)
    start = folder / "start.wtb"
    start.write_bytes(original[:4] + len(finished).to_bytes(4, "little") + original[8:16] + b"".join(finished))
    write_records(folder / "a.ggf", read_records(start))
    write_records(folder / "b.sgf", read_records(folder / "a.ggf"))
    games = games_of(folder / "b.sgf")
    write_records(folder / "end.wtb", games)
    assert (folder / "end.wtb").read_bytes()[4:] == start.read_bytes()[4:]  # but for the day of writing
    write_records(folder / "c.txt", games)
    assert [game.moves for game in games_of(folder / "c.txt")] == [game.moves for game in games_of(start)]


@pytest.mark.parametrize("year", [1977, 1983])
def test_finished_games_survive_ggf_and_sgf_byte_for_byte_and_transcripts_in_their_moves(
    data: Callable[[str], Path], tmp_path: Path, year: int
) -> None:
    walk_the_chain(data(f"wthor/WTH_{year}.wtb"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("year", range(1977, 2022, 3))
def test_finished_games_of_many_years_survive(data: Callable[[str], Path], tmp_path: Path, year: int) -> None:
    walk_the_chain(data(f"wthor/WTH_{year}.wtb"), tmp_path)


@pytest.mark.parametrize("suffix", [".ggf", ".sgf", ".wtb"])
def test_random_games_come_back_with_passes_and_scores(tmp_path: Path, suffix: str) -> None:
    records = random_records(100)
    assert write_records(tmp_path / f"games{suffix}", records) == 100
    found = [(game.moves, game.black_score) for game in games_of(tmp_path / f"games{suffix}")]
    assert found == [(record.moves, record.black_score) for record in records]


def test_transcripts_are_of_the_variant_that_is_named(tmp_path: Path) -> None:
    records = random_records(20, Variant(6))
    write_records(tmp_path / "games.txt", records)
    games = list(read_records(tmp_path / "games.txt", variant=Variant(6)))
    assert [game.moves for game in games if isinstance(game, GameRecord)] == [record.moves for record in records]


# The name files of WTHOR


def test_names_are_written_beside_wthor_and_read_again(tmp_path: Path) -> None:
    record = random_records(1)[0]
    named = GameRecord(record.variant, record.moves, "Ada", "Bob", record.black_score, event="Cup")
    write_records(tmp_path / "cup.wtb", [named])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cup.jou", "cup.trn", "cup.wtb"]
    (game,) = games_of(tmp_path / "cup.wtb")
    assert (game.black, game.white, game.event) == ("Ada", "Bob", "Cup")


def name_file(path: Path, *names: str) -> None:
    with open(path, "wb") as file:
        wthor.write_players(file, names)


def named_game(black: str, white: str) -> GameRecord:
    record = random_records(1)[0]
    return replace(record, black=black, white=white, wthor=WthorFacts(1, 5, 6, 32, 24))


def test_a_merge_of_files_with_different_names_keeps_every_game_s_names(tmp_path: Path) -> None:
    write_records(tmp_path / "a.wtb", [named_game("Ada", "Bob")])
    write_records(tmp_path / "b.wtb", [named_game("Eve", "Ada")])
    games = [*games_of(tmp_path / "a.wtb"), *games_of(tmp_path / "b.wtb")]
    write_records(tmp_path / "both.wtb", games)
    assert [(game.black, game.white) for game in games_of(tmp_path / "both.wtb")] == [("Ada", "Bob"), ("Eve", "Ada")]


def test_games_without_names_get_none_from_the_common_file(tmp_path: Path) -> None:
    name_file(tmp_path / "WTHOR.JOU", *(f"player {number}" for number in range(10)))
    for record in (random_records(1)[0], named_game("", ""), named_game("Ada", "")):
        write_records(tmp_path / "games.wtb", [record])
        (game,) = games_of(tmp_path / "games.wtb")
        assert (game.black, game.white) == (record.black, record.white)


@pytest.mark.parametrize("name", ["wthor.wtb", "WTHOR.WTB"])
def test_games_called_like_the_common_names_are_refused(tmp_path: Path, name: str) -> None:
    name_file(tmp_path / "WTHOR.JOU", "common")
    before = (tmp_path / "WTHOR.JOU").read_bytes()
    with pytest.raises(UsageError, match="serve the games of all years; call the games otherwise"):
        write_records(tmp_path / name, [named_game("Ada", "Bob")])
    assert [path.name for path in tmp_path.iterdir()] == ["WTHOR.JOU"]
    assert (tmp_path / "WTHOR.JOU").read_bytes() == before


def test_a_name_file_of_another_case_is_written_over(tmp_path: Path) -> None:
    name_file(tmp_path / "GAMES.JOU", "", "old", "old", "old", "old", "old", "old")
    write_records(tmp_path / "games.wtb", [named_game("Ada", "Bob")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["GAMES.JOU", "games.wtb"]
    assert games_of(tmp_path / "games.wtb")[0].black == "Ada"


@pytest.mark.parametrize("spoilt", [".jou", ".trn", ".wtb"])
def test_names_and_games_are_replaced_together_or_stay(tmp_path: Path, spoilt: str) -> None:
    record = replace(named_game("Ada", "Bob"), event="Cup")
    write_records(tmp_path / "games.wtb", [record])
    (tmp_path / f"games{spoilt}").unlink()
    (tmp_path / f"games{spoilt}").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(IsADirectoryError) as raised:
        write_records(tmp_path / "games.wtb", [replace(record, black="Eve", event="Open")])
    assert raised.value.filename == str(tmp_path / f"games{spoilt}")
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_old_names_stay_where_no_game_can_be_written(tmp_path: Path) -> None:
    write_records(tmp_path / "games.wtb", [replace(named_game("Ada", "Bob"), event="Cup")])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == ["games.jou", "games.trn", "games.wtb"]
    with pytest.raises(RecordError, match="none of the records could be written"):
        write_records(tmp_path / "games.wtb", random_records(2, Variant(6)), lambda fault: None)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_old_names_do_not_stay_beside_new_games(tmp_path: Path) -> None:
    record = random_records(1)[0]
    write_records(tmp_path / "games.wtb", [replace(record, black="Ada", white="Bob")])
    write_records(tmp_path / "games.wtb", [replace(record, wthor=WthorFacts(0, 1, 2, 32, 0))])
    (game,) = games_of(tmp_path / "games.wtb")
    assert (game.black, game.white) == ("", "")


def test_a_name_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    write_records(tmp_path / "games.wtb", random_records(1))
    (tmp_path / "games.jou").mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        games_of(tmp_path / "games.wtb")
    assert raised.value.filename == str(tmp_path / "games.jou")


def test_games_without_names_get_no_name_files(tmp_path: Path) -> None:
    write_records(tmp_path / "games.wtb", random_records(2))
    assert [path.name for path in tmp_path.iterdir()] == ["games.wtb"]


def test_names_come_from_the_file_called_alike_or_else_from_the_common_one(tmp_path: Path) -> None:
    record = random_records(1)[0]
    write_records(tmp_path / "games.wtb", [record])

    def write_players(name: str, player: str) -> None:
        with open(tmp_path / name, "wb") as file:
            wthor.write_players(file, [player])

    write_players("other.jou", "neither")
    assert games_of(tmp_path / "games.wtb")[0].black == ""
    write_players("WTHOR.JOU", "common")
    assert games_of(tmp_path / "games.wtb")[0].black == "common"
    write_players("Games.Jou", "own")
    assert games_of(tmp_path / "games.wtb")[0].black == "own"


def test_a_damaged_name_file_is_a_fault_and_the_games_are_read_without_names(tmp_path: Path) -> None:
    write_records(tmp_path / "games.wtb", random_records(3))
    (tmp_path / "games.trn").write_bytes(b"no names")
    faults: list[RecordError] = []
    assert len(list(read_records(tmp_path / "games.wtb", faults.append))) == 3
    assert [str(fault) for fault in faults] == [
        f"{tmp_path / 'games.trn'}: byte 8: the file ends within the header, which has 16 bytes"
    ]


# Faults


def test_a_fault_names_the_file_and_the_place(tmp_path: Path) -> None:
    (tmp_path / "games.txt").write_text("f5d6c3\nf5f5\nf5f6\n")
    faults: list[RecordError] = []
    assert len(list(read_records(tmp_path / "games.txt", faults.append))) == 2
    with pytest.raises(RecordError) as raised:
        list(read_records(tmp_path / "games.txt"))
    assert str(raised.value) == str(faults[0])
    assert str(faults[0]).startswith(f"{tmp_path / 'games.txt'}: line 2: ")


def mixed() -> list[Record]:
    return [
        *random_records(1),
        *random_records(1, Variant(6)),
        ProblemRecord(Position(Variant(scoring="tournament"))),
        *random_records(1),
    ]


@pytest.mark.parametrize(("suffix", "num_written"), [(".wtb", 2), (".txt", 2), (".ggf", 3), (".sgf", 3), (".obf", 1)])
def test_records_that_do_not_fit_are_left_out_and_named(tmp_path: Path, suffix: str, num_written: int) -> None:
    path = tmp_path / f"mixed{suffix}"
    faults: list[RecordError] = []
    assert write_records(path, mixed(), faults.append) == num_written
    assert len(faults) == 4 - num_written
    assert all(str(fault).startswith(f"{path}: ") for fault in faults)
    assert len(list(read_records(path))) == num_written


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_old_file_stays_where_writing_fails(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"games{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(RecordError):
        write_records(path, mixed())

    def interrupted() -> Iterator[Record]:
        yield from mixed()[2:3] if suffix == ".obf" else mixed()[:1]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_records(path, interrupted())
    refused = random_records(1) if suffix == ".obf" else [ProblemRecord(Position(Variant(scoring="tournament")))]
    with pytest.raises(RecordError, match="none of the records could be written"):
        write_records(path, refused, lambda fault: None)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"


def test_transcripts_of_another_start_are_not_in_one_file(tmp_path: Path) -> None:
    records = [*random_records(1), *random_records(1, Variant(start="parallel")), *random_records(1)]
    faults: list[RecordError] = []
    assert write_records(tmp_path / "games.txt", records, faults.append) == 2
    assert [fault.args[0].partition(": ")[2].partition(";")[0] for fault in faults] == [
        "a file of transcripts is of one variant"
    ]


def test_a_fault_in_reading_is_not_blamed_on_the_file_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("f5f5\n")
    with pytest.raises(RecordError) as raised:
        write_records(tmp_path / "out.ggf", read_records(tmp_path / "in.txt"))
    assert "out.ggf" not in str(raised.value)
    with pytest.raises(FileNotFoundError) as missing:
        write_records(tmp_path / "out.ggf", read_records(tmp_path / "none.txt"))
    assert missing.value.filename == str(tmp_path / "none.txt")
