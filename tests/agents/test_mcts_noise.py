"""Random numbers for kernels, against the distributions that they are said to have, and the noise made of them."""

import numpy as np
import pytest
from scipy import stats

from agents.mcts import MCTSConfig, Search
from agents.mcts.noise import draw_gamma, draw_gumbel, draw_normal, draw_uniform
from reversi_env import Position
from tests.agents.plain_trees import VARIANTS, boards_of, evaluate_as_even, evaluate_by_hash, search

NUM_DRAWS = 20_000
LEAST_P = 1e-3  # with fixed seeds a test passes or fails for good; with others one in a thousand would fail


@pytest.mark.parametrize(
    ("draw", "arguments", "distribution"),
    [
        (draw_uniform, (), stats.uniform()),
        (draw_gumbel, (), stats.gumbel_r()),
        (draw_normal, (), stats.norm()),
        *((draw_gamma, (shape,), stats.gamma(shape)) for shape in (0.1, 0.5, 1.0, 5.0)),
    ],
    ids=lambda given: getattr(given, "__name__", None) or (str(given) if isinstance(given, tuple) else ""),
)
def test_numbers_have_their_distribution(draw, arguments, distribution):
    states = np.array([7, 8], np.uint64)
    drawn = np.array([draw(states, 1, *arguments) for _ in range(NUM_DRAWS)])
    assert states[0] == 7
    assert stats.kstest(drawn, distribution.cdf).pvalue > LEAST_P
    again = np.array([7, 8], np.uint64)
    assert draw(again, 1, *arguments) == drawn[0]
    assert abs(stats.pearsonr(drawn[:-1], drawn[1:]).statistic) < 0.03


def state_before(bits: int) -> int:
    """Returns the state whose next number is made of these 64 bits: SplitMix64 backwards."""

    def unshift(value: int, shift: int) -> int:
        found = value
        for _ in range(64 // shift):
            found = value ^ found >> shift
        return found

    mask = (1 << 64) - 1
    value = unshift(bits, 31) * pow(0x94D049BB133111EB, -1, 1 << 64) & mask
    value = unshift(value, 27) * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & mask
    return unshift(value, 30) - 0x9E3779B97F4A7C15 & mask


@pytest.mark.parametrize("bits", [0, (1 << 64) - 1])
def test_the_extreme_numbers_have_finite_logarithms(bits):
    def states() -> np.ndarray:
        return np.array([state_before(bits)], np.uint64)

    assert 0 < draw_uniform(states(), 0) < 1
    assert np.isfinite(draw_gumbel(states(), 0))
    assert np.isfinite(draw_normal(states(), 0))
    assert np.isfinite(draw_gamma(states(), 0, 0.5))


def root_edges(searching: Search, game: int) -> slice:
    root = searching.tree.nodes[game * searching.tree.nodes_per_game]
    return slice(int(root["first_edge"]), int(root["first_edge"]) + int(root["num_edges"]))


def test_the_noise_of_a_root_is_dirichlets():
    # One of k shares of a Dirichlet distribution is of a beta distribution with α and (k - 1) · α.
    for variant in VARIANTS:
        position, num_games, concentration = Position(variant), 1500, 3.0
        config = MCTSConfig(num_simulations=1, noise_fraction=1.0, noise_concentration=concentration)
        searching = Search(variant, evaluate_by_hash, config)
        searching.run(*boards_of([position] * num_games), [np.random.default_rng(n) for n in range(num_games)])
        moves = list(position.legal_moves)
        prior = np.zeros((num_games, variant.num_actions))
        for game in range(num_games):
            edges = root_edges(searching, game)
            prior[game, searching.tree.action[edges]] = searching.tree.edges[edges]["prior"]
        np.testing.assert_allclose(prior[:, moves].sum(axis=1), 1, atol=1e-5)
        alpha = concentration / len(moves)
        for move in moves:
            assert stats.kstest(prior[:, move], stats.beta(alpha, concentration - alpha).cdf).pvalue > LEAST_P


def test_noise_takes_its_fraction_of_the_priors():
    position = Position()
    policy = evaluate_by_hash(*boards_of([position]), position.variant)[0][0]
    priors = []
    for fraction in (0.25, 1.0):
        config = MCTSConfig(num_simulations=1, noise_fraction=fraction)
        searching = Search(position.variant, evaluate_by_hash, config, 1)
        searching.run(*boards_of([position]), [np.random.default_rng(5)])
        prior, edges = np.zeros(65), root_edges(searching, 0)
        prior[searching.tree.action[edges]] = searching.tree.edges[edges]["prior"]
        priors.append(prior)
    mixed, noise = priors
    np.testing.assert_allclose(mixed, 0.75 * policy + 0.25 * noise, atol=1e-6)


def test_the_keys_of_a_gumbel_root_are_logits_and_gumbel_noise():
    position, num_games = Position("othello-6x6"), 3000
    config = MCTSConfig(root="gumbel", num_simulations=1, gumbel_scale=1.0)
    searching = Search(position.variant, evaluate_by_hash, config)
    searching.run(*boards_of([position] * num_games), [np.random.default_rng(n) for n in range(num_games)])
    policy = evaluate_by_hash(*boards_of([position]), position.variant)[0][0]
    room = len(searching.tree.root_key) // num_games
    noise = {move: [] for move in position.legal_moves}
    for game in range(num_games):
        keys = searching.tree.root_key[game * room :][: len(noise)]
        assert (np.diff(keys) <= 0).all()
        for key, move in zip(keys, searching.tree.action[root_edges(searching, game)], strict=True):
            noise[move].append(key - np.log(policy[move]))
    for drawn in noise.values():
        assert stats.kstest(drawn, stats.gumbel_r().cdf).pvalue > LEAST_P


def test_a_single_move_is_searched_with_noise_as_without():
    position = Position.from_text("XXXXXXXXXXXXXXO- X", "othello-4x4")
    must_pass = Position.from_text("XXXXXXXXXXXXXXO- O", "othello-4x4")
    for noise in ({"noise_fraction": 0.5}, {"noise_fraction": 1.0, "noise_concentration": 1e-3}):
        config = MCTSConfig(num_simulations=5, proves=False, **noise)
        for forced in (position, must_pass):
            found = search([forced], config, evaluate_as_even, [np.random.default_rng(3)])
            (move,) = forced.legal_moves
            assert found.policy[0, move] == 1
            assert found.visit_count[0, move] == 5
    config = MCTSConfig(root="gumbel", num_simulations=5, gumbel_scale=1.0, proves=False)
    found = search([position], config, evaluate_as_even, [np.random.default_rng(3)])
    assert found.visit_count[0].max() == 5


def test_noise_moves_visits_and_follows_its_generator():
    for root, noise in (("puct", {"noise_fraction": 0.5}), ("gumbel", {"gumbel_scale": 1.0})):
        config = MCTSConfig(root=root, num_simulations=40, **noise)

        def visits(seed, config=config):
            return search([Position()], config, evaluate_as_even, [np.random.default_rng(seed)]).visit_count[0]

        assert (visits(1) == visits(1)).all()
        assert any((visits(1) != visits(seed)).any() for seed in range(2, 8))
        assert visits(1).sum() == 40
