"""Agents by name: what each text makes, and what faulty ones get to hear."""

import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents import registry
from agents.alpha_beta import AlphaBetaAgent, AlphaBetaConfig
from agents.checkpoint import Checkpoint, write_checkpoint
from agents.manifest import CheckpointError
from agents.mcts import MCTSConfig
from agents.ntuple.tables import Tables, write_tables
from agents.runs import CHECKPOINTS
from reversi_env import IllegalMoveError, Position, Variant
from reversi_env.naming import UnknownNameError, UsageError

BOTS = """
import numpy as np

from agents import Agent, Decision


class First(Agent):
    name = "first"

    def select(self, position, rng):
        return Decision(position.legal_moves[0])


class WithArguments(First):
    def __init__(self, depth):
        self.depth = depth


class Broken(First):
    def __init__(self):
        raise RuntimeError("no book")


def factory():
    return First()


def last(position, rng):
    return position.legal_moves[-1]


ready = First()
number = 7
"""


@pytest.fixture
def bots(tmp_path: Path) -> Path:
    path = tmp_path / "bots.py"
    path.write_text(BOTS)
    return path


def move(agent: agents.Agent) -> int:
    return agent.select(Position(), np.random.default_rng(0)).move


@pytest.mark.parametrize("name", ["random", "greedy", "positional", "mobility", "alphabeta"])
def test_every_name_makes_an_agent_that_plays(name: str) -> None:
    agent = agents.make(name)
    assert agent.name.startswith(name)
    assert move(agent) in Position().legal_moves


def test_options_are_read_as_the_fields_say() -> None:
    agent = agents.make("alphabeta:depth=none, time_limit_s=0.5,exact=12,evaluation=discs")
    assert isinstance(agent, AlphaBetaAgent)
    assert agent.config == AlphaBetaConfig(depth=None, time_limit_s=0.5, exact=12, evaluation="discs")
    assert agents.make("alphabeta: depth = 5").name == "alphabeta:depth=5"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("alphabeta", "alphabeta:depth=4"),
        ("alphabeta:depth=2,exact=10", "alphabeta:depth=2"),
        ("alphabeta:exact=0,depth=2", "alphabeta:depth=2,exact=0"),
        ("alphabeta:depth=1000000,evaluation=discs", "alphabeta:depth=1000000,evaluation=discs"),
        ("alphabeta:time_limit_s=0.5", "alphabeta:time_limit_s=0.5"),
        ("zero-6x6:num_simulations=4", "zero-6x6:num_simulations=4"),
    ],
)
def test_a_name_tells_what_makes_the_same_agent_again(spec: str, name: str) -> None:
    assert agents.make(spec).name == name
    assert agents.make(name).name == name


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("alphabta", "unknown agent 'alphabta'; did you mean alphabeta?"),
        ("alphabta:depth=5", "unknown agent 'alphabta'; did you mean alphabeta?"),
        (
            "qqq",
            "unknown agent 'qqq'; there are: alphabeta, greedy, gtp, level, mcts, mobility, ntuple-8x8, positional, ",
        ),
        ("qqq:Bot", "unknown agent or module 'qqq'; there are: alphabeta"),
        ("", "unknown agent ''; there are: alphabeta"),
        ("alphabeta:depht=5", "unknown option of alphabeta 'depht'; did you mean depth?"),
        ("alphabeta:depth=five", "alphabeta: depth is a whole number, got 'five'"),
        ("alphabeta:time_limit_s=soon", "alphabeta: time_limit_s is a number, got 'soon'"),
        ("alphabeta:depth=0", "depth must be at least 1 ply, got 0"),
        ("alphabeta:depth=5,exact", "'exact' in 'alphabeta:depth=5,exact' is not an option; write key=value"),
        ("alphabeta:depth", "'depth' in 'alphabeta:depth' is not an option; write key=value"),
        ("random:", "'' in 'random:' is not an option; write key=value"),
        ("zero-6x6:num_simulations=0", "zero-6x6: num_simulations must be"),
        ("zero-6x6:num_simulation=1", "unknown option of zero-6x6 'num_simulation'; did you mean num_simulations"),
        ("my_bot.py:Bot:depth=3", "my_bot.py:Bot takes no options, got depth"),
        ("alphabeta:depth=5,depth=6", "depth stands twice in 'alphabeta:depth=5,depth=6'"),
        ("alphabeta:evaluation=mobilty", "unknown evaluation 'mobilty'; did you mean mobility?"),
        ("random:seed=3", "random takes no options, got seed"),
        ("mcts:playouts=1,evaluation=discs", "mcts asks one judge of positions, got evaluation and playouts"),
        ("nowhere/bot.py:Bot", "there is no file"),
        ("bot.py", "say which of its classes or functions plays: bot.py:Bot"),
        ("reversi_env.nothing:Bot", "there is no module 'reversi_env.nothing'"),
        ("math:pi", "a player is an Agent, a class or function without arguments"),
    ],
)
def test_faulty_text_gets_a_sentence(spec: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        agents.make(spec)


@pytest.mark.parametrize(("attribute", "expected"), [("First", 0), ("factory", 0), ("ready", 0), ("last", -1)])
def test_a_file_of_ones_own_plays(bots: Path, attribute: str, expected: int) -> None:
    assert move(agents.make(f"{bots}:{attribute}")) == Position().legal_moves[expected]


def test_a_module_plays(bots: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bots.parent / "bots_module.py").write_text(BOTS)
    monkeypatch.syspath_prepend(str(bots.parent))
    assert agents.make("bots_module:First").name == "first"
    assert agents.make("bots_module:last").name == "bots_module:last"


def test_a_player_that_the_file_lacks_gets_the_near_miss(bots: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean First"):
        agents.make(f"{bots}:Frist")


def test_a_file_without_players_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("import random\n_HIDDEN = 1\n")
    with pytest.raises(UnknownNameError, match=r"unknown player of .*empty\.py 'Bot'; there are: none"):
        agents.make(f"{tmp_path / 'empty.py'}:Bot")


def test_a_player_without_a_name_is_called_as_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(BOTS.replace('    name = "first"\n', ""))
    spec = f"{tmp_path / 'bot.py'}:First"
    assert agents.make(spec).name == spec


@pytest.mark.parametrize("attribute", ["number", "WithArguments"])
def test_what_cannot_play_is_named(bots: Path, attribute: str) -> None:
    with pytest.raises(ValueError, match="a player is an Agent"):
        agents.make(f"{bots}:{attribute}")


def test_code_that_fails_is_named_with_file_and_line(bots: Path) -> None:
    line = BOTS.splitlines().index('        raise RuntimeError("no book")') + 1
    with pytest.raises(ValueError, match=rf"bots\.py, line {line}: RuntimeError: no book"):
        agents.make(f"{bots}:Broken")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("x = 1\nx = = 2\n", r"faulty\.py, line 2: SyntaxError: invalid syntax"),
        ("\n\nimport no_such_thing\n", r"faulty\.py, line 3: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("import json\njson.loads('{')\n", r"faulty\.py, line 2: JSONDecodeError"),
        ("import sys\nsys.exit(3)\n", r"faulty\.py, line 2: SystemExit: 3"),
        ("raise OSError\n", r"faulty\.py, line 1: OSError$"),
        ("x = '\0'\n", r"faulty\.py: SyntaxError: source code string cannot contain null bytes"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named_with_the_line(tmp_path: Path, code: str, sentence: str) -> None:
    (tmp_path / "faulty.py").write_text(code)
    with pytest.raises(ValueError, match=sentence):
        agents.make(f"{tmp_path / 'faulty.py'}:Bot")


def test_a_network_that_comes_along_is_a_checkpoint_too() -> None:
    assert agents.make("mcts:checkpoint=zero-6x6,num_simulations=3").variant == Variant(6)


def test_checkpoints_are_loaded_with_their_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, int, float, str]] = []

    def load_agent(path: Path, config: MCTSConfig, backend: str) -> agents.Agent:
        asked.append((path.as_posix(), config.simulation_limit, config.puct_constant, backend))
        return agents.make("random")

    stub: Any = types.ModuleType("agents.checkpoint")
    stub.load_agent = load_agent
    monkeypatch.setitem(sys.modules, "agents.checkpoint", stub)
    for folder in ("x", "runs/x", "runs/x/checkpoints/00012"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "manifest.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    agents.make("runs/x")
    agents.make("runs/x/checkpoints/00012:num_simulations=7")
    agents.make("x:backend=torch")  # a folder that is there
    agents.make("mcts:checkpoint=runs/x,puct_constant=2")
    agents.load("runs/x", num_simulations="10")
    assert asked == [
        ("runs/x", 100, 1.5, "auto"),
        ("runs/x/checkpoints/00012", 7, 1.5, "auto"),
        ("x", 100, 1.5, "torch"),
        ("runs/x", 100, 2.0, "auto"),
        ("runs/x", 10, 1.5, "auto"),
    ]


def test_names_are_those_that_make_knows() -> None:
    assert registry.names() == ("alphabeta", "greedy", "gtp", "level", "mcts", "mobility", "positional", "random")


def test_agents_come_without_torch_and_hydra() -> None:
    code = (
        "import sys, agents; agents.make('alphabeta'); agents.make_env('greedy');"
        "print(sorted({'torch', 'hydra', 'tensorboard'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[2]
    child = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert child.stdout.strip() == "[]"


@pytest.mark.parametrize("opponent", ["alphabeta:depth=2", "greedy", "mobility", None])
def test_an_environment_plays_any_agent_to_the_end(opponent: str | None) -> None:
    env = agents.make_env(opponent, variant="othello-6x6")
    env.reset(seed=1)
    terminated = False
    while not terminated:
        mask = env.unwrapped.action_masks()  # type: ignore[attr-defined]  # ReversiEnv's own
        *_, terminated, _, info = env.step(env.action_space.sample(mask=mask))
    assert info["discs"]


def test_an_environment_takes_an_agent_itself(bots: Path) -> None:
    class Illegal(agents.Agent):
        name = "hooligan"

        def select(self, position: Position, rng: np.random.Generator) -> agents.Decision:
            return agents.Decision(0)

    env = agents.make_env(Illegal())
    _, info = env.reset(seed=0)
    with pytest.raises(IllegalMoveError, match="hooligan"):
        env.step(int(np.flatnonzero(info["action_mask"])[0]))


def test_an_environment_names_the_near_miss() -> None:
    with pytest.raises(UnknownNameError, match="did you mean greedy"):
        agents.make_env("gredy")


def test_tables_play_with_alphabeta_and_an_evaluation_of_their_own(tmp_path: Path) -> None:
    write_tables(tmp_path / "tables", Tables.zeros(Variant(4)))
    agent = agents.make(f"{tmp_path}/tables:depth=2")
    assert isinstance(agent, AlphaBetaAgent)
    assert (agent.name, agent.variant) == (f"{tmp_path}/tables:depth=2", Variant(4))
    with pytest.raises(UsageError, match="tables is an evaluation itself; for another: alphabeta:evaluation=discs"):
        agents.make(f"{tmp_path}/tables:evaluation=discs")
    with pytest.raises(CheckpointError, match="it names no network"):
        agents.make(f"mcts:checkpoint={tmp_path}/tables")


def test_a_run_of_tables_is_no_network(tmp_path: Path) -> None:
    checkpoint = Checkpoint(Tables.zeros(Variant(4)), Variant(4))
    write_checkpoint(tmp_path / CHECKPOINTS / "000001", checkpoint)
    assert isinstance(agents.make(f"{tmp_path}"), AlphaBetaAgent)
    with pytest.raises(CheckpointError, match="holds n-tuple tables, with which alphabeta plays, and no network"):
        agents.make(f"mcts:checkpoint={tmp_path}")
