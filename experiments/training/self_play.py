"""Games that a network plays against itself, all advancing together."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.mcts import Evaluator, MCTSConfig, Search, choose_move
from experiments.training.replay import Samples
from reversi_env import Position, Variant


@dataclass(frozen=True)
class SelfPlay:
    """Finished games as samples, and what there is to say of them."""

    samples: Samples
    num_games: int
    num_plies: int  # passes included
    num_passes: int
    black_mean_score: float
    visit_entropy: float  # mean over the searched positions, in nats
    num_simulations: int
    wall_s: float

    @staticmethod
    def joined(parts: "list[SelfPlay]") -> "SelfPlay":
        """Returns the parts as one, means weighted by games."""
        num_games = sum(part.num_games for part in parts)
        return SelfPlay(
            samples=Samples.joined([part.samples for part in parts]),
            num_games=num_games,
            num_plies=sum(part.num_plies for part in parts),
            num_passes=sum(part.num_passes for part in parts),
            black_mean_score=sum(part.black_mean_score * part.num_games for part in parts) / num_games,
            visit_entropy=sum(part.visit_entropy * part.num_games for part in parts) / num_games,
            num_simulations=sum(part.num_simulations for part in parts),
            wall_s=max(part.wall_s for part in parts),  # they were played side by side
        )


@dataclass
class _GameRecord:
    position: Position
    rng: np.random.Generator
    positions: list[Position]
    policies: list[np.ndarray]
    values: list[float]


def play_games(
    variant: Variant, evaluate: Evaluator, config: MCTSConfig, numbers: Sequence[int], seed: tuple[int, ...]
) -> SelfPlay:
    """Returns a game from the variant's start for each of `numbers`, which with the seed fix its random choices.

    A move that is the only one is played without search, and a pass is not kept as a sample. Early moves are drawn by
    their visits, as `config.temperature_plies` says.
    """
    began = time.monotonic()
    search = Search(variant, evaluate, config)
    start = Position(variant)
    records = [
        _GameRecord(start, np.random.default_rng(np.random.SeedSequence((*seed, int(number)))), [], [], [])
        for number in numbers
    ]
    entropy = 0.0
    num_searched = num_plies = num_passes = 0
    running = records
    while running:
        asked = [record for record in running if len(record.position.legal_moves) > 1]
        if asked:
            searched = search.run(
                np.array([record.position.player for record in asked]),
                np.array([record.position.opponent for record in asked]),
                [record.rng for record in asked],
            )
            policies = searched.visit_count / searched.visit_count.sum(axis=1, keepdims=True)
            entropy -= float(np.sum(policies * np.log(policies, where=policies > 0, out=np.zeros_like(policies))))
            num_searched += len(asked)
        row = 0
        for record in running:
            position = record.position
            if len(position.legal_moves) > 1:
                visits = searched.visit_count[row]
                move = choose_move(visits, position, config, record.rng)
                policy = policies[row].astype(np.float16)
                value = float(searched.value[row])
                row += 1
            else:
                move = position.legal_moves[0]
                policy = position.action_mask.astype(np.float16)
                value = math.nan
            if position.must_pass:
                num_passes += 1
            else:
                record.positions.append(position)
                record.policies.append(policy)
                record.values.append(value)
            record.position = position.play(move)
            num_plies += 1
        running = [record for record in running if not record.position.is_over]
    return SelfPlay(
        samples=Samples.joined([_samples_of(record) for record in records]),
        num_games=len(records),
        num_plies=num_plies,
        num_passes=num_passes,
        black_mean_score=float(np.mean([record.position.black_score for record in records])),
        visit_entropy=entropy / max(num_searched, 1),
        num_simulations=num_searched * config.num_simulations,
        wall_s=time.monotonic() - began,
    )


def _samples_of(record: _GameRecord) -> Samples:
    end, positions = record.position, record.positions
    black_result = end.result if end.is_black_to_move else -end.result
    signs = np.array([1 if position.is_black_to_move else -1 for position in positions], np.int8)
    is_black = signs[:, None] == 1
    values = np.array(record.values, np.float16)
    is_unsearched = np.isnan(values)  # since the move was the only one
    values[is_unsearched] = (signs * black_result)[is_unsearched]
    return Samples(
        player=np.array([position.player for position in positions], np.uint64),
        opponent=np.array([position.opponent for position in positions], np.uint64),
        policy=np.array(record.policies, np.float16),
        policy_weight=np.ones(len(positions), np.float16),
        value=values,
        result=signs * np.int8(black_result),
        score=signs * np.int8(end.black_score),
        final_player=np.where(is_black, end.black, end.white),
        final_opponent=np.where(is_black, end.white, end.black),
    )
