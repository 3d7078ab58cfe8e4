"""What is left out, and how sure that is."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from agents.alpha_beta import AlphaBetaAgent, AlphaBetaConfig
from agents.evaluation import ERROR_MODELS, KINDS, error_model_of, evaluation_of
from agents.ntuple.tables import NO_MODEL, Tables, write_tables
from agents.search.midgame import FINISHED, Searcher, shallow_depth
from agents.search.probcut import (
    LEAST_DEPTH,
    MOST_SELECTIVE,
    _features,
    _fit_spread,
    fit_error_model,
    margins,
    measured_model,
    sample_positions,
)
from reversi_env import Position, Variant
from reversi_env.variant import GOALS
from tests.agents.test_midgame import positions, rows

MODEL = ERROR_MODELS["mobility"]["most"]


def spread(model: np.ndarray, depth: int, shallow: int, num_empties: np.ndarray, num_squares: int) -> np.ndarray:
    rows = np.ones(len(num_empties))
    found: np.ndarray = np.exp(_features(depth * rows, shallow * rows, num_empties, num_squares) @ model)
    return found


def test_nothing_is_left_out_without_selectivity_or_without_a_model() -> None:
    assert margins(MODEL, 0, 8) is None
    assert margins(NO_MODEL, MOST_SELECTIVE, 8) is None


def goes_on(table: np.ndarray) -> np.ndarray:
    """Returns where a search of so many plies does not see the end of the game, bool [depth, empties]."""
    depth, num_empties = np.indices(table.shape)
    deep: np.ndarray = (depth >= LEAST_DEPTH) & (num_empties > depth)
    return deep


def test_bolder_margins_are_smaller_and_near_the_leaves_and_the_end_there_are_none() -> None:
    tables = [margins(MODEL, selectivity, 8) for selectivity in range(1, MOST_SELECTIVE + 1)]
    for sure, bold in itertools.pairwise(tables):
        assert sure is not None
        assert bold is not None
        assert np.all(bold <= sure)
        assert np.array_equal(bold > 0, goes_on(bold))


@pytest.mark.parametrize("term", [-1000.0, 1000.0])
def test_margins_of_any_model_are_worth_a_search(term: float) -> None:
    table = margins(np.full(5, term), 1, 10)
    assert table is not None
    assert 1 <= table[goes_on(table)].min() <= table.max() <= FINISHED


def test_shallower_depths_are_as_even_or_odd() -> None:
    for depth in range(LEAST_DEPTH, 32):
        assert 0 < shallow_depth(depth) < depth
        assert shallow_depth(depth) % 2 == depth % 2


def test_fit_finds_the_spread_that_errors_were_drawn_with() -> None:
    rng = np.random.default_rng(1)
    weights = np.array([5.0, 0.2, -0.3, -2.0, 1.0])
    depth, shallow, num_empties = (rng.uniform(*bounds, 40_000) for bounds in ((3, 12), (1, 5), (4, 60)))
    features = _features(depth, shallow, num_empties, 64)
    errors = rng.normal(0, np.exp(features @ weights))
    fitted = np.exp(features @ _fit_spread(features, errors**2))
    assert fitted == pytest.approx(np.exp(features @ weights), rel=0.1)


def test_a_fit_of_searches_foretells_their_errors() -> None:
    variant = Variant(size=6)
    some, evaluation = rows(positions(variant, 300, seed=1)), evaluation_of("mobility", variant)
    model = fit_error_model(*some, evaluation, variant, most_depth=4)
    searcher = Searcher(6)
    deep, _ = searcher.best_moves(*some, 4, evaluation, variant.rules)
    shallow, _ = searcher.best_moves(*some, 2, evaluation, variant.rules)
    num_empties = 36 - np.bitwise_count(some[0] | some[1])[:, 0].astype(np.int64)
    is_estimate = (abs(deep) < FINISHED) & (abs(shallow) < FINISHED)
    errors = (deep - shallow) / spread(model, 4, 2, num_empties, 36)
    assert 0.8 < np.mean(errors[is_estimate] ** 2) < 1.25


def test_where_searches_see_the_end_nothing_is_known_of_the_evaluation() -> None:
    variant = Variant(4)
    some = [position for position in positions(variant, 300, seed=1) if position.num_empties < LEAST_DEPTH]
    assert len(some) > 20
    assert not fit_error_model(*rows(some), evaluation_of("discs", variant), variant, most_depth=5).size


@pytest.mark.parametrize("variant", [Variant(6, "free", "fewest"), Variant(10)], ids=lambda variant: variant.name)
def test_sampled_positions_go_on_and_differ_and_follow_the_seed(variant: Variant) -> None:
    evaluation = evaluation_of("mobility", variant)
    players, opponents = sample_positions(evaluation, variant, 60, seed=1)
    some = [
        Position.from_bitboards(variant, tuple(player), tuple(opponent))
        for player, opponent in zip(players, opponents, strict=True)
    ]
    assert not any(position.is_over for position in some)
    assert len(set(some)) > 50
    lengths = {position.num_empties for position in some}
    assert min(lengths) < variant.num_squares // 4
    assert max(lengths) > variant.num_squares * 3 // 4
    for other, same in ((1, True), (2, False)):
        assert np.array_equal(sample_positions(evaluation, variant, 60, other)[0], players) is same


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", KINDS)
def test_error_models_that_come_along_are_those_that_are_measured(name: str, goal: str) -> None:
    variant = Variant(goal=goal)
    measured = measured_model(evaluation_of(name, variant), variant, seed=1)
    assert measured == pytest.approx(error_model_of(name, variant), abs=0.002)


def test_selective_search_looks_at_less_and_finds_nearly_the_same() -> None:
    variant = Variant()
    evaluation, some = evaluation_of("mobility", variant), positions(variant, 30, seed=2)
    values: list[list[int]] = []
    nodes: list[int] = []
    for selectivity in (0, 1, MOST_SELECTIVE):
        searcher = Searcher(8, 1 << 16, margins(MODEL, selectivity, 8))
        values.append([])
        nodes.append(0)
        for position in some:
            value, _ = searcher.search(position.player, position.opponent, 7, evaluation, variant.rules)
            values[-1].append(value)
            nodes[-1] += searcher.num_nodes
    assert nodes[0] > nodes[1] > nodes[2]
    assert np.mean(np.equal(values[0], values[1])) > 0.8


def test_an_error_model_comes_with_its_evaluation_and_without_one_nothing_is_left_out(tmp_path: Path) -> None:
    variant = Variant(6)
    fitted = Tables.zeros(variant)
    fitted.weights[:] = np.random.default_rng(1).normal(size=fitted.weights.shape)
    write_tables(tmp_path / "unmeasured", fitted)
    write_tables(tmp_path / "measured", Tables(variant, fitted.weights, error_model=MODEL))
    assert np.array_equal(error_model_of(str(tmp_path / "measured"), variant), MODEL)
    assert not error_model_of(str(tmp_path / "unmeasured"), variant).size
    for name in KINDS:
        assert error_model_of(name, variant).size == MODEL.size
    position = positions(variant, 1, seed=5)[0]
    nodes = [
        AlphaBetaAgent(
            AlphaBetaConfig(depth=6, exact=0, evaluation=str(tmp_path / name), selectivity=selectivity)
        ).analyze(position)
        for name in ("unmeasured", "measured")
        for selectivity in (0, MOST_SELECTIVE)
    ]
    none_left_out, without_model, same, some_left_out = (decision.num_nodes for decision in nodes)
    assert none_left_out == without_model == same != some_left_out
