"""The verbs of `reversi records`: what they count, write and refuse, and which files they leave as they were."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments import cli
from reversi_env import Position, Variant, random_games
from reversi_env.datasets import GameDataset
from reversi_env.records.formats import read_records, write_records
from reversi_env.records.record import GameRecord, ProblemRecord
from reversi_env.shards import open_dataset

ROOT = Path(__file__).parents[2]
WIPEOUT = "e6f4e3f6g5d6e7f5c5"
OVER_AFTER_11 = "f5f4c3e6f7g6g4e8g8g5h5"  # black 14, white 1, nobody can move


def run(*arguments: object) -> int:
    return cli.main(["records", *map(str, arguments)])


def figures(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    run(*arguments, "--json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


# Info


def test_info_counts_what_a_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "games.txt"
    path.write_text(f"{WIPEOUT} +64\n{WIPEOUT} +13\nf5d6c3\n{OVER_AFTER_11}\nf5f5\nf5\nx\n")
    found = figures(capsys, "info", path)
    counts = {
        "games": 5,
        "finished": 3,
        "unfinished": 2,
        "problems": 0,
        "faults": 2,
        "wipeouts": 2,
        "draws": 0,
        "results_told": 2,
        "results_agreeing": 1,  # the empties count for the winner
    }
    assert found["files"][0]["counts"] == found["total"]["counts"] == counts
    assert [fault.removeprefix(f"{path}: ")[:6] for fault in found["files"][0]["first_faults"]] == ["line 5", "line 7"]


def test_info_counts_draws_passes_players_and_dates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variant = Variant(4)
    games = random_games(Position(variant), 300, seed=2)
    records = [
        GameRecord(
            variant, tuple(moves[:length]), "Ada", f"player {row % 7}", score, date=f"20{row % 20:02}-05-01 12:00"
        )
        for row, (moves, length, score) in enumerate(
            zip(games.moves.tolist(), games.lengths.tolist(), games.black_scores.tolist(), strict=True)
        )
    ]
    write_records(tmp_path / "games.ggf", records)
    (found,) = figures(capsys, "info", tmp_path / "games.ggf")["files"]
    assert found["counts"]["games"] == found["counts"]["finished"] == found["counts"]["results_agreeing"] == 300
    assert found["counts"]["draws"] == (games.black_scores == 0).sum() > 0
    assert found["most_passes"] == (games.moves == 16).sum(1).max() > 0
    assert found["players"] == 8
    assert (found["first_date"], found["last_date"]) == ("2000-05-01", "2019-05-01")


def test_info_prints_a_line_for_each_file_a_total_and_the_first_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("f5\n" + "f6\n" * 10)
    (tmp_path / "b.obf").write_text("-" * 27 + "OX------XO" + "-" * 27 + " X; f5:+0;\n")
    assert run("info", tmp_path / "a.txt", tmp_path / "b.obf") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == [
        "file",
        str(tmp_path / "a.txt"),
        str(tmp_path / "b.obf"),
        "total",
    ]
    assert [line.partition("a.txt: ")[2][:6] for line in lines[4:]] == ["line 2", "line 3", "line 4", "and 7 "]
    (tmp_path / "a.txt").write_text("f5\n")
    assert run("info", tmp_path / "a.txt", tmp_path / "b.obf") == 0


def test_info_prints_what_it_has_when_a_file_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("f5\n")
    assert run("info", tmp_path / "a.txt", tmp_path / "none.txt") == 1
    output = capsys.readouterr()
    assert [line.split()[0] for line in output.out.splitlines()] == ["file", str(tmp_path / "a.txt")]
    assert output.err == f"reversi: {tmp_path / 'none.txt'}: No such file or directory\n"


def test_info_reads_dates_of_all_spellings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dates = ("2003.12.15_12:33:18.MST", "2000-4-16 11:13 EST", "945277754", "soon", "")
    write_records(tmp_path / "a.ggf", [GameRecord(Variant(), (26,), date=date) for date in dates])
    (found,) = figures(capsys, "info", tmp_path / "a.ggf")["files"]
    assert (found["first_date"], found["last_date"]) == ("1999-12-15", "2003-12-15")


def test_info_of_transcripts_on_another_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("b3\n")
    assert run("info", tmp_path / "a.txt") == 1
    assert run("info", tmp_path / "a.txt", "--variant", "othello-6x6") == 0


def test_info_of_all_wthor_reproduces_the_published_counts_in_time(
    data: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(data("wthor").glob("*.wtb"))
    began = time.process_time()
    total = figures(capsys, "info", *files)["total"]
    assert time.process_time() - began < 20
    assert total["counts"] == {
        "games": 127_475,
        "finished": 127_062,
        "unfinished": 413,
        "problems": 0,
        "faults": 0,
        "wipeouts": 998,
        "draws": 7_457,
        "results_told": 127_062,
        "results_agreeing": 127_062,
    }
    assert total["most_passes"] == 15
    assert (total["first_date"], total["last_date"]) == ("1977", "2021")
    players = set()
    for file in files:
        content = file.read_bytes()
        for row in range(16, len(content), 68):
            players.update(struct.unpack_from("<2H", content, row + 2))
    assert total["players"] == len(players)


# Convert


def moves_of(path: Path) -> list[tuple[int, ...]]:
    return [record.moves for record in read_records(path) if isinstance(record, GameRecord)]


def test_convert_joins_files_and_leaves_faulty_games_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text(f"{WIPEOUT}\nf5f5\n")
    (tmp_path / "b.txt").write_text(f"{OVER_AFTER_11}\n")
    assert run("convert", tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.sgf") == 1
    output = capsys.readouterr()
    assert output.out == f"{tmp_path / 'c.sgf'}: 2 games\n"
    fault, number = output.err.splitlines()
    assert fault.startswith(f"{tmp_path / 'a.txt'}: line 2: move 2: f5 is not legal")
    assert number == "1 left out"
    assert [len(moves) for moves in moves_of(tmp_path / "c.sgf")] == [9, 11]


def test_convert_says_which_games_the_format_cannot_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_records(tmp_path / "a.ggf", [GameRecord(Variant(6), (8,)), GameRecord(Variant(), (26,), black_score=0)])
    assert run("convert", tmp_path / "a.ggf", tmp_path / "a.wtb") == 1
    first, number = capsys.readouterr().err.splitlines()
    assert first == f"{tmp_path / 'a.wtb'}: game 1: WTHOR holds Othello on 8×8, not othello-6x6"
    assert number == "1 left out"
    assert moves_of(tmp_path / "a.wtb") == [(26,)]


def test_many_faults_are_counted_and_not_all_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("f5\n" + "f6\n" * 50)
    assert run("convert", tmp_path / "a.txt", tmp_path / "a.ggf") == 1
    assert len(errors := capsys.readouterr().err.splitlines()) == 11
    assert errors[-1] == "50 left out"


@pytest.mark.parametrize(
    ("content", "options", "status", "sentence"),
    [
        ("f5\nf6\n", ["--strict"], 1, "line 2: move 1: f6 is not legal"),
        ("f6\nf6\n", [], 1, "there is nothing to write"),
        ("", [], 1, "there is nothing to write"),
        ("f5\n", ["--variant", "othelo"], 2, "unknown variant 'othelo'"),
    ],
)
def test_convert_that_fails_leaves_the_old_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, options: list[str], status: int, sentence: str
) -> None:
    (tmp_path / "in.txt").write_text(content)
    (tmp_path / "out.ggf").write_text("old")
    assert run("convert", tmp_path / "in.txt", tmp_path / "out.ggf", *options) == status
    assert sentence in capsys.readouterr().err
    assert (tmp_path / "out.ggf").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.ggf"]


def test_convert_refuses_to_write_over_what_it_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("f5\n")
    (tmp_path / "link.txt").symlink_to(tmp_path / "in.txt")
    for target in ("in.txt", "link.txt"):
        assert run("convert", tmp_path / "in.txt", tmp_path / target) == 2
        assert "is read and would be written over" in capsys.readouterr().err
    assert (tmp_path / "in.txt").read_text() == "f5\n"


def test_problems_and_games_are_not_converted_into_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_records(tmp_path / "a.obf", [ProblemRecord(Position(Variant(scoring="tournament")))])
    assert run("convert", tmp_path / "a.obf", tmp_path / "a.ggf") == 2
    assert "a.obf holds problems, and" in capsys.readouterr().err
    assert run("convert", tmp_path / "a.obf", tmp_path / "b.obf") == 0


# Data sets


def test_dataset_writes_random_games(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--games", 30, "--games-per-shard", 8, "--seed", 5, "--variant", "othello-6x6", "--passes", "mark"]
    found = figures(capsys, "dataset", tmp_path / "games", *options)
    assert (found["games"], found["shards"], found["variant"]) == (30, 4, "othello-6x6")
    written = open_dataset(tmp_path / "games")[:]
    expected = GameDataset.random("othello-6x6", 30, seed=5)[:]
    assert (written["moves"] == expected["moves"][:, :-1]).all()
    assert (written["black_score"] == expected["black_score"]).all()


def test_dataset_takes_recorded_games_of_one_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_records(
        tmp_path / "a.ggf",
        [GameRecord(Variant(), (26,)), GameRecord(Variant(6), (8,)), GameRecord(Variant(), (19, 18))],
    )
    (tmp_path / "b.txt").write_text("f5f6\nf5\nf9\n")
    assert run("dataset", tmp_path / "games", tmp_path / "a.ggf", tmp_path / "b.txt") == 0
    output = capsys.readouterr()
    assert output.out.startswith(f"{tmp_path / 'games'}: 4 games of othello, 1 shards, ")
    assert output.err.splitlines()[0] == f"{tmp_path / 'a.ggf'}: sound game 2: it is of othello-6x6, and not of othello"
    assert output.err.splitlines()[-1] == "2 left out"
    assert open_dataset(tmp_path / "games")[:]["moves"][:, :3].tolist() == [
        [26, 255, 255],
        [19, 18, 255],
        [37, 45, 255],
        [37, 255, 255],
    ]
    assert run("dataset", tmp_path / "games", tmp_path / "a.ggf") == 1
    assert "is there already" in capsys.readouterr().err
    assert run("dataset", tmp_path / "small", tmp_path / "a.ggf", "--variant", "othello-6x6") == 0
    assert len(open_dataset(tmp_path / "small")) == 1


@pytest.mark.slow
def test_a_killed_dataset_goes_on_and_comes_out_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; from experiments import cli; sys.exit(cli.main(sys.argv[1:]))"]
    options = ["--games", "400000", "--games-per-shard", "20000", "--seed", "3"]

    def start(folder: Path) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([*command, "records", "dataset", str(folder), *options], cwd=ROOT)

    for stop in (signal.SIGKILL, signal.SIGINT):
        process = start(tmp_path / "stopped")
        while len(list((tmp_path / "stopped").glob("scores-*.npy"))) < (3 if stop == signal.SIGKILL else 6):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(stop)
        assert process.wait(60) == (-signal.SIGKILL if stop == signal.SIGKILL else cli.INTERRUPTED)
        assert not (tmp_path / "stopped" / "games-00019.npy").exists()
    assert start(tmp_path / "stopped").wait(120) == 0
    assert start(tmp_path / "whole").wait(120) == 0
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "stopped" / path.name).read_bytes()
    assert len(os.listdir(tmp_path / "stopped")) == len(os.listdir(tmp_path / "whole"))


def test_a_missing_file_is_named_and_not_the_folder_that_was_to_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_records(tmp_path / "a.ggf", [GameRecord(Variant(), (26,))])
    assert run("dataset", tmp_path / "games", tmp_path / "a.ggf", tmp_path / "none.ggf") == 1
    assert capsys.readouterr().err == f"reversi: {tmp_path / 'none.ggf'}: No such file or directory\n"
    (tmp_path / "games").mkdir()
    assert run("dataset", tmp_path / "games", tmp_path / "none.ggf") == 1
    assert "games is there already" in capsys.readouterr().err  # before anything is read


def test_sigterm_leaves_nothing_unfinished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.ggf"
    os.mkfifo(source)
    program = "import sys; from experiments import cli; sys.exit(cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "records", "convert", str(source), str(tmp_path / "out.ggf")]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        with open(source, "w") as pipe:  # opens when the other end reads
            pipe.write(f"(;GM[Othello]B[f5];){' ' * 2**17}")
            pipe.flush()
            while len(list(tmp_path.iterdir())) < 2:
                assert process.poll() is None
                time.sleep(0.01)
            process.terminate()
            assert process.wait(60) == cli.INTERRUPTED
        assert process.stderr is not None
        assert process.stderr.read() == "reversi: interrupted\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in.ggf"]


# Usage

WRONG_USAGE = {
    "info": "info on which files? reversi records info FILE [FILE ...]",
    "info games.ggf --variant othello": "--variant is for transcripts; the other formats say theirs",
    "convert a.ggf b.sgf --variant othello": "--variant is for transcripts; the other formats say theirs",
    "dataset gmes.ggf --games 5": "gmes.ggf is called like a file of records; it comes behind the FOLDER",
    "dataset x --seed -1": "a seed is a whole number from 0 to",
    "info games.gff": "unknown record format of games.gff: '.gff'; did you mean .sgf or .ggf",
    "info none.ggf games": "unknown record format of games: ''; there are: .ggf, .obf, .sgf, .txt, .wtb",
    "convert a.ggf": "convert what into what? reversi records convert IN [IN ...] OUT",
    "convert a.ggf b.pgn": "unknown record format of b.pgn: '.pgn'",
    "dataset": "a data set in which folder? reversi records dataset FOLDER [FILE ...]",
    "dataset x --games 0": "games is a whole number, at least 1, got 0",
    "dataset x --passes omitted": "unknown way to treat passes 'omitted'; did you mean omit",
    "dataset x --variant othelo": "unknown variant 'othelo'",
    "dataset x a.ggf --seed 3": "seed is for random games, and files of recorded ones are given",
    "dataset x a.obf": "a.obf holds no games",
}


@pytest.mark.parametrize(("line", "sentence"), WRONG_USAGE.items())
def test_wrong_usage_gets_a_sentence_and_leaves_nothing_behind(
    line: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*line.split()) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["info", "convert", "dataset"])
def test_every_verb_of_records_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(verb, "--help")
    assert not stopped.value.code
    assert f"reversi records {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["info none.ggf", "convert none.ggf out.sgf", "dataset x none.wtb"])
def test_a_missing_file_is_named(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*line.split()) == 1
    assert "none." in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
