"""The GTP player: against an engine by the rule book with every fault, and against gtp-rhino where it is installed."""

import gc
import os
import pickle
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import agents
from agents import engine_process
from agents.engine_process import EngineError, find_program
from agents.gtp import GTPAgent, GTPConfig
from agents.lines import Lines
from experiments.match import MatchError, play_match
from reversi_env import Game, Position, Variant, random_games
from reversi_env.naming import UnknownNameError, UsageError
from tests import oracle

ROOT = Path(__file__).parents[2]

# Plays the first legal square. Its arguments: where the oracle lies, a file for what it is told, and its habits.
ENGINE = r"""
import os, signal, sys, time

tests, log, *habits = sys.argv[1:]
sys.path.insert(0, tests)
import oracle

COLORS = {"black": "X", "white": "O"}
COLUMNS = "ABCDEFGH"
FAULTS = {
    "garbage": "What do you mean?",
    "refuses": "? no time",
    "illegal": "= A1",
    "passes": "= PASS",
    "nonsense": "= the corner",
    "resigns": "= resign",
}

if "usage" in habits:
    sys.exit("no such level: 9")
if "stubborn" in habits:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
size = 8
board, side = oracle.start_board(size, "diagonal"), "X"


def generate(color):
    if "dies" in habits:
        sys.exit("out of memory")
    if "crashes" in habits:
        os.kill(os.getpid(), signal.SIGKILL)
    if "mute" in habits:
        os.close(1)
    if "mute" in habits or "silent" in habits:
        time.sleep(60)
    for habit in FAULTS.keys() & habits:
        return FAULTS[habit]
    square = oracle.legal_squares(board, COLORS[color])[0]
    return f"= {COLUMNS[square % size]}{square // size + 1}"


def play(color, vertex):
    global board, side
    passes_alone = "passes alone" in habits
    if vertex == "pass":
        if passes_alone or not oracle.must_pass(board, side):
            return "? illegal pass"
        side = oracle.other(side)
        return "="
    if passes_alone and oracle.must_pass(board, side):
        side = oracle.other(side)
    square = COLUMNS.index(vertex[0].upper()) + size * (int(vertex[1:]) - 1)
    if COLORS[color] != side or square not in oracle.legal_squares(board, side):
        return "? illegal move"
    board, side = oracle.play(board, side, square), oracle.other(side)
    return "="


def answer(command, *words):
    global board, side, size
    if command == "genmove":
        return generate(*words)
    if command == "play":
        return play(*words)
    if command == "known_command":
        known = "set-up" in habits and words == ("grhino-setup_board",)
        return "= true" if known else "? what?" if "ignorant" in habits else "= false"
    if command == "grhino-setup_board":
        board, side = list(words[0]), COLORS[words[1]]
    if command == "boardsize":
        if words[0] not in ("6", "8"):
            return "? unacceptable size"
        size = int(words[0])
    if command in ("boardsize", "clear_board"):
        board, side = oracle.start_board(size, "diagonal"), "X"
    return "="


for line in sys.stdin:
    with open(log, "a") as told:
        told.write(f"{os.getpid()} {line}")
    if "noisy" in habits:
        sys.stderr.write("thinking " * 100_000)
    print(answer(*line.split()), end="\r\n\r\n\r\n" if "spacious" in habits else "\n\n", flush=True)
    if line == "quit\n":
        break
"""

MakeEngine = Callable[..., GTPAgent]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "told"


@pytest.fixture
def engine(tmp_path: Path, log: Path) -> MakeEngine:
    """Returns `engine(*habits, timeout_s=…)`, which makes a player through the engine above."""
    program = tmp_path / "engine.py"
    program.write_text(ENGINE)

    def make(*habits: str, timeout_s: float = 60.0) -> GTPAgent:
        words = [sys.executable, str(program), str(ROOT / "tests"), str(log), *habits]
        return GTPAgent(GTPConfig(shlex.join(words), timeout_s))

    return make


@pytest.fixture(scope="session")
def rhino() -> str:
    """Returns the name of the program; where it is not installed, as `data` where a file is missing."""
    try:
        find_program("gtp-rhino")
    except UsageError as error:
        if os.environ.get("REVERSI_REQUIRE_DATA") == "1":
            pytest.fail(f"{error}; Debian's package grhino brings it")
        pytest.skip(f"{error}; Debian's package grhino brings it")
    return "gtp-rhino"


def decide(agent: agents.Agent, position: Position | None = None) -> int:
    return agent.select(position or Position(), np.random.default_rng(0)).move


def told(log: Path) -> list[str]:
    """Returns the lines that the engine was told."""
    return [line.split(maxsplit=1)[1] for line in log.read_text().splitlines()]


def pids(log: Path) -> set[int]:
    return {int(line.split()[0]) for line in log.read_text().splitlines()}


def is_running(pid: int) -> bool:
    """Returns whether there is such a process, one that has ended and was not waited for included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def first_legal(position: Position) -> int:
    return oracle.legal_squares(list(position.board), position.side)[0]


def some_positions(num_games: int, variant: Variant | None = None) -> list[Position]:
    """Returns positions of random games that have a move, from the first to the last."""
    games = random_games(Position(variant or Variant()), num_games, seed=3)
    return [
        position
        for moves, length in zip(games.moves.tolist(), games.lengths.tolist(), strict=True)
        for position in Game.from_moves(moves[:length], variant or Variant()).positions
        if not position.must_pass and not position.is_over
    ]


# Names


@pytest.mark.parametrize(
    ("spec", "command", "timeout_s"),
    [
        ("gtp:sh -l 3 -b 0", "sh -l 3 -b 0", 120.0),
        ("gtp:'sh -l 3 -b 0'", "sh -l 3 -b 0", 120.0),
        ('gtp: "sh -l 3" ', "sh -l 3", 120.0),
        ("gtp:sh", "sh", 120.0),
        ("gtp:sh --command=a,timeout_s=b", "sh --command=a,timeout_s=b", 120.0),
        ("gtp:'sh' -c 'a b'", "'sh' -c 'a b'", 120.0),
        ("""gtp:"sh -c 'a b'" """, "sh -c 'a b'", 120.0),
        ("gtp:timeout_s=10,command='sh -l 3'", "sh -l 3", 10.0),
        ("gtp: timeout_s = 0.5, command = sh -x,command=y", "sh -x,command=y", 0.5),
        ("gtp:command=sh -l", "sh -l", 120.0),
    ],
)
def test_all_after_the_colon_or_after_command_is_the_command_line(spec: str, command: str, timeout_s: float) -> None:
    agent = agents.make(spec)
    assert isinstance(agent, GTPAgent)
    assert agent.config == GTPConfig(command, timeout_s)
    again = agents.make(agent.name)
    assert isinstance(again, GTPAgent)
    assert again.config == agent.config


def test_a_name_is_what_people_type() -> None:
    assert agents.make("gtp:sh -l 3").name == "gtp:'sh -l 3'"
    assert agents.make("gtp:timeout_s=2.5,command=sh").name == "gtp:timeout_s=2.5,command=sh"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("gtp", "an engine needs a command line, such as 'gtp-rhino -l 3 -b 0'"),
        ("gtp:", "an engine needs a command line"),
        ("gtp:no-such-engine -l 3", "there is no program 'no-such-engine' on the PATH or in /usr/games"),
        ("gtp:sh 'a", 'gtp: the command line "sh \'a" cannot be split into words: No closing quotation'),
        ("gtp:timeout_s=0,command=sh", "gtp: timeout_s is more than 0 and at most 86400, got 0"),
        ("gtp:timeout_s=nan,command=sh", "gtp: timeout_s is more than 0 and at most 86400, got nan"),
        ("gtp:timeout_s=soon,command=sh", "gtp: timeout_s is a number, got 'soon'"),
        ("gtp:time_out_s=3,command=sh", "unknown option of gtp 'time_out_s'; did you mean timeout_s?"),
    ],
)
def test_a_faulty_name_is_wrong_usage(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        agents.make(spec)
    assert sentence in str(caught.value)


def test_a_near_miss_of_the_name_is_told() -> None:
    with pytest.raises(UnknownNameError, match="unknown agent 'gpt'; did you mean gtp"):
        agents.make("gpt:timeout_s=3")


def test_a_file_that_is_no_program_cannot_be_run(tmp_path: Path) -> None:
    (program := tmp_path / "engine").write_bytes(b"\x00")
    program.chmod(0o755)
    with pytest.raises(EngineError, match="engine cannot be run: Exec format error"):
        decide(agents.make(f"gtp:{program}"))


# Positions


def test_the_engine_starts_at_the_first_move_and_serves_all_games(engine: MakeEngine, log: Path) -> None:
    agent = engine("set-up")
    assert not log.exists()
    positions = some_positions(3)
    rngs = [np.random.default_rng(0)] * len(positions)
    moves = [decision.move for decision in agent.select_batch(positions, rngs)]
    assert moves == [first_legal(position) for position in positions]
    assert len(pids(log)) == 1
    assert told(log)[:4] == [
        "boardsize 8",
        "known_command grhino-setup_board",
        "grhino-setup_board ---------------------------OX------XO--------------------------- black",
        "genmove black",
    ]


def test_every_size_that_the_engine_takes_is_played(engine: MakeEngine) -> None:
    agent = engine("set-up")
    small = some_positions(1, Variant.named("othello-6x6"))
    for position in (*small[::8], Position(), *small[::8]):
        assert decide(agent, position) == first_legal(position)


@pytest.mark.parametrize("habit", ["plain", "passes alone", "ignorant", "spacious"])
def test_an_engine_without_a_command_to_set_up_is_told_games(engine: MakeEngine, log: Path, habit: str) -> None:
    variant = Variant.named("othello-6x6")
    moves = random_games(Position(variant), 40, seed=3).moves[:, :24].tolist()
    games = sorted((Game.from_moves(line, variant) for line in moves), key=lambda game: -game.moves.count(36))[:3]
    agent = engine(habit)
    for side_by_side in zip(*(game.positions[6:] for game in games), strict=True):
        for position in side_by_side:
            assert decide(agent, position) == (36 if position.must_pass else first_legal(position))
    assert sum(line == "clear_board" for line in told(log)) > 40
    assert any(line.endswith("pass") for line in told(log))


def test_a_position_that_no_game_is_found_for_is_refused(engine: MakeEngine) -> None:
    agent = engine("plain")
    lonely = Position.from_text("XO" + "-" * 61 + "X X")
    with pytest.raises(
        ValueError, match=r"has no command grhino-setup_board, and no game was found that leads to XO-.* X$"
    ):
        decide(agent, lonely)
    assert decide(agent) == first_legal(Position())


def test_an_engine_that_is_told_games_is_told_none_from_another_start(engine: MakeEngine, log: Path) -> None:
    """`clear_board` makes the diagonal start, whatever start the position's own game had."""
    agent = engine("plain")
    opened, parallel = Position().play(19), Position(Variant(start="parallel"))
    assert decide(agent, Position(Variant(start=opened.text))) == first_legal(opened)
    assert "play black d3" in told(log)
    with pytest.raises(ValueError, match="no game was found"):
        decide(agent, parallel)
    assert decide(engine("set-up"), parallel) == first_legal(parallel)


def test_a_game_is_found_to_openings_and_to_what_follows_them() -> None:
    lines = Lines()
    moves = random_games(Position(), 20, seed=4).moves[:, :40].tolist()
    games = [Game.from_moves(line) for line in moves]
    for ply in range(9, 40, 2):
        for game in games:
            found = lines.to(game.positions[ply])
            assert Game.from_moves(found).position == game.positions[ply]
            assert len(found) == ply


def test_a_search_for_a_game_gives_up() -> None:
    (late,) = [position for position in some_positions(1) if position.num_empties == 20]
    with pytest.raises(ValueError, match="no game was found"):
        Lines().to(late)


@pytest.mark.parametrize("name", ["anti-reversi", "reversi-1883"])
def test_other_rules_are_refused(engine: MakeEngine, log: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"cannot play {name}: what GTP engines know is Othello"):
        decide(engine("set-up"), Position(name))
    assert not log.exists()


def test_a_size_that_the_engine_does_not_take_is_refused(engine: MakeEngine) -> None:
    with pytest.raises(EngineError, match="refused 'boardsize 10': unacceptable size"):
        decide(engine("set-up"), Position("othello-10x10"))


def test_a_forced_pass_and_a_game_that_is_over_are_no_question_for_an_engine(engine: MakeEngine, log: Path) -> None:
    assert decide(engine("set-up"), Position.from_text("XO" + "-" * 62 + " O")) == 64
    with pytest.raises(ValueError, match="the game is over"):
        decide(engine("set-up"), Position.from_text("X" * 64 + " O"))
    assert not log.exists()


def test_a_copy_has_an_engine_of_its_own(engine: MakeEngine, log: Path) -> None:
    agent = engine("set-up")
    decide(agent)
    copy = pickle.loads(pickle.dumps(agent))
    assert copy.name == agent.name
    decide(copy)
    assert len(pids(log)) == 2


# Faults


@pytest.mark.parametrize(
    ("habit", "sentence"),
    [
        ("usage", "ended with status 1 when asked '.*'; it said: no such level: 9$"),
        ("dies", "ended with status 1 when asked 'genmove black'; it said: out of memory$"),
        ("crashes", "ended killed by signal 9 when asked 'genmove black'$"),
        ("mute", "closed its output when asked 'genmove black'$"),
        ("garbage", "answered 'What do you mean[?]' to 'genmove black', which is no GTP$"),
        ("refuses", "refused 'genmove black': no time$"),
        ("illegal", "answered 'A1', which is no legal move for black in -.* X; legal: d3 c4 f5 e6$"),
        ("passes", "answered 'PASS', which is no legal move for black"),
        ("nonsense", "answered 'the corner', which is no legal move for black"),
        ("resigns", "answered 'resign', which is no legal move for black"),
    ],
)
def test_a_fault_is_told_in_a_sentence_and_ends_the_engine(
    engine: MakeEngine, log: Path, monkeypatch: pytest.MonkeyPatch, habit: str, sentence: str
) -> None:
    monkeypatch.setattr(engine_process, "GRACE_S", 0.2)
    agent = engine(habit, "set-up")
    for _ in range(2):  # another engine is started
        with pytest.raises(EngineError, match=sentence) as caught:
            decide(agent)
        assert str(caught.value).startswith(sys.executable)
    if log.exists():
        assert len(pids(log)) == 2
        assert not any(map(is_running, pids(log)))


def test_an_engine_that_is_silent_is_killed_when_its_time_is_over(
    engine: MakeEngine, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "GRACE_S", 0.1)
    agent = engine("silent", "stubborn", "set-up", timeout_s=2)
    with pytest.raises(EngineError, match="did not answer 'genmove black' within 2 s"):
        decide(agent)
    (pid,) = pids(log)
    assert not is_running(pid)


def test_complaints_do_not_block_an_engine(engine: MakeEngine) -> None:
    agent = engine("noisy", "set-up")
    for position in some_positions(1)[:3]:
        assert decide(agent, position) == first_legal(position)


def test_a_match_names_the_engine_that_failed(engine: MakeEngine) -> None:
    agent = engine("refuses", "set-up")
    with pytest.raises(MatchError, match=r"^gtp:.* failed in -.*: Refusal: .* refused 'genmove black': no time$"):
        play_match(agent, agents.make("random"), Variant(), 2, seed=0)


def test_what_an_engine_says_is_shown_without_control_characters() -> None:
    with pytest.raises(EngineError, match=r"it said: a \[31mb$"):
        decide(agents.make(r"""gtp:sh -c 'printf "a\033[31mb\0" >&2; exit 1'"""))


# The end of an engine


@pytest.mark.parametrize("end", ["exit 1", "wait"], ids=["ended", "was stopped"])
def test_what_an_engine_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setattr(engine_process, "GRACE_S", 0.2)
    started = tmp_path / "started"
    script = f"(trap '' TERM; exec sleep 60 >&- 2>&-) & echo $! > {started}; {end}"
    with pytest.raises(EngineError):
        decide(agents.make(f"gtp:timeout_s=2,command=sh -c {shlex.quote(script)}"))
    deadline = time.monotonic() + 5
    while is_running(int(started.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)  # whoever took it over has to wait for it
    assert not is_running(int(started.read_text()))


def test_an_engine_ends_with_its_player(engine: MakeEngine, log: Path) -> None:
    agent = engine("set-up")
    decide(agent)
    (pid,) = pids(log)
    assert is_running(pid)
    del agent
    gc.collect()
    assert not is_running(pid)
    assert told(log)[-1] == "quit"


def test_a_player_that_was_closed_plays_on_with_another_engine(engine: MakeEngine, log: Path) -> None:
    agent = engine("set-up")
    agent.close()
    for _ in range(2):
        decide(agent)
        agent.close()
        agent.close()
        assert not any(map(is_running, pids(log)))
    assert len(pids(log)) == 2


@pytest.mark.parametrize("interrupted", [False, True], ids=["at its exit", "on Ctrl-C"])
def test_an_engine_ends_with_the_interpreter(engine: MakeEngine, log: Path, interrupted: bool) -> None:
    spec = engine("set-up", *(["silent"] if interrupted else [])).name
    code = (
        "import agents, numpy, reversi_env\n"
        f"agent = agents.make({spec!r})\n"
        "agent.select(reversi_env.Position(), numpy.random.default_rng(0))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True
    ) as host:
        if interrupted:
            while not (log.exists() and "genmove black" in log.read_text()):
                assert host.poll() is None
                time.sleep(0.05)
            (pid,) = pids(log)
            assert os.getsid(pid) == pid  # a terminal's Ctrl-C goes to the host's session
            os.killpg(host.pid, signal.SIGINT)
        _, said = host.communicate(timeout=60)
    (pid,) = pids(log)
    assert not is_running(pid)
    assert host.returncode == (-signal.SIGINT if interrupted else 0)
    assert said.decode().strip().endswith("KeyboardInterrupt" if interrupted else "")


# gtp-rhino


def test_rhino_says_what_it_says_when_told_the_game_by_hand(rhino: str) -> None:
    (moves,) = random_games(Position(), 1, seed=7).moves[:, :50].tolist()
    game = Game.from_moves(moves)
    agent = agents.make(f"gtp:'{rhino} -l 2 -b 0'")
    for ply in range(3, 50, 5):  # its first move of all it draws
        position = game.positions[ply]
        turns = zip(game.positions[:ply], game.moves[:ply], strict=True)
        plays = [f"play {before.color_name} {before.move_name(move)}" for before, move in turns if move != 64]
        script = "\n".join([*plays, f"genmove {position.color_name}", "quit", ""])
        words = [*find_program(rhino), "-l", "2", "-b", "0"]
        answers = subprocess.run(words, input=script, capture_output=True, text=True, check=True).stdout.split("\n\n")
        assert f"= {position.move_name(decide(agent, position)).upper()}" == answers[len(plays)]


def test_the_moves_of_rhino_do_not_depend_on_what_it_was_asked_before(rhino: str) -> None:
    positions = some_positions(2)[::3]
    forth, back = (agents.make(f"gtp:{rhino} -l 1 -b 0") for _ in range(2))
    moves = [decide(forth, position) for position in positions]
    assert [decide(back, position) for position in reversed(positions)] == moves[::-1]


def test_rhino_plays_a_match(rhino: str) -> None:
    match = play_match(agents.make(f"gtp:'{rhino} -l 1 -b 0'"), agents.make("random"), Variant(), 6, seed=0)
    assert match.wins >= 5  # it is 480 Elo stronger, and what it plays is always the same
    assert match.first == f"gtp:'{rhino} -l 1 -b 0'"


def test_rhino_refuses_what_it_does_not_know(rhino: str) -> None:
    with pytest.raises(EngineError, match="refused 'boardsize 6': unacceptable size"):
        decide(agents.make(f"gtp:{rhino}"), Position("othello-6x6"))
    with pytest.raises(EngineError, match=r"ended with status 1 .*; it said: gtp-rhino: invalid argument for option"):
        decide(agents.make(f"gtp:{rhino} -l 9"))
