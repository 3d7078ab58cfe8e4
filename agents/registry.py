"""Agents by the text that people type: a name with options, a trained network, or code of their own.

"random", "greedy", "positional", "mobility": the simple players.
"level:easy", "level:medium", "level:hard", "level:expert": for people, see `agents.levels`.
"alphabeta:depth=5,exact=12": options are depth, time_limit_s, game_time_s, nodes, exact, evaluation (discs, positional,
mobility, ntuple, or a folder), selectivity (0 to 5) and table_entries, see `AlphaBetaConfig`.
"zero-6x6": a trained network that comes along, with search; options such as num_simulations=400, see `MCTSConfig`, and
backend=onnx-int8, see `agents.networks.published`.
"runs/x", "runs/x/checkpoints/000012:num_simulations=400": the same with a checkpoint's network, or that of a run's last
one; also "mcts:checkpoint=runs/x". Where algorithm=ntuple trained it is alphabeta with its tables:
"runs/x:time_limit_s=0.1".
"mcts:playouts=1", "mcts:evaluation=ntuple,num_simulations=10000": tree search without a network, by random games or by
an evaluation.
"ntuple-8x8": that with the n-tuples that come along.
"gtp:'gtp-rhino -l 3 -b 0'": an outside engine; all that follows is its command line, unless options stand before it,
the other fields of `GTPConfig`: "gtp:timeout_s=10,command='gtp-rhino -l 3 -b 0'".
"my_bot.py:Bot", "package.module:bot": an Agent, a class or function without arguments that makes one, or a function
(position, rng) -> move.
"""

import contextlib
import importlib
import importlib.util
import inspect
import os
import re
import shlex
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from agents.agent import Agent
from agents.alpha_beta import AlphaBetaAgent, AlphaBetaConfig
from agents.baselines import FunctionAgent, MobilityAgent, baseline
from agents.evaluation import KINDS, LEARNED, WEIGHTS, check_name
from agents.gtp import GTPAgent, GTPConfig
from agents.levels import LEVELS, level
from agents.mcts import Evaluator, MCTSAgent, MCTSConfig
from agents.mcts.evaluators import InDiscs, Playouts
from agents.networks.published import AUTO, BACKENDS
from agents.ntuple.tables import read_tables
from agents.runs import find_checkpoint, find_tables, holds_tables
from reversi_env.naming import UnknownNameError, UsageError, one_of
from reversi_env.opponents import BASELINES

Config = TypeVar("Config")
Options = dict[str, str]

_WITH_OPTIONS = re.compile(r"(?P<place>.+?):(?P<options>\s*\w+\s*=.*)")
_WITH_COMMAND = re.compile(r"(?P<options>(?:\s*\w+\s*=[^,]*,)*?)\s*command\s*=(?P<command>.+)")
_CODE = re.compile(r"(?P<place>.+\.py|[A-Za-z_][\w.]*):(?P<attribute>\w+)")
_TRUTHS = {"true": True, "false": False}


@dataclass
class _NetworkConfig(MCTSConfig):
    """A search, and what runs its network."""

    backend: str = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("backend", self.backend, (AUTO, *BACKENDS))


def make(spec: str) -> Agent:
    """Returns the agent that a text names, see above.

    Raises UsageError for text that means nothing, with near misses for a name, and another ValueError for what fails.
    Code is imported and run; a checkpoint is only read. A network brings in torch, nothing else here does.
    """
    spec = spec.strip()
    name, colon, text = spec.partition(":")
    if name in _MAKERS or name in shipped():
        parse = _PARSERS.get(name, _parse_options)
        return _MAKERS.get(name, _shipped)(name, parse(spec, text) if colon else {})
    if code := _CODE.fullmatch(spec):
        return _from_code(spec, code["place"], code["attribute"])
    match = _WITH_OPTIONS.fullmatch(spec)
    place, options = (match["place"], _parse_options(spec, match["options"])) if match else (spec, {})
    if _CODE.fullmatch(place):
        _refuse_options(place, options)
    if place.endswith(".py"):
        raise UsageError(f"{spec!r} names a file; say which of its classes or functions plays: {place}:Bot")
    if os.sep in place or "/" in place or os.path.isdir(place):  # Path("") would be the current folder
        return load(place, **options)
    raise UnknownNameError("agent", place, (*names(), *shipped()))


def load(path: str | Path, **options: str) -> Agent:
    """Returns the trained agent of a checkpoint or a run's last one; raises ValueError where there is none."""
    return _trained(Path(path), str(path), options)


def shipped() -> tuple[str, ...]:
    """Returns the names of the trained players that come with the distribution: networks and n-tuple tables."""
    return tuple(sorted(manifest.parent.name for manifest in WEIGHTS.glob("*/manifest.json")))


def _shipped(name: str, options: Options) -> Agent:
    return _trained(WEIGHTS / name, name, options)


def _trained(folder: Path, name: str, options: Options) -> Agent:
    checkpoint = find_checkpoint(folder)
    if not holds_tables(checkpoint):
        return _with_network(checkpoint, name, options)
    if "evaluation" in options:
        raise UsageError(f"{name} is an evaluation itself; for another: alphabeta:evaluation={options['evaluation']}")
    agent = _alpha_beta(name, {"evaluation": str(find_tables(checkpoint)), **options})
    agent.name = _spelled(name, options)
    return agent


def _with_network(checkpoint: Path, name: str, options: Options) -> Agent:
    from agents.checkpoint import load_agent  # imports torch, which takes a second that no other agent needs

    config = config_from(_NetworkConfig, name, options)
    agent = load_agent(checkpoint, config, config.backend)
    agent.name = _spelled(name, options)
    return agent


def _spelled(name: str, options: Options) -> str:
    """Returns the text that names an agent with options."""
    return ":".join([name, ",".join(f"{key}={value}" for key, value in options.items())]).rstrip(":")


def names() -> tuple[str, ...]:
    """Returns the names that stand for agents, in alphabetical order."""
    return tuple(sorted(_MAKERS))


def _parse_options(spec: str, text: str) -> Options:
    options: Options = {}
    for option in text.split(","):
        key, equals, value = (part.strip() for part in option.partition("="))
        if not (key and equals and value):
            raise UsageError(f"{option!r} in {spec!r} is not an option; write key=value, with a comma between options")
        if key in options:
            raise UsageError(f"{key} stands twice in {spec!r}")
        options[key] = value
    return options


def _parse_command(spec: str, text: str) -> Options:
    """Returns what is said of an outside program: all of `text` is its command line, or what follows "command="."""
    match = _WITH_COMMAND.fullmatch(text.strip())
    options = _parse_options(spec, match["options"].rstrip(",")) if match and match["options"] else {}
    command = (match["command"] if match else text).strip()
    with contextlib.suppress(ValueError):  # of a quotation that does not end, which is for the agent to say
        if len(words := shlex.split(command)) == 1:  # quoted as a whole
            (command,) = words
    return options | {"command": command}


def _parse_level(spec: str, text: str) -> Options:
    return {"level": text.strip()}


def config_from(kind: type[Config], name: str, options: Options) -> Config:
    """Returns the config dataclass `kind` with its fields set from text, each read as its annotation says.

    Raises UnknownNameError for a key that is no field of it, UsageError for a value that cannot be read or used.
    """
    hints = typing.get_type_hints(kind)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass, which no type variable says
    for key in options:
        if key not in known:
            raise UnknownNameError(f"option of {name}", key, known)
    try:
        return kind(**{key: _read(key, value, hints[key]) for key, value in options.items()})
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def _read(key: str, text: str, annotation: Any) -> Any:
    """Returns the text as a value of an annotation: bool, int, float or str, or one of them or None."""
    if isinstance(annotation, types.UnionType):
        if text.lower() == "none":
            return None
        (annotation,) = (kind for kind in annotation.__args__ if kind is not types.NoneType)
    try:
        return _TRUTHS[text.lower()] if annotation is bool else annotation(text)
    except (KeyError, ValueError):
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}[annotation]
        raise ValueError(f"{key} is {wanted}, got {text!r}") from None


def _without_options(agent: Callable[[str], Agent]) -> Callable[[str, Options], Agent]:
    def maker(name: str, options: Options) -> Agent:
        _refuse_options(name, options)
        return agent(name)

    return maker


def _refuse_options(name: str, options: Options) -> None:
    if options:
        raise UsageError(f"{name} takes no options, got {', '.join(options)}")


def _alpha_beta(name: str, options: Options) -> Agent:
    agent = AlphaBetaAgent(config_from(AlphaBetaConfig, name, options))
    if agent.config.evaluation not in (*KINDS, LEARNED):
        agent.variant = read_tables(find_tables(Path(agent.config.evaluation))).variant
    return agent


def _mcts(name: str, options: Options) -> Agent:
    judges = [key for key in ("checkpoint", "evaluation", "playouts") if key in options]
    if len(judges) > 1:
        raise UsageError(f"{name} asks one judge of positions, got {' and '.join(judges)}")
    if judges == ["checkpoint"]:
        path = options.pop("checkpoint")
        return _with_network(find_checkpoint(WEIGHTS / path if path in shipped() else Path(path)), path, options)
    spelled = _spelled(name, options)
    evaluate: Evaluator
    if judges == ["evaluation"]:
        evaluation = options.pop("evaluation")
        check_name(evaluation)
        evaluate = InDiscs(evaluation)
    else:
        try:
            evaluate = Playouts(_read("playouts", options.pop("playouts", "1"), int))
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
    return MCTSAgent(evaluate, config_from(MCTSConfig, name, options), spelled)


def _gtp(name: str, options: Options) -> Agent:
    return GTPAgent(config_from(GTPConfig, name, options))


def _level(name: str, options: Options) -> Agent:
    if not options:
        raise UsageError(f"say which {name} plays: {', '.join(f'{name}:{one}' for one in LEVELS)}")
    return level(options["level"])


_PARSERS: dict[str, Callable[[str, str], Options]] = {"gtp": _parse_command, "level": _parse_level}
_MAKERS: dict[str, Callable[[str, Options], Agent]] = {
    **dict.fromkeys(BASELINES, _without_options(baseline)),
    "mobility": _without_options(lambda name: MobilityAgent()),
    "alphabeta": _alpha_beta,
    "mcts": _mcts,
    "gtp": _gtp,
    "level": _level,
}


def _from_code(spec: str, place: str, attribute: str) -> Agent:
    module = _load_file(spec, Path(place)) if place.endswith(".py") else _load_module(spec, place)
    if not hasattr(module, attribute):
        public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
        own = [name for name, value in public.items() if getattr(value, "__module__", "") == module.__name__]
        raise UnknownNameError(f"player of {place}", attribute, own)
    found = getattr(module, attribute)
    if not isinstance(found, Agent) and _accepts(found, 0):
        with _blaming(place):
            found = found()
    if isinstance(found, Agent):
        if found.name == Agent.name:  # it has not given itself one
            found.name = spec
        return found
    if callable(found) and _accepts(found, 2):
        return FunctionAgent(found, spec)
    raise UsageError(
        f"{spec!r} is {found!r}; a player is an Agent, a class or function without arguments that makes one, "
        "or a function (position, rng) -> move"
    )


def _accepts(function: Any, num_arguments: int) -> bool:
    """Returns whether something can be called with so many arguments."""
    try:
        inspect.signature(function).bind(*[None] * num_arguments)
    except (TypeError, ValueError):
        return False
    return True


def _load_file(spec: str, path: Path) -> types.ModuleType:
    if not path.is_file():
        raise ValueError(f"agent {spec!r}: there is no file {path.resolve()}")
    name = f"_bot_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module  # where dataclasses look for it
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)  # a bot may import what lies beside it; ours come first
    with _blaming(str(path)):
        module_spec.loader.exec_module(module)
    return module


def _load_module(spec: str, name: str) -> types.ModuleType:
    try:
        with _blaming(name):
            return importlib.import_module(name)
    except ValueError as error:
        missing = error.__cause__
        if not isinstance(missing, ModuleNotFoundError) or not f"{name}.".startswith(f"{missing.name}."):
            raise  # the module is there, and fails
        if "." in name:
            raise UsageError(f"agent {spec!r}: there is no module {missing.name!r}") from None
        raise UnknownNameError("agent or module", name, names()) from None


@contextlib.contextmanager
def _blaming(place: str) -> Iterator[None]:
    """Turns whatever somebody's code raises into a ValueError that names its file and line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename != __file__ and not frame.filename.startswith("<frozen")
        ]
        if isinstance(error, SyntaxError) and error.filename:
            raise ValueError(f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}") from error
        own = [frame for frame in frames if frame.filename == frames[0].filename]  # and not what it calls
        where = f"{own[-1].filename}, line {own[-1].lineno}" if own else place
        raise ValueError(f"{where}: {told(error)}") from error


def told(error: BaseException) -> str:
    """Returns an error's type and what it says, in a line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
