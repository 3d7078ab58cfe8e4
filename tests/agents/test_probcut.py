"""What is left out, and how sure that is."""

import itertools

import numpy as np
import pytest

from agents.evaluation import evaluation_of
from agents.search.midgame import Searcher, shallow_depth
from agents.search.probcut import (
    LEAST_DEPTH,
    MODELS,
    MOST_SELECTIVE,
    NO_MODEL,
    _features,
    _fit_spread,
    fit_error_model,
    margins,
)
from reversi_env import Variant
from tests.agents.test_midgame import positions, rows


def test_nothing_is_left_out_without_selectivity_or_without_a_model() -> None:
    assert margins(MODELS["mobility"], 0, 8) is None
    assert margins(NO_MODEL, MOST_SELECTIVE, 8) is None


def test_bolder_margins_are_smaller_and_depths_near_the_leaves_have_none() -> None:
    tables = [margins(MODELS["mobility"], selectivity, 8) for selectivity in range(1, MOST_SELECTIVE + 1)]
    for sure, bold in itertools.pairwise(tables):
        assert sure is not None
        assert bold is not None
        assert np.all(bold[LEAST_DEPTH:] <= sure[LEAST_DEPTH:])
        assert np.all(bold[LEAST_DEPTH:] > 0)
        assert not bold[:LEAST_DEPTH].any()


def test_model_and_search_agree_on_the_shallower_depth() -> None:
    for depth in range(1, 32):
        assert _features(np.array(depth), np.array(20), 64)[2] == shallow_depth(depth)
        assert depth < LEAST_DEPTH or 0 < shallow_depth(depth) < depth


def test_fit_finds_the_spread_that_errors_were_drawn_with() -> None:
    rng = np.random.default_rng(1)
    weights = np.array([5.0, 0.2, -0.3, -2.0, 1.0])
    features = _features(rng.integers(3, 12, 40_000), rng.integers(4, 60, 40_000), 64)
    errors = rng.normal(0, np.exp(features @ weights))
    fitted = np.exp(features @ _fit_spread(features, errors**2))
    assert fitted == pytest.approx(np.exp(features @ weights), rel=0.1)


def test_a_fit_of_searches_foretells_their_errors() -> None:
    variant = Variant(size=6)
    some, evaluation = rows(positions(variant, 300, seed=1)), evaluation_of("mobility", variant)
    model = fit_error_model(*some, evaluation, variant.rules, most_depth=4)
    searcher = Searcher(6)
    deep, _ = searcher.best_moves(*some, 4, evaluation, variant.rules)
    shallow, _ = searcher.best_moves(*some, shallow_depth(4), evaluation, variant.rules)
    num_empties = 36 - np.bitwise_count(some[0] | some[1])[:, 0].astype(np.int64)
    spread = np.exp(_features(np.full(300, 4), num_empties, 36) @ model)
    is_estimate = (abs(deep) < 10_000) & (abs(shallow) < 10_000)
    assert 0.8 < np.mean(((deep - shallow) / spread)[is_estimate] ** 2) < 1.25


def test_selective_search_looks_at_less_and_finds_nearly_the_same() -> None:
    variant = Variant()
    evaluation, some = evaluation_of("mobility", variant), positions(variant, 30, seed=2)
    values: list[list[int]] = []
    nodes: list[int] = []
    for selectivity in (0, 1, MOST_SELECTIVE):
        searcher = Searcher(8, 1 << 16, margins(MODELS["mobility"], selectivity, 8))
        values.append([])
        nodes.append(0)
        for position in some:
            value, _ = searcher.search(position.player, position.opponent, 7, evaluation, variant.rules)
            values[-1].append(value)
            nodes[-1] += searcher.num_nodes
    assert nodes[0] > nodes[1] > nodes[2]
    assert np.mean(np.equal(values[0], values[1])) > 0.8
