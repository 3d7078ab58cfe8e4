"""What a run shows in TensorBoard at an evaluation, read back by TensorBoard's own code."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

from agents.mcts import MCTSAgent, MCTSConfig
from experiments import cli
from experiments.match import play_match
from experiments.training.boards import NUM_BOARDS, boards_of
from experiments.training.run_folder import Metrics
from reversi_env import Game, Variant, show
from reversi_env.drawing.rgb import to_rgb
from tests.experiments.small_runs import SMALL

TINY = [
    *SMALL,
    "schedule.num_iterations=2",
    "evaluation.opponents=[random,greedy]",
    "evaluation.every=1",
    "evaluation.num_games=2",
    "evaluation.final_num_games=8",
]


def evenly(player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
    from reversi_env import Position

    policy = np.zeros((len(player), variant.num_actions), np.float32)
    for row, boards in enumerate(zip(player, opponent, strict=True)):
        moves = Position.from_bitboards(variant, *map(tuple, boards)).legal_moves
        policy[row, list(moves)] = 1 / len(moves)
    return policy, np.zeros(len(player), np.float32)


def read(folder: Path) -> EventAccumulator:
    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def test_boards_of_a_game_stand_side_by_side_with_the_policy_on_them() -> None:
    variant = Variant.named("othello-6x6")
    agent = MCTSAgent(evenly, MCTSConfig(num_simulations=8), "even", variant)
    match = play_match(agent, agent, variant, 4, seed=1)
    picture = boards_of(agent, match)
    height = picture.shape[0]
    assert picture.dtype == np.uint8
    assert picture.shape == (height, (NUM_BOARDS + 1) * height, 3)
    first, *_, last = np.split(picture, NUM_BOARDS + 1, axis=1)
    turn = next(turn for turn in match.turns(3) if len(turn.position.legal_moves) > 1)
    policy = agent.analyze(turn.position).policy
    assert np.array_equal(first, to_rgb(show(turn.position, last_move=turn.last_move, policy=policy).diagram, height))
    game = Game.from_transcript(match.games[3].moves, variant)
    assert np.array_equal(last, to_rgb(show(game.position, last_move=game.moves[-1]).diagram, height))


def test_pictures_and_hyperparameters_are_what_tensorboard_reads(tmp_path: Path) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    metrics = Metrics(tmp_path, 0)
    metrics.add(3, {"evaluation/random/elo": 123.0, "time/iteration_s": 1.0})
    metrics.add_picture("evaluation/game", picture, 3)
    metrics.add_text("truth", "```\nall  97.0\n```", 3)
    config = (
        "seed: 3\nname: null\nlearner:\n  rate: 0.5\n  flat: true\nevaluation:\n  opponents:\n  - random\n  - greedy\n"
    )
    metrics.add_hyperparameters(config, ["evaluation/random/elo"])
    metrics.close()
    assert len(list(tmp_path.rglob("events.out.*"))) == 1  # another file in the folder, or below, is another run
    board = read(tmp_path)
    (image,) = board.Images("evaluation/game")
    assert image.step == 3
    assert np.array_equal(np.array(Image.open(io.BytesIO(image.encoded_image_string))), picture)
    assert b"all  97.0" in board.Tensors("truth/text_summary")[0].tensor_proto.string_val[0]
    told = {
        tag: board.SummaryMetadata(tag).plugin_data.content
        for tag in (metadata.SESSION_START_INFO_TAG, metadata.EXPERIMENT_TAG)
    }
    values = metadata.parse_session_start_info_plugin_data(told[metadata.SESSION_START_INFO_TAG]).hparams
    assert values["seed"].number_value == 3
    assert values["learner.rate"].number_value == 0.5
    assert values["learner.flat"].bool_value or values["learner.flat"].number_value == 1
    assert values["evaluation.opponents"].string_value == "random greedy"
    assert "name" not in values
    infos = metadata.parse_experiment_plugin_data(told[metadata.EXPERIMENT_TAG]).metric_infos
    assert [info.name.tag for info in infos] == ["evaluation/random/elo"]
    assert board.Scalars("evaluation/random/elo")[-1].value == 123


def test_an_evaluation_tells_the_truth_in_metrics_and_in_tensorboard(tmp_path: Path) -> None:
    assert cli.main(["train", *TINY, f"runs={tmp_path}", "name=run"]) == cli.DONE
    run = tmp_path / "run"
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    first, last = lines[0], lines[-1]
    wanted = {
        "truth/network/kept",
        "truth/search/kept",
        "truth/search/kept_low",
        "truth/search/kept_decisive",
        "truth/search/discs_lost",
        "truth/search/value_error",
        "concepts/discs_lost",
        "concepts/takes_corner/taken",
        "calibration/error",
        "calibration/brier",
        "evaluation/greedy/score_low",
    }
    assert wanted <= first.keys() & last.keys()
    assert last["truth/search/kept_low"] <= last["truth/search/kept"] <= last["truth/search/kept_high"]
    elos = [
        last[f"evaluation/random/elo{end}"] for end in ("_low", "", "_high") if f"evaluation/random/elo{end}" in last
    ]
    assert elos == sorted(elos)
    board = read(run)
    for name in wanted:
        assert board.Scalars(name)[-1].value == pytest.approx(last[name], rel=1e-4)
    assert [image.step for image in board.Images("evaluation/game")] == [1, 2]
    assert {"truth/text_summary", "concepts/text_summary", "calibration/text_summary"} <= set(board.Tags()["tensors"])
    values = metadata.parse_session_start_info_plugin_data(
        board.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    ).hparams
    assert values["search.num_simulations"].number_value == 4
    games = [json.loads(line) for line in (run / "games" / "000002.jsonl").read_text().splitlines()]
    assert all(len(game["values"]) == len(game["moves"]) // 2 for game in games)
