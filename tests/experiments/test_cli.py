"""The command line: what is loaded when, exit codes, and a sentence for every kind of bad input."""

import io
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from experiments import cli

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "hydra", "omegaconf", "numba", "numpy", "scipy", "gymnasium", "rich", "reversi_env", "agents")


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("arguments", [[], ["--help"], ["bench"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = f"import sys; from experiments import cli; cli.main({arguments}); print(*sys.modules)"
    loaded = {name.split(".")[0] for name in run_python(code).splitlines()[-1].split()}
    assert not loaded & set(HEAVY)


def test_evaluating_baselines_does_not_load_torch_or_hydra() -> None:
    code = "import sys; import experiments.evaluate, experiments.tournament, experiments.play; print(*sys.modules)"
    assert not {"torch", "hydra"} & set(run_python(code).split())


def test_every_verb_has_a_module_and_a_line_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, verb in cli.VERBS.items():
        assert find_spec(verb.module) is not None
        assert any(line.split(verb.summary)[0].strip() == name for line in lines)


def test_main_verbs_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main([])
    text = capsys.readouterr().out
    places = [text.index(f"\n  {verb} ") for verb in ("train", "evaluate", "tournament", "play", "records info")]
    assert places == sorted(places)
    assert text.index("play ") < text.index("bench env")


@pytest.mark.parametrize(
    "verb", ["evaluate", "tournament", "play", "analyze", "solve", "perft", "bench env", "bench perft", "bench solver"]
)
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main([*verb.split(), "--help"])
    assert not stopped.value.code
    assert f"reversi {verb}" in capsys.readouterr().out


WRONG_USAGE = {
    "evalute random": "unknown verb 'evalute'; did you mean evaluate?",
    "frobnicate": "unknown verb 'frobnicate'; there are: analyze, bench, evaluate, perft, play, records, solve, ",
    "bench evn": "unknown verb after bench 'evn'; did you mean env?",
    "--hlep": "unknown option '--hlep'; did you mean --help?",
    "perft 3 --jsn": "unknown option '--jsn'; did you mean --json",
    "perft 3 --jsn=1": "unknown option '--jsn'; did you mean --json",
    "evaluate random --gmes 20": "unknown option '--gmes'; did you mean --games",
    "evaluate random -- gmes=20": "unknown key 'gmes'; did you mean games?",
    "evaluate random -- games": "behind -- stand overrides such as games=VALUE, found 'games'",
    "evaluate random --games many": "games: Value 'many' of type 'str' could not be converted to Integer",
    "evaluate random -- games=many": "games: Value 'many' of type 'str' could not be converted to Integer",
    "evaluate random --games": "argument --games: expected one argument",
    "evaluate random --variant othelo": "unknown variant 'othelo'; did you mean othello",
    "perft 3 --variant antireversi": "unknown variant 'antireversi'; did you mean anti-reversi",
    "evaluate randm": "unknown agent 'randm'; did you mean random?",
    "evaluate random gredy": "unknown agent 'gredy'; did you mean greedy?",
    "evaluate alphabeta:deph=3": "unknown option of alphabeta 'deph'; did you mean depth?",
    "evaluate random --games 3": "games come in pairs, so their number is even and at least 2, got 3",
    "evaluate random --seed -1": "the seed is 0 or more, got -1",
    "evaluate random --opening-plies 90": "no game of othello goes on after 90 plies; ask for a shorter opening",
    "evaluate alphabeta:depth=x": "alphabeta: depth is a whole number, got 'x'",
    "evaluate alphabeta:depth=0": "alphabeta: depth must be at least 1 ply, got 0",
    "evaluate alphabeta:evaluation=mobilty": "alphabeta: unknown evaluation 'mobilty'; did you mean mobility?",
    "evaluate random:seed=3": "random takes no options, got seed",
    "evaluate mcts:playouts=0": "playouts must be from 1 to 10,000, got 0",
    "evaluate my_bot.py": "say which of its classes or functions plays: my_bot.py:Bot",
    "evaluate math:pi": "a player is an Agent, a class or function without arguments",
    "evaluate": "evaluate whom? reversi evaluate AGENT [OPPONENT ...]",
    "tournament random": "a tournament has two players or more: reversi tournament AGENT AGENT [AGENT ...]",
    "tournament random greedy random": "random takes part twice",
    "tournament alphabeta alphabeta:depth=4": "alphabeta and alphabeta:depth=4 have the same name, alphabeta:depth=4",
    "play --variant=": "unknown variant ''",
    "play random --variant=": "unknown variant ''",
    "play --seed -1": "the seed is 0 or more, got -1",
    "play --color blak": "unknown color 'blak'; did you mean black?",
    "play greedy random": "one of two players is human; for agents alone there is reversi tournament",
    "play greedy random human": "an agent, or the players of black and white, or --two; found greedy random human",
    "play greedy --two": "an agent, or the players of black and white, or --two; found greedy",
    "perft": "the depth is one whole number, such as reversi perft 8; found nothing",
    "perft -1": "the depth is one whole number, such as reversi perft 8; found -1",
    "perft 3 --variant=": "unknown variant ''; there are: anti-reversi",
    "play --two --moves f5e6": "moves: move 2: e6 is not legal for white in ",  # it names the legal ones
    "play --two --moves f5d6q9": "moves: character 5 of the transcript: 'q' is not a square of 8×8",
    "perft 3 --position XO": "position: a board text is one character a square and the side to move",
    "perft 3 -- variant=???": "variant: ",  # OmegaConf's word for a value that is missing
    "perft 3 -- variant=${{x}}": "variant: Interpolation key 'x' not found",
    "perft 3 4": "the depth is one whole number, such as reversi perft 8; found 3 4",
    "bench env fast": "reversi bench env takes no arguments, found fast",
    "bench perft --rounds 0": "rounds must be at least 1, got 0",
}
FAILURES = {
    "evaluate runs/there-is-none": "runs/there-is-none",
    "evaluate no_bot.py:Bot": "no_bot.py",
    "tournament random greedy --games 2 --save {file}/games.jsonl": "{file}/games.jsonl: Not a directory",
    "tournament random greedy --games 2 --save {file}": "{file}: File exists",
}


@pytest.mark.parametrize(
    ("line", "sentence", "status"),
    [(line, sentence, 2) for line, sentence in WRONG_USAGE.items()]
    + [(line, sentence, 1) for line, sentence in FAILURES.items()],
)
def test_bad_input_gets_a_sentence_and_an_exit_code(
    line: str, sentence: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    words, sentence = line.format(file=tmp_path / "file").split(), sentence.format(file=tmp_path / "file")
    assert cli.main(words) == status
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("reversi: ")
    assert sentence in output.err
    assert output.err.count("\n") == 1


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERSI_DEBUG", "1")
    with pytest.raises(ValueError, match="unknown variant"):
        cli.main(["perft", "3", "--variant", "othelo"])


def test_interruption_is_a_line_and_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.perft.perft", interrupted)
    assert cli.main(["perft", "3"]) == 130
    assert capsys.readouterr().err.endswith("reversi: interrupted\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is Linux's")
@pytest.mark.parametrize(
    ("pipeline", "status", "error"),
    [
        ("perft 3 | true; exit ${PIPESTATUS[0]}", 0, ""),  # a closed pipe is no fault
        ("perft 3 > /dev/full", 1, "reversi: No space left on device\n"),
        ("perft 3 >&-", 0, ""),
        ("play greedy --variant othello-4x4 <&-", 0, ""),
        ("perft x 2>&-", 2, ""),
    ],
)
def test_output_that_cannot_be_written_ends_without_a_traceback(pipeline: str, status: int, error: str) -> None:
    command = f"{sys.executable} -m reversi_lab {pipeline}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == status
    assert done.stderr.replace("reversi: compiling the kernels, once on this machine …\n", "") == error


def test_what_a_terminal_cannot_write_costs_no_result() -> None:
    line = "evaluate greedy random --games 2 --variant othello-4x4"
    done = subprocess.run(
        [sys.executable, "-m", "reversi_lab", *line.split()],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1].startswith("random ")


def test_perft_prints_the_published_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["perft", "6", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["leaves"] == 8200  # aartbik.com/MISC/reversi.html
    assert figures["leaves_per_cpu_s"] > 0


def test_perft_reads_a_position_of_any_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["perft", "1", "--position", "-----OX--XO----- X"]) == 0
    assert capsys.readouterr().out.startswith("4 leaves at depth 1 of othello-4x4")


def test_options_and_overrides_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for line in (
        "greedy --games 4 --variant othello-6x6 random --json",
        "greedy random -- games=4 variant=othello-6x6 json=true",
    ):
        assert cli.main(["evaluate", *line.split()]) == 0
        found = json.loads(capsys.readouterr().out)
        for row in found["rows"]:
            del row["cpu_s_per_game"], row["opponent_cpu_s_per_game"]
        outputs.append(found)
    assert outputs[0] == outputs[1]
    assert outputs[0]["variant"] == "othello-6x6"


def test_evaluation_has_a_row_for_each_opponent(capsys: pytest.CaptureFixture[str]) -> None:
    line = "evaluate alphabeta:depth=2 random greedy --games 20 --variant othello-6x6"
    assert cli.main(line.split()) == 0
    title, header, *rows = capsys.readouterr().out.splitlines()
    assert "othello-6x6" in title
    assert header.split()[:2] == ["opponent", "games"]
    assert [row.split()[:2] for row in rows] == [["random", "20"], ["greedy", "20"]]


def test_default_opponents_are_the_classic_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "random", "--games", "2", "--variant", "othello-4x4", "--json"]) == 0
    opponents = [row["opponent"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert opponents[:3] == ["random", "greedy", "positional"]
    assert opponents[3].startswith("alphabeta")


def test_openings_that_run_out_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("evaluate", "tournament"):
        assert cli.main([verb, "random", "greedy", "--games", "30", "--variant", "othello-4x4"]) == 0
        assert "only 12 different openings for 15 pairs of games" in capsys.readouterr().err
    assert cli.main(["evaluate", "random", "greedy", "--games", "20", "--variant", "othello-4x4"]) == 0
    assert "different openings" not in capsys.readouterr().err


def test_a_tournament_ranks_everyone_and_keeps_the_games(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "games.jsonl"
    line = f"tournament random alphabeta:depth=3 greedy --games 20 --variant othello-6x6 --save {path} --json"
    assert cli.main(line.split()) == 0
    ranking = json.loads(capsys.readouterr().out)["ranking"]
    assert ranking[0]["player"].startswith("alphabeta")
    assert {entry["player"]: entry["elo"]["value"] for entry in ranking}["random"] == 0
    assert [entry["elo"]["value"] for entry in ranking] == sorted((e["elo"]["value"] for e in ranking), reverse=True)
    assert sum(entry["score"] for entry in ranking) == pytest.approx(1.5)
    games = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(games) == 60
    assert {frozenset((game["black"], game["white"])) for game in games} == {
        frozenset((first["player"], second["player"])) for first in ranking for second in ranking if first != second
    }


@pytest.mark.parametrize(("line", "status"), [("random --games 3", 2), ("{bot}:bot --games 2", 1)])
def test_a_tournament_that_fails_before_its_first_games_leaves_no_file(line: str, status: int, tmp_path: Path) -> None:
    bot = tmp_path / "my_bot.py"
    bot.write_text("def bot(position, rng):\n    raise RuntimeError\n")
    path = tmp_path / "games.jsonl"
    words = f"tournament greedy {line.format(bot=bot)} --variant othello-4x4 --save {path}".split()
    assert [cli.main(words), cli.main(words)] == [status, status]
    assert not path.exists()


def test_a_tournament_prints_ratings_and_a_cross_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tournament", "random", "greedy", "--games", "4", "--variant", "othello-4x4"]) == 0
    ratings, cross = capsys.readouterr().out.split("\n\n")
    assert "Elo (95 %)" in ratings
    assert sorted(line.split()[1] for line in cross.splitlines()[2:]) == ["greedy", "random"]


def test_a_bot_of_ones_own_can_be_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bot = tmp_path / "my_bot.py"
    bot.write_text("def bot(position, rng):\n    return position.legal_moves[0]\n")
    assert cli.main(["evaluate", f"{bot}:bot", "random", "--games", "4", "--variant", "othello-4x4"]) == 0
    assert "random" in capsys.readouterr().out


def test_a_bot_that_breaks_the_rules_fails_the_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bot = tmp_path / "my_bot.py"
    bot.write_text("def bot(position, rng):\n    return 0\n")
    assert cli.main(["evaluate", f"{bot}:bot", "random", "--games", "4", "--variant", "othello-6x6"]) == 1
    error = capsys.readouterr().err
    assert "broke the rules: a1 is not legal for black" in error
    assert "Traceback" not in error


def test_a_bot_that_leaves_the_process_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bot = tmp_path / "my_bot.py"
    bot.write_text("import sys\nsys.exit()\n")
    assert cli.main(["evaluate", f"{bot}:bot", "random"]) == 1
    assert f"{bot}, line 2: SystemExit" in capsys.readouterr().err


def test_figures_are_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert cli.main(["evaluate", "random", "random", "--games", "2", "--variant", "othello-4x4"]) == 0
    assert "\x1b[1m" in terminal.getvalue()  # bold
