"""`reversi solve` and `reversi bench solver`: what is printed, what is compared, and a sentence for every fault."""

import csv
import json
import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments import cli, solve
from experiments.bench import solver as bench_solver
from experiments.problems import read_problems
from reversi_env import Position, Variant
from reversi_env.records.record import RecordError
from tests import oracle

# Two late positions on 4×4, whose scores are checked against the rule book below.
LATE = "XXXXOOXOXXXXX--- O"
LATER = "OXO-OXX-OOOO--X- X"
HARD = "---XX-----XXXX--OOXXXXX-OOXXOXXXOOXOXXXX-OOXXXX---OOXX----OOOO-- X"

Run = Callable[..., tuple[int, str, str]]
Data = Callable[[str], Path]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Returns a function that runs the command and returns its exit code, stdout and stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        status = cli.main(list(words))
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


def solved(run: Run, *words: str) -> tuple[int, dict[str, Any]]:
    status, output, _ = run("solve", *words, "--json")
    return status, json.loads(output)


def negamax(text: str, scoring: str = "board", goal: str = "most") -> int:
    board, side = text.split()
    return oracle.negamax(list(board), side, goal, scoring)


def best_moves(text: str, scoring: str = "board") -> dict[int, int]:
    """Returns the score of every move by the rule book."""
    board, side = text.split()
    moves = oracle.legal_squares(list(board), side)
    return {
        move: -oracle.negamax(oracle.play(list(board), side, move), oracle.other(side), "most", scoring)
        for move in moves
    }


def write_table(path: Path, rows: list[dict[str, object]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("scoring", ["board", "tournament"])
@pytest.mark.parametrize("text", [LATE, LATER])
def test_the_score_and_every_move_are_those_of_the_rule_book(text: str, scoring: str, run: Run) -> None:
    position = Position.from_text(text)
    scores = best_moves(text, scoring)
    expected = {position.move_name(move): score for move, score in scores.items()}
    status, found = solved(run, text, "--scoring", scoring, "--moves", "all")
    (row,) = found["positions"]
    assert status == 0
    assert row["score"] == negamax(text, scoring) == max(expected.values())
    assert {name: move["score"] for name, move in row["moves"].items()} == expected
    assert set(row["best_moves"]) == {name for name, score in expected.items() if score == row["score"]}
    assert row["is_proven"]
    assert row["agrees"] is None
    _, found = solved(run, text, "--scoring", scoring, "--moves", "best")
    assert found["positions"][0]["best_moves"] == row["best_moves"]


def test_the_line_of_a_row_leads_to_its_score(run: Run) -> None:
    _, found = solved(run, LATER)
    position = Position.from_text(LATER)
    end = position
    for name in found["positions"][0]["principal_line"]:
        end = end.play(end.parse_move(name))
    assert end.black_score == found["positions"][0]["score"]  # black is to move
    assert found["positions"][0]["best_moves"] == found["positions"][0]["principal_line"][:1]


def test_the_start_of_a_variant_is_solved_in_one_row(run: Run) -> None:
    status, output, _ = run("solve", "--variant", "othello-4x4")
    header, row = output.splitlines()
    assert status == 0
    assert header.split() == ["empties", "score", "move", "nodes", "s", "nodes/s", "line"]
    assert row.split()[:3] == ["start", "12", "-8"]
    assert row.split()[3] == row.split()[7]  # the move begins the line


def test_moves_of_a_game_say_a_position(run: Run) -> None:
    _, found = solved(run, "b1", "--variant", "othello-4x4", "--scoring", "tournament")
    assert found["positions"][0]["position"].endswith(" O")
    assert found["positions"][0]["score"] == 10  # black's -10


def test_every_row_says_a_move_and_its_score(run: Run) -> None:
    _, output, _ = run("solve", LATER, "--moves", "all")
    rows = [row.split() for row in output.splitlines()[2:]]
    position = Position.from_text(LATER)
    expected = {position.move_name(move): f"{score:+d}" if score else "0" for move, score in best_moves(LATER).items()}
    assert {move: score for score, move, *_ in rows} == expected


@pytest.mark.parametrize(
    ("text", "score"), [("X" * 16 + " O", "-16"), ("XXXX" + "-" * 12 + " X", "+4"), ("-" * 16 + " X", "0")]
)
def test_a_finished_game_has_its_score_and_no_move(text: str, score: str, run: Run) -> None:
    for moves in solve.MOVES:
        status, output, _ = run("solve", text, "--moves", moves)
        assert status == 0
        assert output.splitlines()[1].split()[2:4] == [score, "-"]


def test_win_draw_or_loss_is_a_bound(run: Run) -> None:
    for text in (LATE, LATER):
        _, found = solved(run, text, "--wld")
        (row,) = found["positions"]
        score = negamax(text)
        assert row["is_proven"]
        assert (row["lower"] > 0, row["upper"] < 0) == (score > 0, score < 0)
        _, found = solved(run, text, f"--window={score},{score + 1}")
        assert found["positions"][0]["upper"] == score


# Files


def test_a_table_is_compared_with_what_it_says(tmp_path: Path, run: Run) -> None:
    rows: list[dict[str, object]] = []
    for name, text in (("a", LATE), ("b", LATER)):
        position, scores = Position.from_text(text), best_moves(text, "tournament")
        best = [position.move_name(move) for move, score in scores.items() if score == max(scores.values())]
        board, side = text.split()
        rows.append(
            {
                "id": name,
                "board64": board,
                "side": side,
                "score": negamax(text, "tournament"),
                "best_moves": " ".join(best),
                "empties": board.count("-"),
            }
        )
    for moves in solve.MOVES:
        status, output, _ = run("solve", str(write_table(tmp_path / "good.tsv", rows)), "--moves", moves)
        assert status == 0
        assert output.splitlines()[-1] == "2 of 2 agree with the file"
        assert [row.split()[0] for row in output.splitlines() if "agrees" in row] == ["a", "b"]
    wrong_score = [rows[0], rows[1] | {"score": 64}]
    status, output, _ = run("solve", str(write_table(tmp_path / "wrong.tsv", wrong_score)))
    assert status == 1
    assert "says +64" in output
    assert output.splitlines()[-1] == "1 of 2 agree with the file"


def test_a_wrong_best_move_is_told(tmp_path: Path, run: Run) -> None:
    scores = best_moves(LATER, "tournament")
    position = Position.from_text(LATER)
    worst = position.move_name(min(scores, key=lambda move: scores[move]))
    best = [position.move_name(move) for move in scores if scores[move] == max(scores.values())]
    board, side = LATER.split()
    row = {"board": board, "side": side, "score": max(scores.values())}
    for said, moves, status in (
        ([worst], "one", 1),
        ([worst], "best", 1),
        ([*best, worst], "one", 0),
        ([*best, worst], "best", 1),
        (best, "best", 0),
    ):
        path = write_table(tmp_path / "problems.tsv", [row | {"best_moves": " ".join(said)}])
        assert run("solve", str(path), "--moves", moves)[0] == status, (said, moves)


def test_where_nothing_was_compared_nothing_agrees(tmp_path: Path, run: Run) -> None:
    board, side = LATER.split()
    scores = best_moves(LATER, "tournament")
    best = [Position.from_text(LATER).move_name(move) for move in scores if scores[move] == max(scores.values())]
    path = write_table(tmp_path / "problems.tsv", [{"board": board, "side": side, "best_moves": " ".join(best)}])
    window = f"--window={min(scores.values()) - 2},{min(scores.values()) - 1}"  # which says only that it is more
    assert solved(run, str(path), window)[1]["positions"][0]["agrees"] is None
    assert solved(run, str(path))[1]["positions"][0]["agrees"] is True


def test_scores_of_moves_in_obf_are_compared(tmp_path: Path, run: Run) -> None:
    scores = best_moves(LATER, "tournament")
    position = Position.from_text(LATER)
    names = {position.move_name(move): score for move, score in scores.items()}
    path = tmp_path / "problems.obf"
    path.write_text(f"% a comment\n{LATER}; " + "; ".join(f"{name}:{score:+d}" for name, score in names.items()) + "\n")
    assert run("solve", str(path), "--moves", "all")[0] == 0
    worst = min(names, key=lambda name: names[name])
    names[worst] -= 2
    path.write_text(f"{LATER}; " + "; ".join(f"{name}:{score:+d}" for name, score in names.items()) + "\n")
    assert run("solve", str(path), "--moves", "all")[0] == 1
    assert run("solve", str(path))[0] == 0  # of that move nothing was asked
    path.write_text(f"{LATER};\n")
    status, found = solved(run, str(path))
    assert (status, found["positions"][0]["agrees"]) == (0, None)
    assert found["positions"][0]["score"] == max(scores.values())


def test_files_have_tournament_scoring(tmp_path: Path) -> None:
    path = tmp_path / "problems.obf"
    path.write_text(f"{LATE};\n")
    (problem,) = read_problems(path)
    assert problem.position.variant == Variant(size=4, scoring="tournament")


FAULTY_TABLES = {
    "": None,
    "id\tscore\n": "line 1: the first line names columns parted by tabs, board64 and side among them, not 'id score'",
    "board64\tside\nXO\tX\n": "line 2: a board text is one character a square and the side to move",
    "board64\tside\n" + "X" * 16 + "\tQ\n": "line 2: the side to move is X or O after the board, found 'Q'",
    "board64\tside\n" + "X" * 16 + "\n": "line 2: a board text is",
    "board64\tside\n\n" + "X" * 16 + "\tX\t3\n": "line 3: 3 cells where the header names 2 columns",
    "board64\tside\tscore\n" + "X" * 16 + "\tX\tmany\n": "line 2: score is a number, not 'many'",
    "board64\tside\tempties\n" + "X" * 16 + "\tX\t3\n": "line 2: the board has 0 empty squares, not 3",
    "board64\tside\tbest_moves\n" + "X" * 16 + "\tX\ta1\n": "line 2: a1 is said to be best but is not legal",
    "board64\tside\tbest_moves\n" + "X" * 16 + "\tX\tz9\n": "line 2: 'z9' is not a square of 4×4",
    "board64\tside\n\xff\x00\tX\n": "line 2: a board text is",
}


@pytest.mark.parametrize("text", FAULTY_TABLES)
def test_a_faulty_table_is_told_with_its_line(text: str, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "problems.tsv"
    path.write_bytes(text.encode("latin-1"))
    expected = FAULTY_TABLES[text]
    if expected is None:
        assert list(read_problems(path)) == []
        return
    with pytest.raises(RecordError) as error:
        list(read_problems(path))
    assert str(error.value).startswith(f"{path}: {expected}")
    status, output, stderr = run("solve", str(path))
    assert (status, output) == (1, "")
    assert stderr.startswith(f"reversi: {path}: line ")
    assert stderr.count("\n") == 1


WRONG_USAGE = {
    "solve": "solve what? reversi solve POSITION|FILE ..., or --variant NAME for its start",
    "solve XO": "position: a board text is one character a square and the side to move",
    "solve f5q9": "moves: character 3 of the transcript: 'q' is not a square of 8×8",
    "solve f5f5": "moves: move 2: f5 is not legal for white",
    "solve f5 --variant othelo": "unknown variant 'othelo'; did you mean othello",
    "solve f5 --scoring tornament": "unknown scoring 'tornament'; did you mean tournament?",
    "solve f5 --moves al": "unknown choice of moves 'al'; did you mean all?",
    "solve f5 --wld --moves all": "moves=all asks for scores; wld and window go with moves=one",
    "solve f5 --wld --window=1,2": "wld is the window -1,1; give one of them",
    "solve f5 --window=2,1": "a window is two scores LOW,HIGH, the lower first, as in --window=-1,1; found '2,1'",
    "solve f5 --time-limit-s=-1": "time_limit_s is 0 or more, got -1.0",
    "solve f5 --time-limit-s nan": "time_limit_s is 0 or more, got nan",
    "solve f5 -- nodes=-3": "nodes is 0 or more, got -3",
    "solve f5 --threads 0": "threads is 1 to 256, got 0",
    "solve f5 --threads 100000": "threads is 1 to 256, got 100000",
    "solve f5 --hash-mb 0": "hash_mb is more than 0, got 0.0",
    "solve f5 --hash-mb 1e12": "hash_mb: there is no memory for 1e+12 MB",
    "solve f5 --hash-mb 1e308": "hash_mb: there is no memory for 1e+308 MB",
    "solve f5 --evaluation mobilty": "unknown evaluation 'mobilty'; did you mean mobility?",
    "solve f5 --tim 3": "unknown option '--tim'",
    "solve {folder}/games.pdf": "unknown format of problems of {folder}/games.pdf: '.pdf'; ",
    "solve {folder}/none.obf --variant othello": "variant and scoring are for positions and moves; {folder}/none.obf",
    "bench solver fast": "reversi bench solver takes no arguments, found fast",
    "bench solver --hash-mb 0": "hash_mb is more than 0, got 0.0",
    "bench solver --problems {folder}/few.tsv": "{folder}/few.tsv has no problem named 20, 21",
}


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_wrong_usage_gets_a_sentence(line: str, tmp_path: Path, run: Run) -> None:
    (tmp_path / "games.pdf").touch()
    (tmp_path / "few.tsv").write_text(f"id\tboard64\tside\n1\t{'X' * 64}\tX\n")
    status, output, stderr = run(*line.format(folder=tmp_path).split())
    assert (status, output) == (2, "")
    assert stderr.startswith(f"reversi: {WRONG_USAGE[line].format(folder=tmp_path)}")
    assert stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_told(run: Run) -> None:
    assert run("solve", "nowhere.obf") == (1, "", "reversi: nowhere.obf: No such file or directory\n")


# Limits


@pytest.mark.parametrize("limit", ["--time-limit-s=0", "--nodes=0"])
@pytest.mark.parametrize("moves", solve.MOVES)
def test_without_time_or_nodes_nothing_is_claimed(limit: str, moves: str, run: Run) -> None:
    status, found = solved(run, HARD, limit, "--moves", moves)
    (row,) = found["positions"]
    assert status == 0
    assert (row["score"], row["lower"], row["upper"], row["is_proven"]) == (None, -64, 64, False)
    assert row["principal_line"] == []
    status, output, _ = run("solve", HARD, limit, "--moves", moves)
    assert output.splitlines()[1].split()[2] == "?"
    assert output.splitlines()[1].split()[3].endswith("?")
    assert output.splitlines()[-1].startswith("the limits were reached: 1 of 1 not proven; scores are bounds")


def test_a_small_table_gives_the_score(run: Run) -> None:
    scores = [solved(run, LATER, "--hash-mb", size)[1]["positions"][0]["score"] for size in ("1", "0.000001")]
    assert scores == [negamax(LATER)] * 2


def test_progress_goes_to_stderr(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(solve, "_LONG_S", -1.0)
    _, output, stderr = run("solve", LATER, "--json")
    score = json.loads(output)["positions"][0]["score"]
    assert stderr.splitlines()[-1].startswith(f"1: {score:+d} with ")
    _, _, stderr = run("solve", LATER, "--moves", "all")
    assert len(stderr.splitlines()) == len(best_moves(LATER))


@pytest.mark.parametrize("moves", solve.MOVES)
def test_a_long_search_tells_that_it_goes_on(moves: str, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(solve, "_TOLD_EVERY_S", 0.1)
    _, _, stderr = run("solve", Position().text, "--moves", moves, "--time-limit-s", "1")
    told = re.findall(r"^1: ([\d,]+) nodes in \d+ s so far$", stderr, re.MULTILINE)
    nodes = [int(number.replace(",", "")) for number in told]
    assert len(nodes) > 2
    assert nodes[-1] > nodes[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moves", solve.MOVES)
def test_an_interruption_prints_what_is_known(number: int, moves: str, run: Run) -> None:
    run("solve", LATER)  # compiles
    before = signal.getsignal(number)
    timer = threading.Timer(0.7, os.kill, (os.getpid(), number))
    timer.start()
    status, found = solved(run, Position().text, LATER, "--moves", moves)  # Othello from its start takes for ever
    timer.join()
    assert status == 130
    (row,) = found["positions"]
    assert not row["is_proven"]
    assert row["lower"] <= 0 <= row["upper"]
    assert found["total"]["positions"] == 2
    assert found["total"]["is_interrupted"]
    assert signal.getsignal(number) is before


# Benchmark


def test_the_benchmark_measures_both_sets_with_one_thread_and_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr(bench_solver, "SETS", {"late": range(1, 2), "later": range(2, 3)})
    rows: list[dict[str, object]] = []
    for number, text in enumerate((LATE, LATER), start=1):
        board, side = text.split()
        rows.append({"id": number, "board": board, "side": side, "score": negamax(text, "tournament")})
    path = write_table(tmp_path / "problems.tsv", rows)
    status, output, _ = run("bench", "solver", "--json", "--problems", str(path))
    found = json.loads(output)
    assert status == 0
    names = ["late, one thread", "late, two threads", "later, one thread", "later, two threads"]
    assert [figure["name"] for figure in found["figures"][1:]] == names
    assert all(figure["amount"] > 0 and figure["cpu_s"] > 0 for figure in found["figures"])
    assert found["figures"][1]["amount"] == found["figures"][2]["amount"]  # too few squares to share
    assert set(found["two_threads_against_one"]) == {"late", "later"}
    status, output, _ = run("bench", "solver", "--problems", str(path))
    assert output.splitlines()[-1].startswith("later: two threads are ")
    path = write_table(tmp_path / "wrong.tsv", [rows[0] | {"score": 64}, rows[1]])
    status, output, stderr = run("bench", "solver", "--problems", str(path))
    assert (status, output) == (1, "")
    assert "problem 1: solved to " in stderr
    assert stderr.endswith("published +64\n")


def test_the_benchmark_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run) -> None:
    monkeypatch.setattr(bench_solver, "FFO", tmp_path / "ffo.tsv")
    status, _, stderr = run("bench", "solver")
    assert status == 2
    assert "the FFO positions do not come along; give a file of them, --problems ffo.tsv" in stderr


def test_the_published_endgames_have_the_numbers_that_are_measured(data: Data) -> None:
    found = bench_solver._problems(str(data("ffo.tsv")))
    chosen = {name: [found[number] for number in numbers] for name, numbers in bench_solver.SETS.items()}
    assert list(map(len, chosen.values())) == [20, 5]
    assert {problem.position.num_empties for problem in chosen["FFO 40–44"]} == {20, 22, 23}
