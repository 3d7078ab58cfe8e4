"""Whole small runs: their folders, their interruption, their resumption."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import configs
from agents.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from agents.networks.residual import ResidualConfig, ResidualNetwork
from agents.ntuple.tables import Tables
from agents.runs import CHECKPOINTS
from experiments import cli
from experiments.match import MatchError
from experiments.train import compose_config
from experiments.training.algorithms import make_algorithm
from experiments.training.interruption import Interrupted
from experiments.training.run_folder import make_run_folder
from reversi_env import Variant
from tests.experiments.small_runs import SMALL, metrics_of

TINY = [
    *SMALL,
    "schedule.num_iterations=4",
    "schedule.checkpoint_every=2",
    "actors=thread",
    "actors.num_actors=2",
    "evaluation.opponents=[random]",
    "evaluation.every=3",
    "evaluation.num_games=2",
    "evaluation.final_num_games=4",
]


def train(*overrides, folder):
    return cli.main(["train", *TINY, f"runs={folder}", *overrides])


def run_of(folder):
    (run,) = folder.iterdir()
    return run


def weights_of(run):
    return read_checkpoint(sorted((run / CHECKPOINTS).iterdir())[-1]).network.state_dict()


def test_a_run_leaves_its_folder_and_a_table(tmp_path, capsys):
    assert train(folder=tmp_path) == cli.DONE
    run = run_of(tmp_path)
    assert run.name.startswith("quick_network-")
    printed = capsys.readouterr()
    assert "random" in printed.out
    assert f"reversi play {run}" in printed.out
    assert "iteration 4 of 4" in printed.err
    assert "num_iterations: 4" in (run / "config.yaml").read_text()
    assert {"commit", "command", "torch", "CPU"} <= json.loads((run / "run.json").read_text()).keys()
    assert sorted(path.name for path in (run / CHECKPOINTS).iterdir()) == ["000002", "000004"]
    assert sorted(path.name for path in (run / "games").iterdir()) == ["000003.jsonl", "000004.jsonl"]
    lines = metrics_of(run)
    assert [line["iteration"] for line in lines] == [1, 2, 3, 4, 4]
    assert lines[3]["self_play/games"] == 24
    assert lines[3]["self_play/cache_hits"] > 0
    assert {"train/policy_loss", "train/value_loss", "train/owner_loss", "train/learning_rate"} <= lines[3].keys()
    assert "evaluation/random/score" in lines[2]
    assert "evaluation/random/score" in lines[4]
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(run))
    board.Reload()
    assert [event.step for event in board.Scalars("train/policy_loss")] == [1, 2, 3, 4]
    assert board.Scalars("train/policy_loss")[-1].value == pytest.approx(lines[3]["train/policy_loss"], rel=1e-4)


def test_the_same_seed_gives_the_same_weights_and_an_interrupted_run_too(tmp_path):
    for name in ("one", "two"):
        assert train(folder=tmp_path / name) == cli.DONE
    one, two = (weights_of(run_of(tmp_path / name)) for name in ("one", "two"))
    assert all(torch.equal(one[name], two[name]) for name in one)

    assert train("schedule.num_iterations=4", "name=broken", folder=tmp_path) == cli.DONE
    broken = tmp_path / "broken"
    for left in sorted((broken / CHECKPOINTS).iterdir())[1:]:
        left.rename(tmp_path / f"away-{left.name}")  # as if the run had died after its second iteration
    assert cli.main(["train", f"resume={broken}"]) == cli.DONE
    resumed = weights_of(broken)
    assert all(torch.equal(one[name], resumed[name]) for name in one)
    assert [line["iteration"] for line in metrics_of(broken)] == [1, 2, 3, 4, 4]


@pytest.mark.parametrize(
    "path", sorted(Path(configs.__file__).parent.glob("experiment/*.yaml")), ids=lambda path: path.stem
)
def test_every_preset_is_a_configuration(path):
    config, label = compose_config([f"experiment={path.stem}"])
    assert label == path.stem
    assert (config.schedule.duration_s is None) == path.stem.startswith("quick")


@pytest.mark.parametrize(
    ("overrides", "kind", "root", "size", "games"),
    [
        ([], "ntuple", "gumbel", 6, 1536),
        (["experiment=quick_network"], "residual", "puct", 6, 96),
        (["experiment=othello-1h"], "ntuple", "gumbel", 8, 2048),
        (["experiment=othello-gpu"], "residual", "gumbel", 8, 2048),
    ],
)
def test_what_is_learned_and_how_follows_from_the_preset(overrides, kind, root, size, games):
    config, _ = compose_config(overrides)
    found = config.network.kind, config.search.root, config.variant.size, config.schedule.games_per_iteration
    assert found == (kind, root, size, games)


def test_other_algorithms_have_networks_and_windows_of_their_own():
    assert compose_config(["algorithm=maskable_ppo"])[0].network.kind == "residual"
    assert compose_config(["algorithm=ntuple"])[0].schedule.replay_window == 1_000_000
    assert compose_config(["experiment=ntuple"])[0].schedule.replay_window == 10_000_000


def test_n_tuples_learn_on_the_cpu_and_without_torchrun(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    for device in ("auto", "cpu"):
        config, _ = compose_config([f"device={device}"])
        assert config.to_device().type == "cpu"
    assert cli.main(["train", "device=cuda"]) == cli.WRONG_USAGE
    assert "device=cuda is for residual networks; n-tuples learn and play on the CPU" in capsys.readouterr().err
    monkeypatch.setattr("experiments.train.num_ranks", lambda: 2)
    for overrides, chosen in (([], "network.kind=ntuple"), (["algorithm=ntuple"], "algorithm=ntuple")):
        assert cli.main(["train", *overrides]) == cli.WRONG_USAGE
        assert f"{chosen} knows no torchrun, which is for residual networks" in capsys.readouterr().err


def test_what_n_tuples_have_no_use_for_is_said_to_be_for_residual_networks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "learner.warmup_steps=3"]) == cli.WRONG_USAGE
    assert "network=ntuple has no use for learner.warmup_steps; residual networks have" in capsys.readouterr().err


def test_a_run_whose_backend_is_no_longer_there_goes_on_with_another(tmp_path, monkeypatch, caplog):
    assert train("name=run", "schedule.num_iterations=2", folder=tmp_path) == cli.DONE
    monkeypatch.setattr("experiments.training.alphazero.is_available", lambda backend, device: False)
    assert cli.main(["train", f"resume={tmp_path}/run", "schedule.num_iterations=3"]) == cli.DONE
    told = [message for message in caplog.messages if "which cannot run here" in message]
    assert [message.split()[1] for message in told] == ["2", "3"]  # of the rounds


def test_runs_that_begin_in_one_second_have_folders_of_their_own(tmp_path):
    folders = {make_run_folder(tmp_path, None, "quick") for _ in range(5)}
    assert len(folders) == 5
    make_run_folder(tmp_path, "mine", "quick")
    with pytest.raises(FileExistsError, match=r"is taken.*resume="):
        make_run_folder(tmp_path, "mine", "quick")
    with pytest.raises(ValueError, match="a run's name has"):
        make_run_folder(tmp_path, "../mine", "quick")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["sed=3"], 2, "unknown key 'sed'; did you mean seed"),
        (["schedule.num_iteration=3"], 2, "did you mean schedule.num_iterations"),
        (["network=smal"], 2, "unknown choice of network 'smal'; did you mean small"),
        (["experiment=quik"], 2, "did you mean quick"),
        (["varant=othello"], 2, "did you mean variant"),
        (["variant=otello"], 2, "did you mean othello"),
        (["--confg"], 2, "unknown option '--confg'; did you mean --config"),
        (["seed"], 2, "'seed' is not an override"),
        (["+new=1"], 2, "only key=value"),
        (["schedule.num_iterations=many"], 2, "many"),
        (["schedule.num_iterations=0"], 2, "num_iterations must be at least 1, got 0"),
        (["variant.size=7"], 2, "columns"),
        (["variant.goal=last"], 2, "unknown goal 'last'"),
        (["evaluation.num_games=3"], 2, "must be even"),
        (["evaluation.opponents=[random,random]"], 2, "opponents must be different from each other"),
        (["device=gpu"], 2, "device is auto, cpu or cuda"),
        ([f"seed={1 << 64}"], 2, "seed must be at least 0 and below"),
        (["search.temperature=inf"], 2, "temperature must be above 0 and finite, got inf"),
        (["search.puct_constant=nan"], 2, "puct_constant must be above 0 and finite, got nan"),
        (["evaluation.search.num_simulations=10000000000"], 2, "num_simulations must be from 1 to 4,000,000"),
        (["search=gumbel", "self_play.reuses_tree=true"], 2, "self_play.reuses_tree is for search.root=puct"),
        (["self_play.full_share=0.5", "self_play.quick_simulations=32"], 2, "must be less than search.num_simulations"),
        (["learner.learning_rate=1e38"], 2, "learning_rate must be above 0 and at most 1"),
        (["learner.samples_per_position=inf"], 2, "samples_per_position must be above 0 and finite"),
        (["learner.result_weight=inf"], 2, "result_weight must be at least 0 and finite"),
        (["learner.batch_size=1000000000000"], 2, "batch_size must be from 2"),
        (["schedule.games_per_iteration=10000000000"], 2, "games_per_iteration must be at most"),
        (["schedule.num_threads=1000000"], 2, "num_threads must be from 0 to"),
        (["evaluation.opponents=[[random]]"], 2, "Cannot convert 'list' to string"),
        (["variant.size=4", "variant.start='XXXXXXXXXXXXXXO- X'"], 2, "goes on after 2 plies"),
        (["evaluation.opponents=[randm]"], 2, "unknown agent 'randm'; did you mean random"),
        (["name=a/b"], 1, "a run's name has"),
        (["resume=nowhere"], 1, "there is no checkpoint or run at nowhere"),
        (["resume=.", "network=small"], 1, "holds no checkpoint"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(arguments, code, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *arguments]) == code
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.err.startswith("reversi: ")
    assert printed.err.count("\n") == 1
    assert not printed.out
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left on device"), MemoryError])
def test_a_run_that_cannot_start_leaves_no_folder(failure, tmp_path, monkeypatch, capsys):
    def fail(*arguments):
        raise failure

    monkeypatch.setattr("experiments.train.Trainer", fail)
    assert train(folder=tmp_path) != cli.DONE
    assert "Traceback" not in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "phrase", ["CUDA out of memory", "DefaultCPUAllocator: can't allocate memory", "not enough memory"]
)
def test_only_the_end_of_the_memory_is_taken_for_it(phrase, tmp_path, monkeypatch, capsys):
    def fail(trainer, phrase=phrase):
        raise RuntimeError(phrase)

    monkeypatch.setattr("experiments.train.Trainer.run", fail)
    assert train(folder=tmp_path) == cli.FAILED
    assert f"not enough memory ({phrase}); what takes most are" in capsys.readouterr().err
    monkeypatch.setattr("experiments.train.Trainer.run", lambda trainer: fail(trainer, "the memory of this is gone"))
    with pytest.raises(RuntimeError, match="the memory of this is gone"):
        train(folder=tmp_path)


def test_a_run_goes_on_where_nobody_reads_its_progress(tmp_path, monkeypatch):
    class ClosedPipe:
        def isatty(self):
            return False

        def write(self, text):
            raise BrokenPipeError

        flush = isatty

    monkeypatch.setattr(sys, "stderr", ClosedPipe())
    assert train("schedule.num_iterations=2", folder=tmp_path) == cli.DONE
    assert sorted(path.name for path in (run_of(tmp_path) / CHECKPOINTS).iterdir()) == ["000002"]


def test_training_that_diverges_says_so_and_keeps_the_last_good_iteration(tmp_path, capsys):
    assert train("schedule.num_iterations=1", "name=run", folder=tmp_path) == cli.DONE
    resumed = ["train", f"resume={tmp_path}/run", "schedule.num_iterations=5"]
    assert cli.main([*resumed, "learner.result_weight=1e38"]) == cli.FAILED
    errors = capsys.readouterr().err
    assert re.search(r"the gradient norm is inf at step \d+ ", errors)
    assert f"go on with: reversi train resume={tmp_path}/run" in errors
    weights = weights_of(tmp_path / "run")
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


def test_what_ends_one_thread_ends_the_run_without_waiting_for_the_others(tmp_path, monkeypatch, capsys):
    def play_badly(variant, evaluate, search, config, numbers, seed, check):
        if numbers[0]:
            raise OSError("the second thread is broken")
        for _ in range(3000):
            time.sleep(0.01)
            check()
        raise AssertionError("the first thread was waited for")

    monkeypatch.setattr("experiments.training.actors.compile_kernels", lambda terms: None)
    monkeypatch.setattr("experiments.training.actors.play_games", play_badly)
    assert train("self_play.games_at_once=3", folder=tmp_path) == cli.FAILED
    assert "the second thread is broken" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_that_is_broken_off_costs_no_iteration(tmp_path, monkeypatch, capsys):
    whole = tmp_path / "whole"
    assert train("name=run", folder=whole) == cli.DONE
    for name, failure, code in (("stopped", Interrupted, cli.INTERRUPTED), ("lost", MatchError, cli.FAILED)):
        folder = tmp_path / name
        with monkeypatch.context() as patched:

            def fail(*arguments, failure=failure, **options):
                raise failure("no evaluation")

            patched.setattr("experiments.training.trainer.evaluate", fail)
            assert train("name=run", folder=folder) == code
        assert f"stopped after iteration 3 of 4: {folder}/run/{CHECKPOINTS}/000003" in capsys.readouterr().err
        assert [line["iteration"] for line in metrics_of(folder / "run")] == [1, 2, 3]
        assert cli.main(["train", f"resume={folder}/run"]) == cli.DONE
        assert [line["iteration"] for line in metrics_of(folder / "run")] == [1, 2, 3, 4, 4]
        one, two = weights_of(whole / "run"), weights_of(folder / "run")
        assert all(torch.equal(one[key], two[key]) for key in one)


def test_a_runs_folder_under_a_file_is_said_in_a_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert train(folder=tmp_path / "file") == cli.FAILED
    assert "file" in capsys.readouterr().err


def test_a_resumed_run_of_another_shape_is_refused(tmp_path, capsys):
    assert train("schedule.num_iterations=2", "name=run", folder=tmp_path) == cli.DONE
    run = tmp_path / "run"
    for override, sentence in (
        ("variant.size=6", "was trained for othello-4x4, the configuration asks for othello-6x6"),
        ("network.num_channels=6", "the checkpoint's network is"),
        ("network=medium", "a resumed run keeps this"),
    ):
        assert cli.main(["train", f"resume={run}", override]) != cli.DONE
        assert sentence in capsys.readouterr().err
    assert cli.main(["train", f"resume={run}", "schedule.num_iterations=3"]) == cli.DONE
    assert "iteration 3 of 3" in capsys.readouterr().err


def test_a_run_whose_newest_checkpoint_is_damaged_goes_on_from_the_one_before_and_writes_it_anew(tmp_path, capsys):
    assert train("name=run", "schedule.kept_checkpoints=1", folder=tmp_path) == cli.DONE
    assert train("name=other", folder=tmp_path) == cli.DONE
    run, whole = tmp_path / "run", weights_of(tmp_path / "other")
    (tmp_path / "other" / CHECKPOINTS / "000002").rename(run / CHECKPOINTS / "000002")
    (run / CHECKPOINTS / "000004" / "model.safetensors").write_bytes(b"cut short")
    assert cli.main(["train", f"resume={run}", "schedule.checkpoint_every=1"]) == cli.DONE
    assert f"set aside as {run}/{CHECKPOINTS}/000004.damaged-1" in capsys.readouterr().err
    assert sorted(path.name for path in (run / CHECKPOINTS).iterdir()) == ["000004", "000004.damaged-1"]
    again = read_checkpoint(run / CHECKPOINTS / "000004").network.state_dict()
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_a_run_whose_positions_are_damaged_goes_on_from_the_checkpoint_before(tmp_path, capsys):
    assert train("name=run", folder=tmp_path) == cli.DONE
    run = tmp_path / "run"
    whole = weights_of(run)
    assert sorted(path.name for path in (run / "replay").iterdir()) == ["000000", "000001", "000002", "000003"]
    positions = run / "replay" / "000003" / "positions.npy"  # which only the last checkpoint needs
    positions.write_bytes(positions.read_bytes()[:-1])
    assert cli.main(["train", f"resume={run}"]) == cli.DONE
    assert f"going on from {run}/{CHECKPOINTS}/000002; the newer one is damaged" in capsys.readouterr().err
    again = weights_of(run)
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    (run / "replay" / "000000" / "positions.npy").unlink()
    assert cli.main(["train", f"resume={run}"]) == cli.FAILED
    errors = capsys.readouterr().err
    assert f"every checkpoint of {run} is damaged; the newest: {run}/replay/000000/positions.npy cannot be" in errors
    assert errors.count("\n") == 1


def test_positions_that_nothing_needs_are_removed(tmp_path):
    overrides = ["replay.initial_window=1", "replay.window_growth=0", "schedule.kept_checkpoints=1"]
    assert train("name=run", *overrides, folder=tmp_path) == cli.DONE
    assert [path.name for path in (tmp_path / "run" / "replay").iterdir()] == ["000003"]


def test_a_run_may_begin_with_the_network_of_another_board(tmp_path, capsys):
    assert train("name=small", folder=tmp_path) == cli.DONE
    begun = ["variant.size=6", f"init_from={tmp_path}/small", "schedule.num_iterations=1", "evaluation.opponents=[]"]
    small, large = weights_of(tmp_path / "small"), make_algorithm(compose_config([*TINY, *begun])[0]).copied()
    assert all(torch.equal(small[name], tensor) for name, tensor in large.state_dict().items())
    assert train("name=large", *begun, folder=tmp_path) == cli.DONE
    (tmp_path / "small").rename(tmp_path / "away")
    assert cli.main(["train", f"resume={tmp_path}/large", "schedule.num_iterations=2"]) == cli.DONE
    assert any((small[name] != tensor).any() for name, tensor in weights_of(tmp_path / "large").items())
    write_checkpoint(tmp_path / "tables", Checkpoint(Tables.zeros(Variant(4)), Variant(4)))
    for overrides, sentence in (
        (["network.num_blocks=2", f"init_from={tmp_path}/away"], "away is ResidualConfig(num_channels=4,"),
        ([f"init_from={tmp_path}/small"], "there is no checkpoint or run at"),
        ([f"init_from={tmp_path}/tables"], "tables holds a Tables, network.kind=residual is a ResidualNetwork"),
    ):
        capsys.readouterr()
        assert train("name=refused", *overrides, folder=tmp_path) == cli.FAILED
        errors = capsys.readouterr().err
        assert sentence in errors
        assert errors.count("\n") == 1


def test_what_a_resumed_run_changes_holds_when_it_is_resumed_again(tmp_path, capsys):
    assert train("schedule.num_iterations=2", "name=run", folder=tmp_path) == cli.DONE
    run = tmp_path / "run"
    assert cli.main(["train", f"resume={run}", "schedule.num_iterations=3"]) == cli.DONE
    assert "num_iterations: 3" in (run / "config.yaml").read_text()
    assert cli.main(["train", f"resume={run}", "schedule.num_iterations=1"]) == cli.DONE  # it has gone further already
    assert [line["iteration"] for line in metrics_of(run)] == [1, 2, 3, 3]
    assert cli.main(["train", f"resume={run}/{CHECKPOINTS}/000003"]) == cli.WRONG_USAGE
    assert "is a checkpoint; resume is the folder of a run" in capsys.readouterr().err


def _cut_short(checkpoint):
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5])


def _edited(checkpoint):
    (checkpoint / "config.yaml").write_text("seed: 7\n")


def _of_a_newer_format(checkpoint):
    manifest = checkpoint / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format_version": 2', '"format_version": 99'))


def _for_another_board(checkpoint):
    manifest = checkpoint / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"size": 4', '"size": 7'))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_cut_short, "model.safetensors is not the file that was saved: it was cut short or edited"),
        (_edited, "config.yaml is not the file that was saved: it was cut short or edited"),
        (_of_a_newer_format, "has format version 99, and this version of reversi-lab reads up to 2"),
        (_for_another_board, "a board has 4, 6, 8 or 10 columns, not 7"),
    ],
)
def test_every_verb_says_what_is_wrong_with_a_checkpoint(damage, sentence, tmp_path, capsys):
    checkpoint = tmp_path / "run" / CHECKPOINTS / "000001"
    network = ResidualNetwork(ResidualConfig(4, 1, 2))
    write_checkpoint(checkpoint, Checkpoint(network, Variant(size=4), "seed: 1\n", trainer_counters={"iteration": 1}))
    (tmp_path / "run" / "config.yaml").write_text("variant: {size: 4}\nseed: 1\n")
    damage(checkpoint)
    for arguments in (
        ["evaluate", str(checkpoint), "random", "--games", "2"],
        ["play", str(checkpoint)],
        ["train", f"resume={tmp_path}/run"],
    ):
        assert cli.main(arguments) == cli.FAILED, arguments
        printed = capsys.readouterr()
        assert sentence in printed.err
        assert printed.err.startswith("reversi: ")
        assert printed.err.count("\n") == 1
        assert not printed.out


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "it holds no keys"),
        ("seed: 1\nsed: 2\n", "Key 'sed' not in 'TrainConfig'"),
        ("variant: {size: ten}", "could not be converted to Integer"),
        ("name: [", "expected the node content"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
    ],
)
def test_a_damaged_configuration_is_named(content, sentence, tmp_path, capsys):
    run = make_run_folder(tmp_path, "run", "quick")
    network = ResidualNetwork(ResidualConfig(4, 1, 2))
    write_checkpoint(run / CHECKPOINTS / "000001", Checkpoint(network, Variant(), trainer_counters={"iteration": 1}))
    (run / "config.yaml").write_text(content)
    assert cli.main(["train", f"resume={run}"]) == cli.FAILED
    errors = capsys.readouterr().err
    assert f"{run}/config.yaml is not the configuration of a run: " in errors
    assert sentence in errors
    assert errors.count("\n") == 1


def test_trainer_state_that_does_not_fit_is_refused(tmp_path, capsys):
    assert train("schedule.num_iterations=2", "name=run", folder=tmp_path) == cli.DONE
    run = tmp_path / "run"
    saved = read_checkpoint(run / CHECKPOINTS / "000002", with_trainer=True)
    for number, (tensors, counters, sentence) in enumerate(
        (
            ({"learner.optimizer.0.exp_avg_sq": torch.zeros(1)}, {}, "a 0.exp_avg_sq that does not fit"),
            ({"learner.optimizer.99.step": torch.zeros(())}, {}, "has 99.step, which belongs to nothing there"),
            ({"games.turn": torch.zeros(1)}, {}, "it has games.turn, which belongs neither to learner nor to replay"),
            ({"replay.value": torch.zeros(1)}, {}, "expected digests, rounds, totals"),
            ({}, {"num_games": -1}, "num_games is -1"),
            ({}, {"num_games": "many"}, "num_games is 'many'"),
            ({}, {"elapsed_s": float("nan")}, "elapsed_s is nan"),
            ({}, {"more": 1}, "is it another algorithm's?"),
            ({}, {"num_steps": 0}, "after step 0 has 0.exp_avg, which belongs to nothing"),
        ),
        start=3,
    ):
        changed = replace(
            saved,
            trainer_tensors=saved.trainer_tensors | tensors,
            trainer_counters=saved.trainer_counters | counters,
        )
        write_checkpoint(run / CHECKPOINTS / f"{number:06}", changed)
        assert cli.main(["train", f"resume={run}", "schedule.num_iterations=3"]) == cli.FAILED
        errors = capsys.readouterr().err
        assert "the checkpoint's trainer state cannot be used" in errors
        assert sentence in errors


def start_train(folder, *overrides):
    command = [sys.executable, "-m", "reversi_lab", "train", *TINY, f"runs={folder}", "name=run", *overrides]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )


def test_ctrl_c_at_any_moment_leaves_a_checkpoint_or_a_sentence(tmp_path):
    endless = ["schedule.num_iterations=100000", "schedule.checkpoint_every=100000", "evaluation.every=2"]
    for moment in (None, 0.0, 0.1, 0.7):
        folder = tmp_path / str(moment)
        process = start_train(folder, *endless)
        if moment is None:
            time.sleep(0.3)  # while it still imports
        else:
            for line in process.stderr:
                if line.startswith("iteration 2 "):
                    break
            time.sleep(moment)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        if moment is None:
            assert process.returncode in (130, -signal.SIGINT)
            continue
        assert process.returncode == 130, errors
        assert f"go on with: reversi train resume={folder}/run" in errors
        assert "Traceback" not in errors
        done = int(sorted((folder / "run" / CHECKPOINTS).iterdir())[-1].name)
        assert done >= 2
        resumed = ["train", f"resume={folder}/run", f"schedule.num_iterations={done + 1}"]
        assert cli.main(resumed) == cli.DONE


def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path):
    process = start_train(tmp_path, "schedule.num_iterations=100000", "evaluation.every=0")
    for line in process.stderr:
        if line.startswith("iteration 5 "):
            break
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    assert cli.main(["train", f"resume={tmp_path}/run", "schedule.num_iterations=6"]) == cli.DONE
    assert [line["iteration"] for line in metrics_of(tmp_path / "run")][-3:] == [5, 6, 6]


@pytest.fixture
def small_disk(tmp_path):
    """The folder of a file system of one megabyte."""
    if os.geteuid():
        pytest.skip("only root can mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_said_in_a_sentence_and_keeps_the_last_checkpoint(small_disk, capsys):
    overrides = ["schedule.num_iterations=1000", "schedule.games_per_iteration=60", "evaluation.every=0", "name=run"]
    overrides += ["learner.samples_per_position=0.1"]  # since games, and not steps, fill a disk
    assert train(*overrides, folder=small_disk) == cli.FAILED
    errors = capsys.readouterr().err
    assert "No space left on device" in errors
    assert f"{small_disk}/run" in errors
    assert "Traceback" not in errors
    kept = sorted((small_disk / "run" / CHECKPOINTS).iterdir())
    assert [path.name for path in kept if not path.name.isdigit()] == []
    assert read_checkpoint(kept[-1], with_trainer=True).trainer_counters["iteration"] == int(kept[-1].name)


@pytest.mark.parametrize("num_left", [0, 1, 2, 3])  # pages of 4096 bytes: a run's folder needs several at once
def test_a_disk_that_is_full_at_the_start_is_said_in_a_sentence(num_left, small_disk, capfd):
    (small_disk / "runs").mkdir()
    with contextlib.suppress(OSError), (small_disk / "filling").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    os.truncate(small_disk / "filling", (small_disk / "filling").stat().st_size - 4096 * num_left)
    assert train("name=run", folder=small_disk / "runs") == cli.FAILED
    errors = capfd.readouterr().err
    assert f"reversi: {small_disk}/runs/run" in errors
    assert "No space left on device" in errors
    assert "Traceback" not in errors
