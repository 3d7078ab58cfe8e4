"""Trains a network, or an evaluation by n-tuples, from a configuration, by self-play or against opponents; rates it.

    reversi train                                        experiment=quick: 6×6 by n-tuples, two minutes on two cores
    reversi train experiment=quick schedule.num_iterations=2 evaluation.final_num_games=10    a look, within a minute
    reversi train experiment=quick_network               6×6 by a residual network, some minutes
    reversi train algorithm=maskable_ppo                 that network by sb3-contrib's PPO, against the random player
    reversi train experiment=quick_network variant=othello init_from=zero-6x6    begins with one from another board
    reversi train experiment=othello-1h seed=3           8×8 from nothing, in one hour on two cores
    reversi train experiment=ntuple                      n-tuples for alpha-beta, 8×8 from nothing in one hour
    reversi train experiment=ntuple_quick                the same on 6×6 in 100 seconds
    reversi train resume=runs/x                          goes on from its last checkpoint
    reversi train --config experiment=othello-1h         prints the configuration and does nothing
    torchrun --nproc-per-node 2 -m reversi_lab train experiment=quick_network    two processes learn as one
    reversi train --multirun seed=1,2,3                  a sweep: a run for each, one after the other
    reversi train --multirun seed=1,2,3 hydra/launcher=joblib hydra.launcher.n_jobs=2      two at a time, by an extra

Overrides are Hydra's. A run owns one folder, runs/<name>/; Ctrl-C leaves a checkpoint there and says how to go on.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import agents
from agents.checkpoint import read_checkpoint
from agents.manifest import MANIFEST, CheckpointError
from agents.mcts import MCTSConfig
from agents.runs import find_checkpoint, set_aside_after
from experiments.arguments import UsageError
from experiments.cli import DONE, FAILED, INTERRUPTED
from experiments.evaluation import print_table
from experiments.match import MatchError, draw_openings
from experiments.stopping import stopped_by_signals
from experiments.sweep import sweep
from experiments.training.actors import ActorsConfig
from experiments.training.algorithms import follow, make_algorithm
from experiments.training.config import (
    NTUPLE,
    RESIDUAL,
    EvaluationConfig,
    NetworkConfig,
    ScheduleConfig,
    TrainConfig,
    VariantConfig,
)
from experiments.training.display import display
from experiments.training.distributed import Ranks, joined_ranks, num_ranks
from experiments.training.interruption import Interrupted, TrainingError
from experiments.training.learner import LearnerConfig
from experiments.training.run_folder import (
    find_resumed,
    holds_nothing,
    make_run_folder,
    write_config,
    write_facts,
)
from experiments.training.self_play import SelfPlayConfig
from experiments.training.trainer import Trainer
from reversi_env.durable import alone_in
from reversi_env.naming import UnknownNameError

SCHEMAS: dict[str, tuple[str | None, type]] = {
    "train_schema": (None, TrainConfig),
    "variant_schema": ("variant", VariantConfig),
    "network_schema": ("network", NetworkConfig),
    "mcts_schema": ("search", MCTSConfig),
    "learner_schema": ("learner", LearnerConfig),
    "self_play_schema": ("self_play", SelfPlayConfig),
    "actors_schema": ("actors", ActorsConfig),
    "schedule_schema": ("schedule", ScheduleConfig),
    "evaluation_schema": ("evaluation", EvaluationConfig),
}
LARGEST = {
    "alphazero": "self_play.games_at_once × search.num_simulations, replay.initial_window, the batch of the learner",
    "maskable_ppo": "ppo.num_envs × ppo.moves_per_update, ppo.batch_size",
    "ntuple": "schedule.replay_window, schedule.games_per_iteration",
}
MEMORY_ENDED = ("not enough memory", "out of memory", "can't allocate memory")  # as torch says it on CPU and GPU
LISTS = ("evaluation.opponents", "ppo.opponents")
NO_OVERRIDE = ("-h", "--help", "--config", "--multirun")


def main(arguments: Sequence[str]) -> int:
    """Runs the verb and returns the exit code."""
    if {"-h", "--help"} & set(arguments):
        print(f"{__doc__}\n{_choices_text()}")
        return DONE
    for argument in arguments:
        if argument.startswith("-") and argument not in NO_OVERRIDE:
            raise UnknownNameError("option", argument, NO_OVERRIDE)
    overrides = [argument for argument in arguments if argument not in NO_OVERRIDE]
    if "--multirun" in arguments:
        if "--config" in arguments:
            raise UsageError("--config prints the configuration of one run; leave out --multirun")
        return _sweep(overrides)
    config, label = compose_config(overrides)
    with _as_usage_errors():
        config_yaml = _to_yaml(config)
    if "--config" in arguments:
        print(config_yaml, end="")
        return DONE
    with contextlib.ExitStack() as stack:
        ranks = stack.enter_context(_joined_ranks(config))
        if ranks and ranks.rank:
            with _as_training_errors(config):
                follow(config, ranks)
            return DONE
        opponents = [agents.make(spec) for spec in config.evaluation.opponents]
        if opponents:  # hours before the first evaluation
            draw_openings(config.variant.to_variant(), 1, config.seed)
        on_stop = stack.enter_context(_stopping())
        folder = stack.enter_context(_run_folder(config, label, config_yaml))
        checkpoint = find_resumed(folder) if config.resume is not None else None
        resumed = read_checkpoint(checkpoint, with_trainer=True) if checkpoint else None
        with _as_training_errors(config):
            algorithm = stack.enter_context(contextlib.closing(make_algorithm(config, checkpoint is None, ranks)))
        report = stack.enter_context(display(folder, config))
        with _as_training_errors(config):
            trainer = Trainer(algorithm, config_yaml, folder, opponents, resumed, report)
        on_stop.append(trainer.stop)
        if checkpoint:
            for damaged in set_aside_after(checkpoint):
                report.say(f"going on from {checkpoint}; the newer one is damaged and set aside as {damaged}")
        elif config.resume is not None:
            report.say(f"{folder} has no checkpoint yet; beginning anew")
        write_config(folder, config_yaml)
        try:
            with _as_training_errors(config):
                rows = trainer.run()
        except (Interrupted, TrainingError, MatchError) as error:
            if trainer.iteration or isinstance(error, Interrupted):
                of = f" of {config.schedule.num_iterations}" if config.schedule.duration_s is None else ""
                report.say(f"stopped after iteration {trainer.iteration}{of}: {trainer.save()}")
                report.say(f"go on with: reversi train resume={folder}")
            if isinstance(error, Interrupted):
                return INTERRUPTED
            raise
    if rows:
        print_table(rows)
    print(f"checkpoint: {trainer.save()}")
    print(f"play against it: reversi play {folder}")
    return DONE


def _sweep(overrides: Sequence[str]) -> int:
    """Trains once for each combination of values, says how each run ended, and returns the exit code."""
    for override in overrides:
        if override.startswith("resume="):
            raise UsageError(f"{override}: a sweep begins new runs; resume them one by one")
    _register_schemas()
    with initialize_config_module("configs", version_base="1.3"):
        parsed = _parsed([text for text in overrides if not text.startswith("hydra")], compose("train"), is_sweep=True)
    for found in parsed:
        if found.is_sweep_override() and found.key_or_group in ("runs", "name"):
            raise UsageError(f"{found.input_line}: a sweep has one folder, and names its runs itself")
    given = {override.key_or_group: override for override in parsed if not override.is_sweep_override()}
    runs, name = (given[key].value() if key in given else None for key in ("runs", "name"))
    folder = make_run_folder(Path(str(runs or "runs")), None if name is None else str(name), "sweep")
    kept = [text for text in overrides if text.partition("=")[0] not in ("runs", "name")]
    swept = [override.key_or_group for override in parsed if override.is_sweep_override()]
    try:
        with _as_usage_errors():
            ended = sweep(kept, swept, folder)
    finally:
        if not any(path.is_dir() for path in folder.iterdir()):  # no run has begun
            shutil.rmtree(folder)
    words = {DONE: "done", INTERRUPTED: "interrupted"}
    for run in ended:
        print(f"{run.folder}: {words.get(run.exit_code, f'failed with exit code {run.exit_code}')}")
    codes = {run.exit_code for run in ended}
    return FAILED if codes - words.keys() else max(codes, default=DONE)


@contextlib.contextmanager
def _joined_ranks(config: TrainConfig) -> Iterator[Ranks | None]:
    """Joins other processes of torchrun, where it has begun any; raises UsageError where they would be of no use."""
    size = num_ranks()
    if size > 1 and (config.algorithm != "alphazero" or config.network.kind != RESIDUAL):
        chosen = f"algorithm={config.algorithm}"
        if config.algorithm == "alphazero":
            chosen = f"network.kind={config.network.kind}"
        raise UsageError(f"{chosen} knows no torchrun, which is for residual networks by alphazero; run it alone")
    if size > 1 and config.learner.batch_size < 2 * size:  # batch norm needs two
        raise UsageError(
            f"learner.batch_size must be at least 2 for each of {size} ranks, got {config.learner.batch_size}"
        )
    with joined_ranks(config.to_device()) as ranks:
        yield ranks


@contextlib.contextmanager
def _run_folder(config: TrainConfig, label: str, config_yaml: str) -> Iterator[Path]:
    """Gives the run's folder, to this process alone; a new one that ends with nothing to keep is taken away again."""
    if config.resume is not None:
        with alone_in(Path(config.resume), _busy(config.resume)):
            yield Path(config.resume)
        return
    folder = make_run_folder(Path(config.runs), config.name, label)
    try:
        with alone_in(folder, _busy(folder)):
            write_config(folder, config_yaml)  # with which it can go on from here
            write_facts(folder)
            yield folder
    finally:
        if holds_nothing(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _busy(folder: str | Path) -> TrainingError:
    return TrainingError(f"another process is training in {folder}; end it first, or leave it to it")


@contextlib.contextmanager
def _as_training_errors(config: TrainConfig) -> Iterator[None]:
    """Turns what NumPy and torch raise where the memory ends into one sentence."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # on a CPU torch has no type for it
        sentence = str(error).splitlines()[0] if str(error) else "MemoryError"
        if isinstance(error, RuntimeError) and not any(phrase in sentence for phrase in MEMORY_ENDED):
            raise
        raise TrainingError(
            f"not enough memory ({sentence}); what takes most are {LARGEST[config.algorithm]}, and what learns"
        ) from None


def compose_config(overrides: Sequence[str]) -> tuple[TrainConfig, str]:
    """Returns the configuration that overrides make, and the experiment's name.

    With `resume=runs/x` it is that run's own configuration with single values changed. Raises UnknownNameError for a
    key, group or choice that does not exist, UsageError for a value that does not fit.
    """
    _register_schemas()
    with initialize_config_module("configs", version_base="1.3"):
        base = compose("train")
        parsed = _parsed(overrides, base)
        resumed_from = None
        for override in parsed:
            if override.key_or_group == "resume":
                resumed_from = override.value()
        with _as_usage_errors():
            if resumed_from is not None:
                config = _resumed_config(Path(str(resumed_from)), parsed)
            else:
                config = compose("train", list(overrides))
            composed = OmegaConf.to_object(config)
    assert isinstance(composed, TrainConfig)
    for override in parsed:
        key = override.key_or_group
        for unused, choice in composed.unused_keys.items():
            if f"{key}.".startswith(f"{unused}."):
                advice = (
                    "; residual networks have, such as experiment=quick_network"
                    if choice == f"network={NTUPLE}"
                    else ""
                )
                raise UsageError(f"{override.input_line}: {choice} has no use for {key}{advice}")
    experiments = [override.get_value_element_as_str() for override in parsed if override.key_or_group == "experiment"]
    return composed, experiments[-1] if experiments else "quick"


def _to_yaml(config: TrainConfig) -> str:
    """Returns the configuration as a run keeps it, without what its algorithm has no use for."""
    values: Any = OmegaConf.to_container(OmegaConf.structured(replace(config, resume=None)))
    for unused in config.unused_keys:
        *groups, name = unused.split(".")
        del reduce(getitem, groups, values)[name]
    return OmegaConf.to_yaml(values)


def _choices_text() -> str:
    """Returns what can be chosen, a line a group."""
    _register_schemas()
    with initialize_config_module("configs", version_base="1.3"):
        return "\n".join(f"{group}={' | '.join(choices)}" for group, choices in _choices().items())


def _choices() -> dict[str, list[str]]:
    """Returns the choices of each group of `configs`."""
    loader = GlobalHydra.instance().config_loader()
    groups = [group for group in loader.list_groups("") if group != "hydra"]
    return {
        group: [choice for choice in loader.get_group_options(group) if not choice.endswith("_schema")]
        for group in groups
    }


def _register_schemas() -> None:
    store = ConfigStore.instance()
    for name, (group, schema) in SCHEMAS.items():
        store.store(name=name, group=group, node=schema)


def _parsed(overrides: Sequence[str], base: DictConfig, is_sweep: bool = False) -> list[Override]:
    """Returns the overrides as Hydra reads them, their keys and choices checked; one may have many in a sweep."""
    choices = _choices()
    keys = _keys(base)
    parsed = []
    for text in overrides:
        try:
            (override,) = OverridesParser.create().parse_overrides([text])
        except HydraException:
            raise UsageError(f"{text!r} is not an override; write key=value, such as seed=3 or network=small") from None
        key = override.key_or_group
        value = text.partition("=")[2]
        swept = is_sweep and override.is_sweep_override()
        if key in LISTS and value and not swept and not isinstance(override.value(), list):
            raise UsageError(f"{text!r}: it is a list of agents; write {key}=[{value}]")
        if override.is_add() or override.is_delete() or override.package:
            raise UsageError(f"{text!r}: only key=value and group=choice are understood here")
        if override.is_sweep_override() and not is_sweep:
            raise UsageError(f"{text!r} names more than one value; a run for each: reversi train --multirun {text}")
        if key in choices:
            values = override.sweep_string_iterator() if swept else [override.get_value_element_as_str()]
            for choice in map(str, values):
                if choice not in choices[key]:
                    raise UnknownNameError(f"choice of {key}", choice, choices[key])
        elif key not in keys:
            raise UnknownNameError("key", key, keys | choices.keys())
        parsed.append(override)
    return parsed


def _keys(config: DictConfig, prefix: str = "") -> set[str]:
    """Returns the dotted names of all values."""
    keys: set[str] = set()
    for name in map(str, config):
        value = config._get_node(name)
        if isinstance(value, DictConfig) and not value._is_none():
            keys |= _keys(value, f"{prefix}{name}.")
        else:
            keys.add(f"{prefix}{name}")
    return keys


def _resumed_config(folder: Path, parsed: Sequence[Override]) -> DictConfig:
    """Returns the configuration of a run with single values changed."""
    path = folder / "config.yaml"
    if (folder / MANIFEST).is_file():
        raise UsageError(f"{folder} is a checkpoint; resume is the folder of a run, such as runs/x")
    if not path.is_file():
        find_checkpoint(folder)  # says where there is no run
    try:
        saved = OmegaConf.load(path)
        if not isinstance(saved, DictConfig) or not saved:
            raise ValueError("it holds no keys")
        config = OmegaConf.merge(OmegaConf.structured(TrainConfig), saved)
    except Exception as error:  # the parser of YAML has errors of its own, and what a damaged file makes it raise
        sentence = " ".join(str(error).split())
        raise CheckpointError(f"{path} is not the configuration of a run: {sentence}") from None
    assert isinstance(config, DictConfig)
    for override in parsed:
        if "." not in override.key_or_group and override.key_or_group not in ("resume", "device"):
            raise UsageError(
                f"{override.input_line}: a resumed run keeps this; what can change are device and values inside a "
                "group, such as schedule.num_iterations=40"
            )
        OmegaConf.update(config, override.key_or_group, override.value())
    return config


@contextlib.contextmanager
def _as_usage_errors() -> Iterator[None]:
    """Turns what Hydra, OmegaConf and the configuration's own checks say into one sentence."""
    try:
        yield
    except CheckpointError:
        raise
    except (HydraException, OmegaConfBaseException) as error:
        cause: BaseException = error.__cause__ or error
        key = getattr(cause, "full_key", None)
        sentence = str(cause).splitlines()[0]
        raise UsageError(f"{key}: {sentence}" if key else sentence) from None
    except ValueError as error:
        raise UsageError(str(error)) from None


@contextlib.contextmanager
def _stopping() -> Iterator[list[Any]]:
    """Gives a list of functions that the first Ctrl-C or SIGTERM calls; the second ends the process as ever."""
    on_stop: list[Any] = []

    def stop() -> None:
        if not on_stop:
            raise KeyboardInterrupt
        for function in on_stop:
            function()
        with contextlib.suppress(OSError):  # written past sys.stderr, which may be in the middle of a line
            os.write(2, b"reversi: stopping; once more ends at once, without a checkpoint\n")

    with stopped_by_signals(stop):
        yield on_stop
