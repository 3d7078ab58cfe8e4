"""`reversi analyze`: what it finds beside the rule book, how it ends, and a sentence for every fault."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents.agent import Agent, Decision
from agents.alpha_beta import AlphaBetaAgent, AlphaBetaConfig
from agents.explain import explain
from agents.levels import LevelAgent
from agents.reasons import IMPORTANCE, FlipsDiscs, LosesDiscs, OpensCorner, Parity, Replies, StableDiscs
from agents.search.solver import Solver
from experiments import analyze, cli
from experiments.analysis import Deepening
from experiments.phrases import PHRASES, phrase
from experiments.positions import looks_like_position
from experiments.stopping import stopped_by_signals
from reversi_env import Position, Variant, random_games
from reversi_env.playouts import NO_MOVE
from tests import oracle

ROOT = Path(__file__).parents[2]
# Two late positions on 4×4, whose scores are checked against the rule book.
LATE = "XXXXOOXOXXXXX--- O"
LATER = "OXO-OXX-OOOO--X- X"
WON = "--XXXO--OOOOXXO-OO-OXOXOOOOOOXXOOOXOXOXO-OOOXOOOXOXX-X-O--XXXXX- X"  # black wins by 36 or more

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Returns a function that runs the command and returns its exit code, stdout and stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        status = cli.main(["analyze", *words])
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


def analyzed(run: Run, *words: str) -> dict[str, Any]:
    status, output, _ = run(*words, "--json")
    assert status == 0
    found: dict[str, Any] = json.loads(output)
    return found


def discs_ahead(position: Position, depth: int) -> int:
    """Returns the rule book's value of looking so far ahead, in discs, by the discs that lie there."""

    def leaf(board: oracle.Board, side: str) -> int:
        return board.count(side) - board.count(oracle.other(side))

    return oracle.minimax(list(position.board), position.side, depth, leaf, "most", "board")  # no game ends so early


def scores_of_moves(text: str) -> dict[str, int]:
    board, side = text.split()
    position = Position.from_text(text)
    return {
        position.move_name(move): -oracle.negamax(oracle.play(list(board), side, move), oracle.other(side))
        for move in oracle.legal_squares(list(board), side)
    }


@pytest.mark.parametrize("text", [LATE, LATER])
def test_scores_and_regrets_near_the_end_are_those_of_the_rule_book(text: str, run: Run) -> None:
    expected = scores_of_moves(text)
    best = max(expected.values())
    for words in ([], ["greedy"], ["alphabeta:exact=0,depth=1"]):
        found = analyzed(run, text, *words)
        moves = {move["move"]: move for move in found["moves"]}
        assert {name: move["exact_score"] for name, move in moves.items()} == expected
        assert {name: move["regret"] for name, move in moves.items()} == {
            name: best - score for name, score in expected.items()
        }
        assert next(iter(moves)) == found["best_move"]
    found = analyzed(run, text)
    assert found["lines"][-1]["is_exact"]
    assert found["lines"][-1]["evaluation"] == best
    assert expected[found["best_move"]] == best


def test_each_line_and_each_move_is_minimax_of_its_depth(run: Run) -> None:
    words = ("c2b2", "alphabeta:evaluation=discs,exact=0", "--variant", "othello-6x6")
    found = analyzed(run, *words, "--depth", "5", "--moves-depth", "3")
    position = Position.from_text(found["position"])
    assert [line["depth"] for line in found["lines"]] == [1, 3, 5]
    assert [len(line["principal_line"]) for line in found["lines"]] == [1, 3, 5]
    for line in found["lines"][:2]:
        assert line["evaluation"] == discs_ahead(position, line["depth"])
    assert len(found["moves"]) == len(position.legal_moves)
    for move in found["moves"]:
        after = position.play(position.parse_move(move["move"]))
        assert move["thought"]["evaluation"] == -discs_ahead(after, 2)
        assert move["thought"]["principal_line"][0] == move["move"]
    others = [move["thought"]["evaluation"] for move in found["moves"][1:]]
    assert others == sorted(others, reverse=True)


def test_no_values_of_moves_are_given_where_none_are_asked_for(run: Run) -> None:
    found = analyzed(run, "f5", "--depth", "2", "--moves-depth", "0")
    assert [move["thought"] for move in found["moves"]] == [None] * 3


def test_rows_say_what_the_figures_say(run: Run) -> None:
    found = analyzed(run, LATER)
    status, output, _ = run(LATER)
    board, lines, moves, best = output.strip().split("\n\n")
    assert status == 0
    assert "black to move" in board
    rows = [row.split() for row in lines.splitlines()]
    assert rows[0] == ["depth", "discs", "value", "nodes", "s", "line"]
    assert [row[5:] for row in rows[1:]] == [line["principal_line"] for line in found["lines"]]
    assert rows[-1][0] == "exact"
    rows = [row.split(maxsplit=5) for row in moves.splitlines()]
    assert rows[0] == ["move", "discs", "depth", "exact", "loses", "reasons"]
    for row, move in zip(rows[1:], found["moves"], strict=True):
        score = move["exact_score"]
        assert row[:5] == [move["move"], row[1], "exact", f"{score:+d}" if score else "0", str(move["regret"])]
        assert [told[2:] for told in row[5].split("; ")] == [reason["text"] for reason in move["reasons"]]
        assert [told[0] == "+" for told in row[5].split("; ")] == [reason["is_good"] for reason in move["reasons"]]
    assert best.startswith(f"best: {found['best_move']}, ")
    assert best.endswith(" discs for black, exact")


@pytest.mark.parametrize("variant", Variant.NAMES)
def test_every_variant_is_analyzed_from_its_start(variant: str, run: Run) -> None:
    found = analyzed(run, "--variant", variant, "--depth", "2")
    start = Position(variant)
    assert found["position"] == start.text
    assert found["variant"] == variant
    assert sorted(move["move"] for move in found["moves"]) == sorted(map(start.move_name, start.legal_moves))
    assert cli.main(["analyze", "--variant", variant, "--nodes", "50"]) == 0


def test_a_position_is_a_board_or_the_moves_of_a_game(run: Run) -> None:
    for words, text in (
        (["b1", "--variant", "othello-4x4", "--depth=1"], "-X---XX--XO----- O"),
        (["f5 d6", "greedy"], None),
        ([str(Position("othello-6x6")), "random"], Position("othello-6x6").text),
        (["random", "--variant", "reversi-1883"], Position("reversi-1883").text),
        (["zero-6x6", "--nodes=200"], Position("othello-6x6").text),
    ):
        found = analyzed(run, *words)
        assert text is None or found["position"] == text
        assert found["best_move"] in {move["move"] for move in found["moves"]}


def test_scoring_and_goal_are_the_variants(run: Run) -> None:
    board, side = LATE.split()
    found = analyzed(run, LATE, "--scoring", "tournament")
    assert found["lines"][-1]["evaluation"] == oracle.negamax(list(board), side, "most", "tournament")
    position = Position.from_text(LATE, Variant(size=4, goal="fewest"))
    *_, last = Deepening(AlphaBetaAgent(), position, {})
    assert last.decision.is_exact
    assert last.decision.evaluation == oracle.negamax(list(board), side, "fewest")


@pytest.mark.parametrize(
    ("text", "score"), [("X" * 16 + " O", "-16"), ("XXXX" + "-" * 12 + " X", "+4"), ("-" * 16 + " X", "0")]
)
def test_a_finished_game_has_its_score_and_no_moves(text: str, score: str, run: Run) -> None:
    for words in ([], ["greedy"]):
        status, output, _ = run(text, *words)
        assert status == 0
        assert output.splitlines()[-1].startswith(f"the game is over: {score} for ")
        found = analyzed(run, text, *words)
        assert (found["is_over"], found["score"]) == (True, int(score))
        assert (found["lines"], found["moves"], found["best_move"]) == ([], [], None)


def test_a_pass_is_analyzed_as_the_only_move(run: Run) -> None:
    found = analyzed(run, "XO" + "-" * 14 + " O")
    (move,) = found["moves"]
    assert move["move"] == found["best_move"] == "pass"
    assert [reason["kind"] for reason in move["reasons"] if reason["kind"] != "exact_score"] == ["only_move"]
    assert found["lines"][-1]["principal_line"][0] == "pass"


# Limits


def test_limits_replace_those_of_the_agent(run: Run) -> None:
    found = analyzed(run, "f5d6c3", "--nodes", "3000", "--moves-depth=0")
    assert 0 < found["lines"][-1]["nodes"] < 3200
    assert [line["depth"] for line in found["lines"]] == list(range(1, len(found["lines"]) + 1))
    assert not found["is_stopped"]
    found = analyzed(run, "f5d6c3", "alphabeta:depth=6", "--depth", "4", "--moves-depth=0")
    assert [line["depth"] for line in found["lines"]] == [2, 4]
    found = analyzed(run, "f5d6c3", "alphabeta:depth=2", "--moves-depth=0")
    assert [line["depth"] for line in found["lines"]] == [2]
    found = analyzed(run, "f5d6c3", "--time-limit-s", "0.05", "--moves-depth=0")
    assert found["lines"]


def test_a_proven_win_is_a_bound(run: Run) -> None:
    words = (WON, "alphabeta:exact=14,table_entries=4096", "--nodes", "2000")
    found = analyzed(run, *words)
    last = found["lines"][-1]
    position = Position.from_text(WON)
    assert (last["is_win"], last["is_exact"], last["depth"], last["value"]) == (True, False, None, 1)
    assert 0 < last["evaluation"] <= Solver(position.variant).solve(position).score
    assert not any(line["is_win"] for line in found["lines"][:-1])
    _, output, _ = run(*words)
    assert output.splitlines()[-1].endswith(f"≥ {last['evaluation']:+.0f} discs for black, win")


def test_the_best_agent_is_the_expert_without_its_limit(run: Run) -> None:
    for variant in ("othello", "othello-10x10"):
        name = analyzed(run, "--variant", variant, "--nodes=1", "--moves-depth=0")["agent"]
        best, expert = agents.make(name), agents.make("level:expert")
        assert isinstance(best, AlphaBetaAgent)
        assert isinstance(expert, LevelAgent)
        assert best.config == replace(expert.config, time_limit_s=None, evaluation=best.config.evaluation)


# Ctrl-C


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_search_and_all_is_printed(number: int, run: Run) -> None:
    run("--depth", "1")  # compiles
    before = signal.getsignal(number)
    timer = threading.Timer(0.7, os.kill, (os.getpid(), number))
    timer.start()
    found = analyzed(run)  # Othello from its start has no end
    timer.join()
    assert found["is_stopped"]
    assert found["lines"]
    assert len(found["moves"]) == 4
    assert signal.getsignal(number) is before


def test_ctrl_c_in_a_terminal_prints_the_summary_and_is_no_failure() -> None:
    command = [sys.executable, "-m", "reversi_lab", "analyze", "f5d6c3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("    9 "):  # the board has no such row
                break
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=120)
    assert process.returncode == cli.DONE, errors
    assert "Traceback" not in errors
    assert re.search(r"^move +discs +depth +reasons$", rest, re.MULTILINE)
    assert re.search(r"^stopped; best: [a-h][1-8], [+-]\d+\.\d discs for white, \d+ plies ahead$", rest, re.MULTILINE)


def test_the_second_ctrl_c_interrupts_as_ever() -> None:
    before = signal.getsignal(signal.SIGINT)
    stops: list[int] = []
    with stopped_by_signals(lambda: stops.append(1)):
        signal.raise_signal(signal.SIGINT)
        assert stops == [1]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert stops == [1]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_search_stopped_at_once_has_a_thought() -> None:
    search = Deepening(AlphaBetaAgent(AlphaBetaConfig(evaluation="discs")), Position(), {})
    search.stop()
    assert [thought.decision.depth for thought in search] == [1]
    assert search.is_stopped


# Other agents


class Sure(Agent):
    """Plays the last legal move, and tells all it can."""

    name = "sure"

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        policy = np.zeros(position.variant.num_actions, np.float32)
        policy[list(position.legal_moves)] = np.arange(1, len(position.legal_moves) + 1)
        return Decision(position.legal_moves[-1], value=0.5, policy=policy / policy.sum(), num_nodes=7)


class Cheat(Agent):
    name = "cheat"

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        return Decision(0)


class Broken(Agent):
    name = "broken"

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        raise RuntimeError("no idea")


@pytest.fixture
def bots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has "sure", "cheat" and "broken" name agents."""
    make = agents.make
    own: dict[str, Callable[[], Agent]] = {"sure": Sure, "cheat": Cheat, "broken": Broken}
    monkeypatch.setattr(agents, "make", lambda spec: own[spec]() if spec in own else make(spec))


@pytest.mark.usefixtures("bots")
def test_another_agent_decides_once_and_its_policy_is_shown(run: Run) -> None:
    found = analyzed(run, "f5", "sure")
    (line,) = found["lines"]
    assert (line["depth"], line["value"], line["nodes"]) == (None, 0.5, 7)
    assert [move["share"] for move in found["moves"]] == pytest.approx([3 / 6, 2 / 6, 1 / 6])
    assert line["principal_line"] == [found["best_move"]]
    _, output, _ = run("f5", "sure")
    assert output.splitlines()[-1].endswith(", value +0.50 for white")
    assert "50.0%" in output


@pytest.mark.usefixtures("bots")
def test_an_agent_that_fails_is_told_in_a_sentence(run: Run) -> None:
    for bot, sentence in (
        ("cheat", "cheat broke the rules: a1 is not legal for white in "),
        ("broken", "broken failed in "),
    ):
        status, output, stderr = run("f5", bot, "--json")
        assert (status, output) == (1, "")
        assert stderr.startswith(f"reversi: {sentence}")
        assert stderr.count("\n") == 1


@pytest.mark.parametrize("spec", ["random", "greedy", "mobility", "level:easy", "level:hard"])
def test_agents_that_come_along_are_analyzed(spec: str, run: Run) -> None:
    found = analyzed(run, "f5d6", spec)
    assert len(found["lines"]) == 1
    assert found["best_move"] == found["lines"][0]["principal_line"][0]


# Words

WRONG_USAGE = {
    "f5q9": "moves: character 3 of the transcript: 'q' is not a square of 8×8",
    "f5f5": "moves: move 2: f5 is not legal for white",
    "---XO-X": "unknown option",
    "XO": "position: a board text is one character a square and the side to move",
    "XO random": "position: a board text is one character a square and the side to move",
    "q9": "unknown agent 'q9'; ",
    "gredy": "unknown agent 'gredy'; did you mean greedy?; a position is a board with the side to move, or moves",
    "f5 gredy": "unknown agent 'gredy'; did you mean greedy?\n",
    "q9 greedy": "position: a board text is",
    "f5 d6 greedy": "a position, an agent, or first the one and then the other; found f5 d6 greedy",
    "f5 alphabeta:deph=3": "unknown option of alphabeta 'deph'; did you mean depth?",
    "f5 --variant othelo": "unknown variant 'othelo'; did you mean othello",
    "f5 --scoring tornament": "unknown scoring 'tornament'; did you mean tournament?",
    "f5 --depth 0": "depth must be at least 1 ply, got 0",
    "f5 --nodes 0": "nodes must be at least 1, got 0",
    "f5 --time-limit-s nan": "time_limit_s must be more than 0 seconds, got nan",
    "f5 --moves-depth 1": "moves_depth is 0 for none, or 2 to 200 plies, got 1",
    "f5 -- moves_depth=-2": "moves_depth is 0 for none, or 2 to 200 plies, got -2",
    "f5 random --depth 3": "random decides once; depth would be for a search",
    "f5 level:hard --nodes 3 --depth 3": "level:hard decides once; depth and nodes would be for a search",
    "f5 mcts --depth 3": "mcts searches a tree to no one depth; limit it by time_limit_s or nodes",
    "f5 --dpth 3": "unknown option '--dpth'; did you mean --depth or --moves-depth",
}


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_wrong_usage_gets_a_sentence(line: str, run: Run) -> None:
    status, output, stderr = run(*line.split())
    assert (status, output) == (2, "")
    assert stderr.startswith(f"reversi: {WRONG_USAGE[line]}")
    assert stderr.count("\n") == 1


def test_commands_of_the_help_can_be_pasted(run: Run) -> None:
    help_text = analyze.__doc__ or ""
    commands = re.findall(r"^    reversi analyze (\S.*?)(?:  |$)", help_text, re.MULTILINE)
    assert len(commands) == 5
    for command in commands[:1] + commands[3:4]:
        assert run(*command.split())[0] == 0


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("f5d6c3", True),
        ("1. f5 d6 2. c3", True),
        ("F5q9", True),
        ("----XXX--XX--OX- O", True),
        ("XO", True),
        (str(Position()), True),
        ("alphabeta:depth=3", False),
        ("gtp:'gtp-rhino -l 3 -b 0'", False),
        ("runs/f5", False),
        ("b1_bot.py:Bot", False),
        ("a1/run", False),
        ("random", False),
        ("zero-6x6", False),
        ("othello", False),
    ],
)
def test_positions_are_told_from_agents(word: str, expected: bool) -> None:
    assert looks_like_position(word) == expected


# Phrases


def test_every_kind_of_reason_has_a_phrase_and_no_other() -> None:
    assert {key.partition(".")[0] for key in PHRASES} == {reason.kind for reason in IMPORTANCE}


@pytest.mark.parametrize("goal", ["most", "fewest"])
def test_reasons_of_random_games_can_be_told(goal: str) -> None:
    variant = Variant(size=6, goal=goal)
    solver = Solver(variant, 1 << 10)
    told: set[str] = set()
    for game in random_games(Position(variant), 20, seed=5).moves.tolist():
        position = Position(variant)
        for move in game:
            if move == NO_MOVE:
                break
            for reason in explain(position, move, solver, 5).reasons:
                text = phrase(reason, position)
                assert not re.search(r"[{}]|None|  |\b1 \w+s\b", text), text
                told.add(reason.kind)
            position = position.play(move)
    assert len(told) >= len(IMPORTANCE) - 2


def test_phrases_are_filled_with_names_and_counts() -> None:
    position = Position()
    for reason, text in (
        (OpensCorner(False, 0, 9, (1,)), "lets the opponent take the corner a1, through b1 b2"),
        (OpensCorner(True, 0, None, (8,)), "lets the opponent take the corner a1, through a2"),
        (Replies(True, 1, 0), "leaves the opponent 1 move, 0 safe"),
        (LosesDiscs(False, 2, (1, 2)), "ends 2 discs worse than b1 c1"),
        (FlipsDiscs(True, 1, -2), "flips 1 disc, frontier -2"),
        (StableDiscs(True, (0, 1)), "makes 2 discs stable"),
        (Parity(True, (0, 1, 8), True, False), "gets the last move in the region a1 b1 a2"),
        (Parity(False, (0, 1), False, False), "leaves the opponent the last move in the region a1 b1"),
        (Parity(True, (0, 1), True, True), "plays in the region a1 b1, where the opponent cannot"),
    ):
        assert phrase(reason, position) == text


def test_a_tree_search_tells_visits_values_and_priors_of_moves_at_each_doubling(run: Run) -> None:
    status, output, _ = run("f5d6c3", "mcts:evaluation=mobility", "--nodes", "100", "--json")
    found = json.loads(output)
    assert status == 0
    assert [thought["nodes"] for thought in found["lines"]] == [16, 32, 64, 100]
    assert sum(move["visits"] or 0 for move in found["moves"]) == 100
    assert sum(move["prior"] or 0 for move in found["moves"]) <= 1.0001
    best = max(found["moves"], key=lambda move: move["visits"] or 0)
    assert found["best_move"] == best["move"] == found["lines"][-1]["principal_line"][0]
    assert not any(thought["is_win"] or thought["is_exact"] for thought in found["lines"])
