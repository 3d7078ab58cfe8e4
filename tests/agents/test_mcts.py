"""Search against a plain tree of Python objects, against brute force, and against itself."""

import math
import zlib
from dataclasses import replace

import numpy as np
import pytest

from agents.mcts import MCTSAgent, MCTSConfig, Search, choose_move
from reversi_env import Game, Position, Variant, random_games
from tests import oracle

VARIANTS = [Variant.named(name) for name in Variant.NAMES]


def evaluate_by_hash(player, opponent, variant):
    """An evaluator whose numbers mean nothing, are the same for the same position, and differ between positions."""
    policies, values = [], []
    for own, other in zip(player, opponent, strict=True):
        rng = np.random.default_rng(zlib.crc32(own.tobytes() + other.tobytes()))
        policies.append(rng.random(variant.num_actions) ** 3)
        values.append(rng.uniform(-1, 1))
    return np.array(policies, np.float32), np.array(values, np.float32)


def evaluate_as_even(player, opponent, variant):
    """An evaluator that knows nothing."""
    return np.full((len(player), variant.num_actions), 0.1, np.float32), np.zeros(len(player), np.float32)


class PlainNode:
    """The tree search of the AlphaZero paper, one object a node."""

    def __init__(self, position):
        self.position = position
        self.edges = None

    def simulate(self, puct_constant):
        """Returns the value for the side to move here."""
        if self.position.is_over:
            return np.float32(self.position.result)
        if self.edges is None:
            policy, value = evaluate_by_hash(
                np.array([self.position.player]), np.array([self.position.opponent]), self.position.variant
            )
            self.value = value[0]
            self.edges = [
                {"move": move, "prior": policy[0, move], "visits": 0, "total": np.float32(0), "child": None}
                for move in self.position.legal_moves
            ]
            return self.value
        visits_here = sum(edge["visits"] for edge in self.edges)
        best = max(self.edges, key=lambda edge: self.score(edge, visits_here, puct_constant))
        if best["child"] is None:
            best["child"] = PlainNode(self.position.play(best["move"]))
        value = -best["child"].simulate(puct_constant)
        best["visits"] += 1
        best["total"] = np.float32(best["total"] + value)
        return value

    def score(self, edge, visits_here, puct_constant):
        mean = float(edge["total"]) / edge["visits"] if edge["visits"] else float(self.value)
        bonus = puct_constant * float(np.sqrt(np.float32(max(visits_here, 1)))) * float(edge["prior"])
        return mean + bonus / (1 + edge["visits"])


def positions_of_random_games(variant, num_games, seed):
    games = random_games(Position(variant), num_games, seed)
    for moves, length in zip(games.moves, games.lengths, strict=True):
        positions = Game.from_moves(moves[:length].tolist(), variant).positions[:-1]
        yield positions[seed % len(positions)]
        yield from (position for position in positions if position.must_pass)
        yield positions[-1]


def search(positions, config, evaluate, rngs=()):
    player = np.array([position.player for position in positions])
    opponent = np.array([position.opponent for position in positions])
    return Search(positions[0].variant, evaluate, config).run(player, opponent, rngs)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_visits_are_those_of_a_plain_tree(variant):
    positions = [position for seed in (3, 17, 40) for position in positions_of_random_games(variant, 2, seed)]
    config = MCTSConfig(num_simulations=120, puct_constant=1.7, proves=False)
    found = search(positions, config, evaluate_by_hash)
    for index, position in enumerate(positions):
        root = PlainNode(position)
        root.simulate(config.puct_constant)
        for _ in range(config.num_simulations):
            root.simulate(config.puct_constant)
        expected = np.zeros(variant.num_actions, np.int32)
        for edge in root.edges:
            expected[edge["move"]] = edge["visits"]
        np.testing.assert_array_equal(found.visit_count[index], expected, err_msg=str(position))
        mean = sum(float(edge["total"]) for edge in root.edges) / config.num_simulations
        assert found.value[index] == pytest.approx(mean, abs=1e-5)


def test_a_position_is_searched_alike_alone_and_among_others():
    positions = list(positions_of_random_games(Variant(), 8, 5))
    config = MCTSConfig(num_simulations=60)
    together = search(positions, config, evaluate_by_hash)
    for index, position in enumerate(positions):
        alone = search([position], config, evaluate_by_hash)
        np.testing.assert_array_equal(alone.visit_count[0], together.visit_count[index])


@pytest.mark.parametrize("goal", ["most", "fewest"])
def test_enough_simulations_find_the_result_that_brute_force_finds(goal):
    variant = Variant(size=4, goal=goal)
    games = random_games(Position(variant), 30, seed=2)
    for moves, length in zip(games.moves, games.lengths, strict=True):
        position = Game.from_moves(moves[: length // 2].tolist(), variant).position
        board = list(position.board)
        best = np.sign(oracle.negamax(board, position.side, goal))
        decision = MCTSAgent(evaluate_as_even, MCTSConfig(num_simulations=3000), "mcts").select(
            position, np.random.default_rng(0)
        )
        after = position.play(decision.move)
        reached = -np.sign(oracle.negamax(list(after.board), after.side, goal)) if not after.is_over else -after.result
        assert reached == best, str(position)


def test_a_forced_pass_turns_the_value_round():
    # White (O) has no move at the right of the row; black then takes the last square: won for black, the side to wait.
    position = Position.from_text("XXXXXXXXXXXXXXO- O", "othello-4x4")
    assert position.must_pass
    decision = MCTSAgent(evaluate_as_even, MCTSConfig(num_simulations=50), "mcts").select(
        position, np.random.default_rng(0)
    )
    assert decision.move == position.variant.pass_move
    assert decision.value == pytest.approx(-1, abs=0.05)
    assert decision.principal_line == (16, 15)


def test_root_noise_moves_visits_and_follows_its_generator():
    position = Position()
    config = MCTSConfig(num_simulations=40, noise_fraction=0.5)

    def visits(seed):
        return search([position], config, evaluate_as_even, [np.random.default_rng(seed)]).visit_count[0]

    assert (visits(1) == visits(1)).all()
    assert any((visits(1) != visits(seed)).any() for seed in range(2, 8))
    assert visits(1).sum() == 40


def test_early_moves_are_drawn_by_their_visits_and_later_ones_are_the_most_visited():
    config = MCTSConfig(temperature_plies=2, temperature=0.5)
    start = Position()
    visits = np.zeros(65, np.int32)
    visits[list(start.legal_moves)] = (10, 20, 30, 40)
    rng = np.random.default_rng(0)
    drawn = np.bincount([choose_move(visits, 0, start, config, rng) for _ in range(4000)], minlength=65)
    expected = 4000 * np.square(visits / 10.0) / 30
    assert (np.abs(drawn - expected) <= 4 * np.sqrt(expected + 1)).all()
    later = start.play(19).play(18)
    later_visits = np.zeros(65, np.int32)
    later_visits[list(later.legal_moves)] = range(1, len(later.legal_moves) + 1)
    assert {choose_move(later_visits, 7, later, config, rng) for _ in range(50)} == {7}


def test_a_tree_that_has_used_up_its_edges_stops_growing_and_goes_on(monkeypatch):
    monkeypatch.setattr("agents.mcts.tree.EDGES_PER_SQUARE", 1 / 64)
    found = search([Position()], MCTSConfig(num_simulations=500), evaluate_by_hash)
    assert found.visit_count.sum() == 500


def test_the_principal_line_is_a_legal_line():
    for position in positions_of_random_games(Variant.named("othello-6x6"), 5, 9):
        decision = MCTSAgent(evaluate_by_hash, MCTSConfig(num_simulations=200), "mcts").analyze(position)
        assert decision.principal_line[0] == decision.move
        for move in decision.principal_line:
            position = position.play(move)


def test_one_agent_plays_several_variants_in_one_batch():
    positions = [Position(variant) for variant in VARIANTS] + [Position("othello-6x6").play(8)]
    agent = MCTSAgent(evaluate_by_hash, MCTSConfig(num_simulations=20), "mcts")
    rngs = [np.random.default_rng(0) for _ in positions]
    decisions = agent.select_batch(positions, rngs)
    for position, decision in zip(positions, decisions, strict=True):
        assert decision.move == agent.select(position, np.random.default_rng(0)).move
        assert decision.move in position.legal_moves
        assert math.isclose(decision.policy.sum(), 1, abs_tol=1e-6)


def test_analysis_is_without_noise_and_without_draws():
    position = Position()
    noisy = MCTSAgent(
        evaluate_by_hash, MCTSConfig(num_simulations=40, noise_fraction=1.0, temperature_plies=60), "mcts"
    )
    still = MCTSAgent(evaluate_by_hash, MCTSConfig(num_simulations=40), "mcts")
    assert (noisy.analyze(position).policy == still.select(position, np.random.default_rng(3)).policy).all()
    assert noisy.analyze(position).move == still.analyze(position).move


def test_what_an_agent_cannot_play_is_said_in_a_sentence():
    agent = MCTSAgent(evaluate_as_even, MCTSConfig(num_simulations=4), "mcts", Variant.named("othello-6x6"))
    rng = np.random.default_rng(0)
    assert agent.select(Position(), rng).move in Position().legal_moves  # another size is no matter
    with pytest.raises(ValueError, match="trained to win with the most discs, and anti-reversi is won with the fewest"):
        agent.select(Position("anti-reversi"), rng)
    over = Position.from_text("XXXXXXXXXXXXXXXX O", "othello-4x4")
    with pytest.raises(ValueError, match="the game is over, so there is no move to choose: XXXX"):
        agent.select(over, rng)


@pytest.mark.parametrize(
    "fault",
    [
        {"num_simulations": 0},
        {"num_simulations": 10**12},
        {"puct_constant": 0},
        {"puct_constant": math.nan},
        {"noise_fraction": 1.5},
        {"noise_concentration": math.inf},
        {"temperature": 0},
        {"temperature": math.inf},
    ],
)
def test_a_config_that_means_nothing_says_what_would(fault):
    with pytest.raises(ValueError, match=next(iter(fault))):
        replace(MCTSConfig(), **fault)
