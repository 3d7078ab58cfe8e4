"""Checkpoints: a folder with what was learned, what it was trained for, and whatever a trainer wants back.

    model.safetensors     a network's weights, be it residual or of n-tuples, or
    tables/               the tables of n-tuples, see `agents.ntuple.tables`
    config.yaml           the run's resolved configuration, for people
    trainer.safetensors   optimizer and replay, where training may go on from here
    trainer.json          counters, likewise
    manifest.json         format version, variant, network, versions, commit, and each file's SHA-256

Whatever comes from disk is data: nothing is unpickled, imported or made by a name found in a file, and sizes are
checked before memory is taken.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from agents.agent import Agent
from agents.manifest import (
    MANIFEST,
    CheckpointError,
    check_file,
    file_digest,
    read_bytes,
    read_json,
    read_text,
    versions_of,
)
from agents.mcts import MCTSAgent, MCTSConfig
from agents.networks.published import AUTO, publish
from agents.networks.residual import ResidualConfig, ResidualNetwork
from agents.ntuple.layout import layout_of
from agents.ntuple.network import TupleNetwork
from agents.ntuple.tables import Tables, read_tables, write_tables
from agents.runs import (
    CONFIG,
    FORMAT_VERSION,
    MODEL,
    TABLES,
    TRAINER_COUNTERS,
    TRAINER_TENSORS,
    checkpoint_manifest,
    find_checkpoint,
)
from reversi_env import Variant
from reversi_env.durable import new_folder

Network: TypeAlias = ResidualNetwork | TupleNetwork | Tables

_LARGEST_TUPLES = 1 << 26  # bytes of their weights; those of 10×10 have 18 MB


@dataclass
class Checkpoint:
    """What was learned and where it comes from."""

    network: Network
    variant: Variant
    config_yaml: str = ""
    commit: str | None = None
    trainer_tensors: dict[str, Tensor] = field(default_factory=dict)
    trainer_counters: dict[str, Any] = field(default_factory=dict)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint whole or not at all.

    Raises FileExistsError where the folder is there, OSError on a full disk.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    network = checkpoint.network
    with new_folder(folder) as temporary:
        try:
            if isinstance(network, Tables):
                write_tables(temporary / TABLES, network, checkpoint.commit)
            elif isinstance(network, TupleNetwork):
                (temporary / MODEL).write_bytes(network.to_bytes())
            else:
                save_file(_contiguous(network.state_dict()), temporary / MODEL)
            if checkpoint.trainer_counters:
                save_file(_contiguous(checkpoint.trainer_tensors), temporary / TRAINER_TENSORS)
        except SafetensorError as error:  # how safetensors reports a full disk
            raise OSError(f"{folder} cannot be written: {error}") from None
        if checkpoint.trainer_counters:
            (temporary / TRAINER_COUNTERS).write_text(json.dumps(checkpoint.trainer_counters, indent=1))
        (temporary / CONFIG).write_text(checkpoint.config_yaml)
        files = [path for path in sorted(temporary.rglob("*")) if path.is_file()]
        manifest = {
            "format_version": FORMAT_VERSION,
            "variant": asdict(checkpoint.variant),
            "network": _described(network),
            "files": {path.relative_to(temporary).as_posix(): file_digest(path) for path in files},
            "versions": versions_of("reversi-lab", "torch", "numpy"),
            "commit": checkpoint.commit,
        }
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1))


def read_checkpoint(folder: Path, with_trainer: bool = False) -> Checkpoint:
    """Returns the checkpoint in a folder, its files checked against their digests.

    Raises CheckpointError with the file and the fault: missing, cut short, edited, of another format.
    """
    manifest = checkpoint_manifest(folder)
    files = manifest["files"]
    kind = manifest["network"].get("kind")
    if kind == "residual" and manifest["format_version"] < 2:
        raise CheckpointError(
            f"{folder} has format version 1, whose networks tell a value where today's tell win, draw and loss; "
            "the reversi-lab that wrote it reads it"
        )
    trainer_files = [TRAINER_TENSORS, TRAINER_COUNTERS] if with_trainer else []
    for name in [f"{TABLES}/{MANIFEST}" if kind == "ntuple" else MODEL, CONFIG, *trainer_files]:
        if name not in files:
            what = "trainer state, so training cannot go on from it" if name in trainer_files else name
            raise CheckpointError(f"the checkpoint {folder} holds no {what}")
        check_file(folder / name, files[name])
    try:
        variant = Variant(**manifest["variant"])
        network = _read_network(folder, manifest["network"], variant)
    except CheckpointError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{folder / MANIFEST} describes no network or variant that can be used: {error}"
        ) from None
    checkpoint = Checkpoint(network, variant, read_text(folder / CONFIG), manifest.get("commit"))
    if with_trainer:
        try:
            checkpoint.trainer_tensors = load_file(folder / TRAINER_TENSORS)
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{folder / TRAINER_TENSORS} is no file of tensors: {error}") from None
        checkpoint.trainer_counters = read_json(folder / TRAINER_COUNTERS)
    return checkpoint


def load_agent(path: Path, config: MCTSConfig, backend: str = AUTO) -> Agent:
    """Returns the player that searches with a checkpoint's network; `path` is a checkpoint or a run.

    The network is run by a backend of `agents.networks.published`, on the CPU but for torch-half; auto keeps to
    float32. Raises CheckpointError for a checkpoint that cannot be used, and what `publish` raises.
    """
    checkpoint = read_checkpoint(find_checkpoint(path))
    if isinstance(checkpoint.network, Tables):
        raise CheckpointError(f"{path} holds n-tuple tables, with which alphabeta plays, and no network")
    device = "cuda" if backend == "torch-half" else "cpu"
    published = publish(checkpoint.network, checkpoint.variant, backend, device=device, batch=1, float32=True)
    return MCTSAgent(published.evaluator(), config, name=str(path), variant=checkpoint.variant)


def _contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _described(network: Network) -> dict[str, Any]:
    """Returns what the manifest tells of a network."""
    if isinstance(network, Tables):
        return {"kind": "ntuple"}  # the tables have a manifest of their own
    if isinstance(network, TupleNetwork):
        return {"kind": "tuples", **network.layout.described}
    return {"kind": "residual", **asdict(network.config)}


def _read_network(folder: Path, described: Mapping[str, Any], variant: Variant) -> Network:
    """Returns the network that a manifest describes; raises ValueError or TypeError where it describes none."""
    sizes = dict(described)
    match sizes.pop("kind", None):
        case "residual":
            return _read_residual(folder / MODEL, ResidualConfig(**sizes))
        case "tuples":
            return _read_tuples(folder / MODEL, sizes, variant)
        case "ntuple":
            tables = read_tables(folder / TABLES)
            if tables.variant != variant:
                raise CheckpointError(f"{folder / TABLES} is for {tables.variant.name}, its checkpoint for another")
            return tables
        case kind:
            raise ValueError(f"a network of kind {kind!r} is not known here; 'residual', 'tuples' and 'ntuple' are")


def _read_tuples(path: Path, described: Mapping[str, Any], variant: Variant) -> TupleNetwork:
    layout = layout_of(variant.size, counts_moves=True)
    if described != layout.described:
        raise ValueError("it has other patterns or stages than those of this version of reversi-lab")
    try:
        network = TupleNetwork.from_bytes(read_bytes(path, _LARGEST_TUPLES))
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be used: {error}") from None
    if network.size != variant.size:
        raise CheckpointError(f"{path} is for {network.size} columns, its checkpoint for {variant.size}")
    return network


def _read_residual(path: Path, config: ResidualConfig) -> ResidualNetwork:
    """Returns the network of that size with the weights of a file; shapes are compared before anything is loaded."""
    with torch.device("meta"):  # shapes without memory
        network = ResidualNetwork(config)
    described = network.state_dict()
    wanted = {name: list(tensor.shape) for name, tensor in described.items()}
    try:
        with safe_open(path, framework="pt") as file:
            found = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 (not a dict)
        if found != wanted:
            name = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))[0]
            raise CheckpointError(
                f"{path} does not fit the network of its manifest: "
                f"{name} has shape {found.get(name)}, expected {wanted.get(name)}"
            )
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is no file of weights: {error}") from None
    for name, tensor in weights.items():
        if tensor.dtype != described[name].dtype:
            raise CheckpointError(f"{path} holds {name} as {tensor.dtype}, expected {described[name].dtype}")
        if not tensor.isfinite().all():
            raise CheckpointError(f"{path} holds a number in {name} that is not finite")
    network.load_state_dict(weights, assign=True)
    return network
