"""Checkpoints: what was saved comes back, and whatever is wrong with one is said in a sentence."""

import hashlib
import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import agents
from agents.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from agents.manifest import CheckpointError, file_digest
from agents.networks.residual import ResidualConfig, ResidualNetwork
from agents.ntuple.tables import Tables
from agents.runs import (
    CHECKPOINTS,
    FORMAT_VERSION,
    checkpoints_of,
    find_checkpoint,
    prune_checkpoints,
    set_aside_after,
)
from reversi_env import Position, Variant
from reversi_env.naming import UsageError
from tests.agents.tuples_by_hand import answer_by_hand, random_network

SMALL = ResidualConfig(num_channels=8, num_blocks=1, num_head_channels=4)


@pytest.fixture
def checkpoint():
    torch.manual_seed(0)
    return Checkpoint(
        network=ResidualNetwork(SMALL),
        variant=Variant.named("othello-6x6", goal="fewest"),
        config_yaml="seed: 1\n",
        commit="abc",
        trainer_tensors={"replay.player": torch.tensor([[2**63]], dtype=torch.uint64)},
        trainer_counters={"iteration": 3},
    )


@pytest.fixture
def folder(checkpoint, tmp_path):
    write_checkpoint(tmp_path / "saved", checkpoint)
    return tmp_path / "saved"


def edit_manifest(folder, **changes):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))


def test_what_was_saved_comes_back(checkpoint, folder):
    loaded = read_checkpoint(folder, with_trainer=True)
    for name, tensor in checkpoint.network.state_dict().items():
        assert torch.equal(loaded.network.state_dict()[name], tensor), name
    assert (loaded.variant, loaded.config_yaml, loaded.commit) == (checkpoint.variant, "seed: 1\n", "abc")
    assert torch.equal(loaded.trainer_tensors["replay.player"], checkpoint.trainer_tensors["replay.player"])
    assert loaded.trainer_counters == {"iteration": 3}


def test_a_checkpoint_is_an_agent(folder):
    agent = agents.load(folder, num_simulations="5")
    assert agent.variant == Variant.named("othello-6x6", goal="fewest")
    decision = agent.analyze(Position(agent.variant))
    assert decision.num_nodes == 5
    assert decision.move in Position(agent.variant).legal_moves
    again = agents.make(f"{folder}:num_simulations=5").analyze(Position(agent.variant))
    assert (again.policy == decision.policy).all()


@pytest.mark.parametrize("name", ["model.safetensors", "config.yaml", "trainer.safetensors", "trainer.json"])
def test_a_file_cut_short_edited_or_missing_is_named(folder, name):
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(CheckpointError, match=rf"{name} is not the file that was saved"):
        read_checkpoint(folder, with_trainer=True)
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(CheckpointError, match=rf"{name} is not the file that was saved"):
        read_checkpoint(folder, with_trainer=True)
    path.unlink()
    with pytest.raises(CheckpointError, match=rf"{name} cannot be read: .*No such file"):
        read_checkpoint(folder, with_trainer=True)


def test_a_newer_format_says_so(folder):
    edit_manifest(folder, format_version=FORMAT_VERSION + 1)
    with pytest.raises(CheckpointError, match=f"format version {FORMAT_VERSION + 1}.*reads up to {FORMAT_VERSION}"):
        read_checkpoint(folder)


def test_a_network_of_the_first_format_says_what_reads_it(folder):
    edit_manifest(folder, format_version=1)
    with pytest.raises(CheckpointError, match=r"format version 1, whose networks tell a value .* the reversi-lab that"):
        read_checkpoint(folder)


def test_tables_of_the_first_format_are_read(checkpoint, tmp_path):
    write_checkpoint(tmp_path / "saved", replace(checkpoint, network=Tables.zeros(Variant(4)), variant=Variant(4)))
    edit_manifest(tmp_path / "saved", format_version=1)
    assert isinstance(read_checkpoint(tmp_path / "saved").network, Tables)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format_version": "1"}, "no format_version"),
        ({"files": []}, "names no files"),
        ({"files": {"../../etc/passwd": ""}}, "no part of a checkpoint"),
        ({"files": {}}, r"holds no model\.safetensors"),
        ({"network": {"kind": "os.system"}}, "'os.system' is not known"),
        ({"network": {"kind": "residual", "num_channels": 10**9}}, "num_channels must be"),
        ({"network": {"kind": "residual", "chanels": 8}}, "chanels"),
        ({"network": {"kind": "residual", "num_channels": 16, "num_blocks": 1}}, "does not fit the network"),
        ({"variant": {"size": 7}}, "columns"),
        ({"variant": None}, "names no files or no variant"),
    ],
)
def test_a_manifest_that_means_nothing_says_what_is_wrong(folder, changes, sentence):
    edit_manifest(folder, **changes)
    with pytest.raises(CheckpointError, match=sentence):
        read_checkpoint(folder)


@pytest.mark.parametrize("content", ["", "[]", "{", "\0", "[" * 100_000, '{"format_version": 1}'])
def test_a_manifest_of_any_text_is_refused(folder, content):
    (folder / "manifest.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"manifest\.json"):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ({"margin.bias": torch.zeros(2)}, r"margin\.bias has shape \[2\], expected \[1\]"),
        (
            {"margin.bias": torch.zeros(1, dtype=torch.float64)},
            "margin.bias as torch.float64, expected torch.float32",
        ),
        ({"margin.bias": torch.full((1,), float("nan"))}, r"number in margin\.bias that is not finite"),
        ({"margin.bias": torch.full((1,), float("inf"))}, r"number in margin\.bias that is not finite"),
        ({"another": torch.zeros(1)}, r"another has shape \[1\], expected None"),
    ],
)
def test_weights_with_a_good_digest_that_do_not_fit_are_refused(folder, checkpoint, weights, sentence):
    save_file(checkpoint.network.state_dict() | weights, folder / "model.safetensors")
    files = json.loads((folder / "manifest.json").read_text())["files"]
    edit_manifest(folder, files=files | {"model.safetensors": file_digest(folder / "model.safetensors")})
    with pytest.raises(CheckpointError, match=sentence):
        read_checkpoint(folder)


def test_tables_of_another_variant_are_refused(checkpoint, tmp_path):
    tables = Tables.zeros(Variant(4))
    write_checkpoint(tmp_path / "saved", replace(checkpoint, network=tables, variant=Variant(4)))
    assert (read_checkpoint(tmp_path / "saved").network.weights == tables.weights).all()
    write_checkpoint(tmp_path / "other", replace(checkpoint, network=tables, variant=Variant(4, goal="fewest")))
    with pytest.raises(CheckpointError, match="tables is for othello-4x4, its checkpoint for another"):
        read_checkpoint(tmp_path / "other")


@pytest.fixture
def tuples(checkpoint, tmp_path):
    """A checkpoint of n-tuples for 6×6 where the fewest discs win."""
    network = random_network(6).copy()
    write_checkpoint(tmp_path / "tuples", replace(checkpoint, network=network))
    return tmp_path / "tuples"


def test_a_network_of_tuples_comes_back_and_is_an_agent(tuples):
    loaded = read_checkpoint(tuples, with_trainer=True)
    for name in ("weights", "logit_per_disc", "spread"):
        assert (getattr(loaded.network, name) == getattr(random_network(6), name)).all(), name
    assert loaded.trainer_counters == {"iteration": 3}
    agent, position = agents.load(tuples, num_simulations="1"), Position(loaded.variant)
    assert agent.variant == loaded.variant
    policy, value, _ = answer_by_hand(position, random_network(6))
    decision = agent.intuition(position)
    assert decision.policy == pytest.approx(policy, abs=1e-4)
    assert decision.value == pytest.approx(value, abs=1e-4)
    assert agents.load(tuples, num_simulations="30").analyze(position).num_nodes == 30
    with pytest.raises(ValueError, match="fewest"):
        agent.select(Position(Variant(6)), np.random.default_rng(0))
    with pytest.raises(UsageError, match="on no backend; leave out backend=onnx"):
        agents.make(f"{tuples}:backend=onnx")


def test_tuples_of_other_patterns_are_refused(tuples):
    network = json.loads((tuples / "manifest.json").read_text())["network"]
    edit_manifest(tuples, network=network | {"stage_width": 3})
    with pytest.raises(CheckpointError, match=r"manifest\.json describes no network .*: it has other patterns"):
        read_checkpoint(tuples)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"nothing", r"model\.safetensors cannot be used: it is no file of weights"),
        (random_network(4).to_bytes(), r"model\.safetensors is for 4 columns, its checkpoint for 6"),
        (bytes(1 << 26) + b"1", r"model\.safetensors has more than \d+ bytes"),
    ],
)
def test_weights_of_tuples_that_do_not_fit_are_refused(tuples, content, fault):
    (tuples / "model.safetensors").write_bytes(content)
    files = json.loads((tuples / "manifest.json").read_text())["files"]
    edit_manifest(tuples, files=files | {"model.safetensors": file_digest(tuples / "model.safetensors")})
    with pytest.raises(CheckpointError, match=fault):
        read_checkpoint(tuples)


@pytest.mark.parametrize("name", ["manifest.json", "model.safetensors"])
@pytest.mark.parametrize("endless", ["a pipe", "a device", "a folder"])
def test_what_is_no_file_is_not_read(folder, name, endless):
    (folder / name).unlink()
    if endless == "a pipe":
        os.mkfifo(folder / name)
    elif endless == "a device":
        (folder / name).symlink_to("/dev/zero")
    else:
        (folder / name).mkdir()
    with pytest.raises(CheckpointError, match=f"{name} is no file"):
        read_checkpoint(folder)


def test_a_checkpoint_without_trainer_state_plays_but_cannot_be_resumed(checkpoint, tmp_path):
    write_checkpoint(tmp_path / "lean", replace(checkpoint, trainer_counters={}, trainer_tensors={}))
    assert read_checkpoint(tmp_path / "lean").variant == checkpoint.variant
    with pytest.raises(CheckpointError, match="no trainer state"):
        read_checkpoint(tmp_path / "lean", with_trainer=True)


def test_the_newest_undamaged_checkpoint_of_a_run_is_found(checkpoint, tmp_path):
    for number in (1, 2, 3):
        write_checkpoint(tmp_path / CHECKPOINTS / f"{number:06}", checkpoint)
    (tmp_path / CHECKPOINTS / ".000004.half").mkdir()
    assert find_checkpoint(tmp_path).name == "000003"
    (tmp_path / CHECKPOINTS / "000003" / "trainer.json").write_text("{}")
    assert find_checkpoint(tmp_path).name == "000002"
    prune_checkpoints(tmp_path, 1)
    assert [path.name for path in checkpoints_of(tmp_path)] == ["000003"]
    assert [path.name for path in (tmp_path / CHECKPOINTS).iterdir()] == ["000003"]  # the half one is gone too
    with pytest.raises(CheckpointError, match=r"every checkpoint .* is damaged"):
        find_checkpoint(tmp_path)


def test_newer_checkpoints_are_set_aside_under_names_of_their_own(checkpoint, tmp_path):
    for number in (1, 2, 999_999, 1_000_000):
        write_checkpoint(tmp_path / CHECKPOINTS / f"{number:06}", checkpoint)
    assert [path.name for path in checkpoints_of(tmp_path)] == ["000001", "000002", "999999", "1000000"]
    moved = set_aside_after(tmp_path / CHECKPOINTS / "000002")
    assert [path.name for path in moved] == ["999999.damaged-1", "1000000.damaged-1"]
    assert find_checkpoint(tmp_path).name == "000002"
    write_checkpoint(tmp_path / CHECKPOINTS / "999999", checkpoint)
    assert [path.name for path in set_aside_after(tmp_path / CHECKPOINTS / "000002")] == ["999999.damaged-2"]


def test_trainer_state_with_a_good_digest_that_is_no_file_of_tensors_is_named(folder):
    (folder / "trainer.safetensors").write_bytes(b"nothing")
    files = json.loads((folder / "manifest.json").read_text())["files"]
    files["trainer.safetensors"] = hashlib.sha256(b"nothing").hexdigest()
    edit_manifest(folder, files=files)
    with pytest.raises(CheckpointError, match=r"trainer\.safetensors is no file of tensors"):
        read_checkpoint(folder, with_trainer=True)


def test_where_there_is_none_the_sentence_says_so(tmp_path):
    with pytest.raises(CheckpointError, match="there is no checkpoint or run at"):
        find_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        find_checkpoint(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        find_checkpoint(tmp_path / "file")


def test_a_failed_write_leaves_nothing_behind(checkpoint, tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agents.checkpoint.json.dumps", full)
    with pytest.raises(OSError, match=r"No space left .*/saved"):
        write_checkpoint(tmp_path / "saved", checkpoint)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_never_written_over(checkpoint, folder):
    with pytest.raises(FileExistsError, match="is there already"):
        write_checkpoint(folder, checkpoint)
    shutil.rmtree(folder)
    write_checkpoint(folder, checkpoint)
