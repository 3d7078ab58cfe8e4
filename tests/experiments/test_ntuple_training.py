"""Runs of `reversi train algorithm=ntuple`: what games teach, what a run leaves, and what is wrong with one."""

import math
import re
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import agents
from agents.evaluation import DISC, error_model_of, evaluation_of, learned_evaluation
from agents.manifest import CheckpointError
from agents.ntuple.layout import layout_of
from agents.ntuple.tables import Tables, read_tables
from agents.runs import CHECKPOINTS, TABLES, find_checkpoint, find_tables
from agents.search.midgame import Searcher
from agents.search.probcut import margins, measured_model, sample_positions
from experiments import cli
from experiments.evaluation import evaluate
from experiments.train import compose_config
from experiments.training.algorithms import make_algorithm
from experiments.training.interruption import Interrupted, Stop, TrainingError
from experiments.training.ntuple_games import GAMES_A_CALL, Positions, Style, predicted, self_play, share_of
from experiments.training.ntuple_learner import NTupleLearner
from reversi_env import Position, Variant
from reversi_env.symmetry import NUM_SYMMETRIES, transform_position
from tests import oracle
from tests.experiments.small_runs import metrics_of

ROOT = Path(__file__).parents[2]
TINY = [
    "algorithm=ntuple",
    "variant=othello-4x4",
    "ntuple.depths=[1,2]",
    "ntuple.exact_empties=4",
    "ntuple.max_opening_plies=6",
    "schedule.games_per_iteration=20",
    "schedule.num_iterations=4",
    "schedule.checkpoint_every=2",
    "schedule.num_threads=1",
    "evaluation.opponents=[random]",
    "evaluation.every=3",
    "evaluation.num_games=2",
    "evaluation.final_num_games=4",
    "evaluation.depth=1",
    "name=run",
]
VARIANTS = [
    Variant(4),
    Variant(4, "free", "fewest", "tournament"),
    Variant(6, scoring="tournament"),
    pytest.param(Variant(10, goal="fewest"), marks=pytest.mark.slow),
]


def train(*overrides, folder):
    return cli.main(["train", *TINY, f"runs={folder}", *overrides])


def ntuple_of(*overrides):
    return make_algorithm(compose_config([*TINY, *overrides])[0])


def style(**changes):
    settings = {"depth": 1, "exact_empties": 0, "min_opening_plies": 0, "max_opening_plies": 4, "exploration": 0}
    return Style(**{**settings, "trace": 1.0, **changes})


def play(variant, num_games=8, num_threads=1, **changes):
    evaluation = learned_evaluation(Tables.zeros(variant))
    return self_play(variant, evaluation, style(**changes), num_games, 5, num_threads, lambda: None).positions


def truth(boards, variant, depth):
    """The rule book's value of a position, `depth` plies ahead, where any unfinished position is worth nothing."""
    position = Position.from_bitboards(variant, tuple(boards[0]), tuple(boards[1]))
    rules = (variant.goal, variant.scoring, variant.start == "free")
    return oracle.minimax(list(position.board), position.side, depth, lambda board, side: 0, *rules)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_near_the_end_targets_are_the_scores_of_perfect_play(variant):
    positions = play(variant, exact_empties=5, exploration=share_of(0.5))
    empties = variant.num_squares - np.bitwise_count(positions.boards).sum(axis=(1, 2))
    (near,) = np.nonzero(empties <= 5)
    assert len(near) > 20
    for row in near[:40]:
        assert positions.target[row] == truth(positions.boards[row], variant, 12)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_without_a_trace_targets_are_what_the_search_sees(variant):
    positions = play(variant, depth=2, trace=0.0)
    for row in range(0, len(positions), max(1, len(positions) // 40)):
        assert positions.target[row] == truth(positions.boards[row], variant, 2)


def test_with_a_whole_trace_every_target_of_a_game_is_its_final_score():
    positions = play(Variant(4), num_games=1, max_opening_plies=0)
    assert len(positions) >= 5
    assert all(later == -earlier for earlier, later in pairwise(positions.target))


def test_a_trace_mixes_what_the_search_sees_with_the_target_of_the_next_position():
    variant = Variant(4)
    positions = play(variant, num_games=1, max_opening_plies=0, trace=0.25)
    seen = [truth(boards, variant, 1) for boards in positions.boards]
    for row in range(len(positions) - 1):
        assert positions.target[row] == pytest.approx(0.75 * seen[row] - 0.25 * positions.target[row + 1])


def test_random_moves_say_nothing_of_the_positions_before():
    variant = Variant(4)
    positions = play(variant, exploration=share_of(1.0), trace=1.0)
    num_forced = 0
    for row in range(len(positions)):
        position = Position.from_bitboards(variant, *(tuple(words) for words in positions.boards[row]))
        if len(position.legal_moves) == 1 and not position.play(position.legal_moves[0]).is_over:  # that is not random
            num_forced += 1
            assert positions.target[row] == -positions.target[row + 1]
        else:
            assert positions.target[row] == truth(positions.boards[row], variant, 1)
    assert 0 < num_forced < len(positions)


def test_games_are_the_same_for_any_number_of_threads():
    num_games = 2 * GAMES_A_CALL + 3
    one, three = (play(Variant(6), num_games, threads, exploration=share_of(0.2), trace=0.5) for threads in (1, 3))
    assert np.array_equal(one.boards, three.boards)
    assert np.array_equal(one.target, three.target)


def test_openings_differ_from_game_to_game_and_are_not_learned_from():
    positions = play(Variant(8), 20, min_opening_plies=12, max_opening_plies=12)
    empties = 64 - np.bitwise_count(positions.boards).sum(axis=(1, 2))
    assert max(empties) == 48
    assert len(np.unique(positions.boards[empties == 48], axis=0)) == 20


@pytest.mark.parametrize("size", [6, pytest.param(10, marks=pytest.mark.slow)])
def test_a_step_corrects_a_position_and_its_mirror_images_alike_and_no_other_stage(size):
    variant = Variant(size)
    positions = play(variant, 1, max_opening_plies=10)
    learner = NTupleLearner(layout_of(size))
    learner.learn(positions.boards, np.full(len(positions), 9, np.float32), np.zeros(300, np.int64), 0.5, 1.0, 1)
    values = predicted(positions, learned_evaluation(Tables(variant, learner.weights)), variant)
    assert values[0] == pytest.approx(9, abs=0.2)
    assert np.count_nonzero(learner.weights.any(axis=1)) == 1
    position = Position.from_bitboards(variant, *(tuple(words) for words in positions.boards[0]))
    turned = [transform_position(position, symmetry) for symmetry in range(NUM_SYMMETRIES)]
    boards = np.array([[other.player, other.opponent] for other in turned], np.uint64)
    images = Positions(boards, np.zeros(NUM_SYMMETRIES, np.float32))
    assert set(predicted(images, learned_evaluation(Tables(variant, learner.weights)), variant)) == {values[0]}


def test_threads_learn_the_same_as_one():
    positions = play(Variant(6), 40)
    weights = []
    for num_threads in (1, 3):
        learner = NTupleLearner(layout_of(6))
        order = np.random.default_rng(1).integers(len(positions), size=4000)
        learner.learn(positions.boards, positions.target, order, 0.5, 0.9, num_threads)
        weights.append(learner.weights)
    assert np.array_equal(*weights)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run of a few games on 6×6."""
    folder = tmp_path_factory.mktemp("runs")
    overrides = [
        "algorithm=ntuple",
        "variant=othello-6x6",
        "ntuple.depths=[1,2]",
        "ntuple.exact_empties=8",
        "schedule.games_per_iteration=400",
        "schedule.num_iterations=12",
        "evaluation.opponents=[]",
        "name=run",
    ]
    assert cli.main(["train", *overrides, f"runs={folder}"]) == cli.DONE
    return folder / "run"


def test_a_few_games_on_6x6_lower_the_error_and_beat_the_simplest_players(learned):
    errors = [line["held_out/error"] for line in metrics_of(learned) if "held_out/error" in line]
    assert min(errors[-3:]) < 0.75 * errors[0]
    agent = agents.make(f"{learned}:depth=1,exact=0")
    for row in evaluate(agent, [agents.make("random"), agents.make("greedy")], Variant(6), 40, seed=1):
        assert row.score.value >= 0.8


def test_searches_with_learned_tables_can_be_selective(learned):
    variant = Variant(6)
    evaluation = evaluation_of(str(learned), variant)
    players, opponents = sample_positions(evaluation, variant, 60, seed=3)
    seen = {}
    for selectivity in (0, 1, 3):
        searcher = Searcher(6, 1 << 16, margins(error_model_of(str(learned), variant), selectivity, 6))
        found = []
        for player, opponent in zip(players, opponents, strict=True):
            value, _ = searcher.search(tuple(player), tuple(opponent), 7, evaluation, variant.rules)
            found.append((value, searcher.num_nodes))
        seen[selectivity] = np.array(found).T
    assert seen[0][1].sum() > seen[1][1].sum() > seen[3][1].sum()
    assert np.mean(seen[1][0] == seen[0][0]) >= 0.9
    assert np.mean(np.abs(seen[3][0] - seen[0][0]) <= DISC) >= 0.9


def test_a_run_leaves_its_numbers_and_plays_as_alphabeta(tmp_path, capsys):
    assert train(folder=tmp_path) == cli.DONE
    run = tmp_path / "run"
    printed = capsys.readouterr()
    assert re.search(r"iteration 4 of 4: error \d+\.\d\d discs, depth 2, 80 games", printed.err)
    assert "training othello-4x4, n-tuples, in" in printed.err
    assert [path.name for path in sorted((run / CHECKPOINTS).iterdir())] == ["000002", "000004"]
    lines = metrics_of(run)
    assert [line["iteration"] for line in lines] == [1, 2, 3, 4, 4]
    assert {"held_out/error", "self_play/games_per_s", "self_play/positions_per_s"} <= lines[0].keys()
    assert [line["self_play/depth"] for line in lines[:4]] == [1, 1, 2, 2]
    assert "evaluation/random/score" in lines[4]
    start = Position("othello-4x4")
    learned = agents.make(f"alphabeta:depth=2,exact=0,evaluation={run}").select(start, np.random.default_rng(1))
    for spec in (run, run / CHECKPOINTS / "000004"):
        agent = agents.make(f"{spec}:depth=2,exact=0")
        assert agent.name == f"{spec}:depth=2,exact=0"
        assert agent.variant == Variant(4)
        assert agent.select(start, np.random.default_rng(1)) == learned
    assert read_tables(find_tables(run)).variant == Variant(4)


def test_the_same_seed_gives_the_same_tables_and_a_resumed_run_too(tmp_path):
    for name, threads in (("one", 1), ("two", 2)):
        assert train("evaluation.opponents=[]", f"schedule.num_threads={threads}", folder=tmp_path / name) == cli.DONE
    whole = tmp_path / "one" / "run"
    error_model = read_tables(find_tables(whole)).error_model
    tables = read_tables(find_tables(whole)).weights
    assert np.array_equal(tables, read_tables(find_tables(tmp_path / "two" / "run")).weights)
    assert np.array_equal(error_model, read_tables(find_tables(tmp_path / "two" / "run")).error_model)
    shutil.rmtree(whole / CHECKPOINTS / "000004")
    assert cli.main(["train", f"resume={whole}"]) == cli.DONE
    assert np.array_equal(tables, read_tables(find_tables(whole)).weights)
    assert np.array_equal(error_model, read_tables(find_tables(whole)).error_model)
    assert train("evaluation.opponents=[]", "seed=2", folder=tmp_path / "other") == cli.DONE
    assert not np.array_equal(tables, read_tables(find_tables(tmp_path / "other" / "run")).weights)


@pytest.mark.parametrize("variant", ["othello-4x4", "anti-reversi"])
def test_tables_that_a_checkpoint_keeps_have_an_error_model_of_their_own(variant):
    ntuple = ntuple_of(f"variant={variant}", "schedule.games_per_iteration=10")
    for _ in range(2):
        ntuple.iterate(Stop())
        ntuple.counters.iteration += 1
    copied = ntuple.copied()
    kept = ntuple.kept(copied)
    assert kept.error_model.size == 5
    model = measured_model(learned_evaluation(copied), copied.variant, ntuple.config.seed)
    assert np.array_equal(kept.error_model, model)
    assert np.array_equal(kept.weights, copied.weights)


def test_a_run_ends_by_its_clock_and_grows_through_its_depths(tmp_path, capsys):
    endless = ["schedule.num_iterations=1000000", "schedule.duration_s=2", "schedule.checkpoint_every=1000000"]
    assert train(*endless, "evaluation.opponents=[]", folder=tmp_path) == cli.DONE
    lines = metrics_of(tmp_path / "run")[:-1]
    assert lines[-1]["time/elapsed_s"] >= 2
    assert lines[-2]["time/elapsed_s"] < 2
    assert {line["self_play/depth"] for line in lines} == {1, 2}
    assert f"iteration {len(lines)}, 100 % of the run: error " in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "run" / CHECKPOINTS).iterdir()] == [f"{len(lines):06}"]


def test_a_stop_is_heard_between_games():
    stop = Stop()
    stop.request()
    with pytest.raises(Interrupted):
        ntuple_of().iterate(stop)


def test_games_that_never_leave_their_random_opening_are_told_in_a_sentence():
    with pytest.raises(TrainingError, match=r"within its random opening; try lower ntuple\.max_opening_plies"):
        ntuple_of("ntuple.min_opening_plies=40", "ntuple.max_opening_plies=40").iterate(Stop())


def test_the_window_keeps_the_newest_share_of_all_positions():
    ntuple = ntuple_of("ntuple.newest_share=0.25", "schedule.replay_window=300")
    for _ in range(8):
        numbers = ntuple.iterate(Stop())
        ntuple.counters.iteration += 1
        share = round(0.25 * numbers["self_play/positions"])
        new = numbers["self_play/positions"] / ntuple.counters.iteration  # about
        assert numbers["replay/positions"] <= max(min(300, share), 1.5 * new)
    assert numbers["replay/positions"] == 300 or share < 300


def test_ctrl_c_leaves_a_checkpoint_from_which_the_run_goes_on(tmp_path):
    endless = ["schedule.num_iterations=100000", "schedule.checkpoint_every=100000", "evaluation.every=0"]
    command = [sys.executable, "-m", "reversi_lab", "train", *TINY, f"runs={tmp_path}", *endless]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        for line in process.stderr:
            if line.startswith("iteration 3 "):
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == cli.INTERRUPTED, errors
    assert f"go on with: reversi train resume={tmp_path}/run" in errors
    assert "Traceback" not in errors
    done = int(find_checkpoint(tmp_path / "run").name)
    assert cli.main(["train", f"resume={tmp_path}/run", f"schedule.num_iterations={done + 1}"]) == cli.DONE


def test_a_damaged_or_foreign_checkpoint_is_told_in_a_sentence(tmp_path, capsys):
    assert train("schedule.num_iterations=2", "evaluation.opponents=[]", folder=tmp_path) == cli.DONE
    run = tmp_path / "run"
    checkpoint = run / CHECKPOINTS / "000002"
    capsys.readouterr()
    assert cli.main(["evaluate", "random", f"mcts:checkpoint={run}", "--games", "2"]) != cli.DONE
    assert "n-tuple" in capsys.readouterr().err
    weights = checkpoint / TABLES / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(CheckpointError, match="was cut short or edited"):
        agents.make(str(checkpoint)).select(Position("othello-4x4"), np.random.default_rng(1))
    with pytest.raises(CheckpointError, match=f"every checkpoint of {run} is damaged"):
        agents.make(str(run))
    assert cli.main(["train", f"resume={run}"]) == cli.FAILED
    printed = capsys.readouterr().err
    assert "was cut short or edited" in printed
    assert printed.count("\n") == 1


def test_trainer_state_that_does_not_fit_is_refused():
    ntuple = ntuple_of()
    ntuple.iterate(Stop())
    tensors = ntuple.tensors()
    ntuple_of().load_tensors(tensors)
    for changed, sentence in (
        ({"learner.moved": tensors["learner.moved"][:1]}, "the learner's moved are not float32"),
        ({"window.target": tensors["window.target"][:1]}, "the window has arrays"),
        ({"window.boards": tensors["window.target"]}, "the window's boards is float32"),
        ({"replay.value": tensors["window.target"]}, "belongs neither to learner nor to window"),
        (
            {"learner.weights": tensors["learner.weights"] * math.inf},
            "the learner's weights hold what no training leaves",
        ),
        ({"learner.moved": -1 - tensors["learner.moved"]}, "the learner's moved hold what no"),
        ({"window.target": tensors["window.target"] * math.nan}, "the window holds what is no"),
        (
            {"window.boards": torch.from_numpy(~tensors["window.boards"].numpy())},
            "the window holds what is no position",
        ),
    ):
        with pytest.raises(ValueError, match=sentence):
            ntuple_of().load_tensors(tensors | changed)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ntuple.depths=[]"], "depths must be numbers of plies, at least one, got []"),
        (["ntuple.depths=[0]"], "depths must be numbers of plies, at least one, got [0]"),
        (["ntuple.exact_empties=40"], "exact_empties must be from 0 to 16, got 40"),
        (["ntuple.min_opening_plies=9"], "min_opening_plies must be from 0 to max_opening_plies = 6, got 9"),
        (["ntuple.exploration=1.5"], "exploration must be from 0 to 1, got 1.5"),
        (["ntuple.newest_share=0"], "newest_share must be above 0 and at most 1, got 0"),
        (["ntuple.samples_per_position=0"], "samples_per_position must be above 0 and finite, got 0"),
        (["ntuple.learning_rate=0"], "learning_rate must be above 0 and at most 1, got 0"),
        (["ntuple.trase=1"], "did you mean ntuple.trace"),
        (["schedule.duration_s=0"], "duration_s must be above 0 and finite, got 0"),
        (["evaluation.depth=0"], "depth must be at least 1 ply, got 0"),
        (["network=small"], "algorithm=ntuple has no use for network"),
        (["search.num_simulations=9"], "algorithm=ntuple has no use for search.num_simulations"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(arguments, sentence, tmp_path, capsys):
    assert train(*arguments, folder=tmp_path) == 2
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
