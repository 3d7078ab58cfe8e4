"""What tests of tree searches share: the same searches written plainly from their papers, and what they search with."""

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from agents.mcts import Evaluator, MCTSConfig, Search, Searched
from reversi_env import Game, Position, Variant, random_games

VARIANTS = [Variant.named(name) for name in Variant.NAMES]


# Evaluators


def evaluate_by_hash(player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
    """Judges by numbers that mean nothing, are the same for the same position, and differ between positions."""
    return _judge_all(_by_hash, player, opponent, variant)


def evaluate_as_even(player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
    """Knows nothing."""
    return _judge_all(_as_even, player, opponent, variant)


def _judge_all(
    judge: Callable[[bytes, bytes, Variant], tuple[np.ndarray, float]],
    player: np.ndarray,
    opponent: np.ndarray,
    variant: Variant,
) -> tuple[np.ndarray, np.ndarray]:
    judged = [judge(own.tobytes(), other.tobytes(), variant) for own, other in zip(player, opponent, strict=True)]
    policies, values = zip(*judged, strict=True)
    return np.array(policies, np.float32), np.array(values, np.float32)


def _legal_moves(player: bytes, opponent: bytes, variant: Variant) -> list[int]:
    boards = (tuple(np.frombuffer(board, np.uint64).tolist()) for board in (player, opponent))
    return list(Position.from_bitboards(variant, *boards).legal_moves)


@lru_cache(maxsize=1 << 16)
def _by_hash(player: bytes, opponent: bytes, variant: Variant) -> tuple[np.ndarray, float]:
    rng = np.random.default_rng(zlib.crc32(player + opponent))
    legal = _legal_moves(player, opponent, variant)
    policy = np.zeros(variant.num_actions, np.float32)
    policy[legal] = rng.random(len(legal)) ** 3 + 1e-3
    return policy / policy.sum(), rng.uniform(-1, 1)


@lru_cache(maxsize=1 << 16)
def _as_even(player: bytes, opponent: bytes, variant: Variant) -> tuple[np.ndarray, float]:
    legal = _legal_moves(player, opponent, variant)
    policy = np.zeros(variant.num_actions, np.float32)
    policy[legal] = 1 / len(legal)
    return policy, 0.0


# Positions and searches of them


def positions_of_random_games(variant: Variant, num_games: int, seed: int) -> Iterator[Position]:
    """Gives of each game one position, all in which the side to move must pass, and the last before its end."""
    games = random_games(Position(variant), num_games, seed)
    for moves, length in zip(games.moves, games.lengths, strict=True):
        positions = Game.from_moves(moves[:length].tolist(), variant).positions[:-1]
        yield positions[seed % len(positions)]
        yield from (position for position in positions if position.must_pass)
        yield positions[-1]


def late_positions(variant: Variant, num_games: int, most_empties: int, seed: int) -> list[Position]:
    """Returns of each game the first position with so few empty squares."""
    games = random_games(Position(variant), num_games, seed)
    found = []
    for moves, length in zip(games.moves, games.lengths, strict=True):
        positions = Game.from_moves(moves[:length].tolist(), variant).positions[:-1]
        found += [position for position in positions if position.num_empties <= most_empties][:1]
    return found


def boards_of(positions: Sequence[Position]) -> tuple[np.ndarray, np.ndarray]:
    player = np.array([position.player for position in positions], np.uint64)
    return player, np.array([position.opponent for position in positions], np.uint64)


def search(
    positions: Sequence[Position],
    config: MCTSConfig,
    evaluate: Evaluator,
    rngs: Sequence[np.random.Generator] = (),
) -> Searched:
    return Search(positions[0].variant, evaluate, config).run(*boards_of(positions), rngs)


# Plain trees


@dataclass
class PlainEdge:
    move: int
    prior: np.float32
    visits: int = 0
    total: np.float32 = field(default_factory=np.float32)  # as sums are kept there, so that ties are broken alike
    child: "PlainNode | None" = None
    place: int = 0  # among the edges of its node, in the order in which they were first taken

    @property
    def mean(self) -> float:
        return float(self.total) / self.visits


class PlainNode:
    """A node of a search that proves nothing; `choose` is the rule by which a simulation goes on."""

    def __init__(self, position: Position) -> None:
        self.position = position
        self.edges: list[PlainEdge] = []
        self.value = 0.0

    @property
    def num_visits(self) -> int:
        return sum(edge.visits for edge in self.edges)

    def simulate(self, choose: "Callable[[PlainNode], PlainEdge]") -> np.float32:
        """Returns what a simulation finds for the side to move here."""
        if self.position.is_over:
            return np.float32(self.position.result)
        if not self.edges:
            policy, value = evaluate_by_hash(*boards_of([self.position]), self.position.variant)
            self.edges = [PlainEdge(move, policy[0, move]) for move in self.position.legal_moves]
            self.value = float(value[0])
            return np.float32(value[0])
        return self.take(choose(self), choose)

    def take(self, edge: PlainEdge, choose: "Callable[[PlainNode], PlainEdge]") -> np.float32:
        if edge.child is None:
            edge.place = sum(other.child is not None for other in self.edges)
            edge.child = PlainNode(self.position.play(edge.move))
        value = -edge.child.simulate(choose)
        edge.visits += 1
        edge.total = np.float32(edge.total + value)
        return value


def puct_scores(node: PlainNode, config: MCTSConfig) -> dict[int, float]:
    """Returns Q + c · P · √ΣN / (1 + N) by move: Silver et al. 2018; an unvisited Q after Wu 2019, section 2."""
    explored = sum(float(edge.prior) for edge in node.edges if edge.visits)
    unvisited = node.value - config.first_play_reduction * math.sqrt(explored)
    bonus = config.puct_constant * math.sqrt(max(node.num_visits, 1))
    return {
        edge.move: (edge.mean if edge.visits else unvisited) + bonus * float(edge.prior) / (1 + edge.visits)
        for edge in node.edges
    }


def best_by_puct(node: PlainNode, config: MCTSConfig) -> PlainEdge:
    scores = puct_scores(node, config)
    return max(node.edges, key=lambda edge: scores[edge.move])


def plain_puct(position: Position, config: MCTSConfig) -> PlainNode:
    """Returns the root of a search, with forced playouts as in Wu 2019, section 3.2."""

    def choose(node: PlainNode) -> PlainEdge:
        return best_by_puct(node, config)

    root = PlainNode(position)
    root.simulate(choose)
    for _ in range(config.num_simulations or 0):
        forced = [edge for edge in root.edges if 0 < edge.visits < num_forced(root, edge, config)]
        root.take(min(forced, key=lambda edge: edge.place) if forced else choose(root), choose)
    return root


def num_forced(root: PlainNode, edge: PlainEdge, config: MCTSConfig) -> float:
    return math.sqrt(config.forced_playouts * float(edge.prior) * root.num_visits)


def pruned_visits(root: PlainNode, config: MCTSConfig) -> dict[int, int]:
    """Returns the visits by move less the forced ones, as in Wu 2019, section 3.2."""
    best = max(root.edges, key=lambda edge: (edge.visits, -edge.place))
    least = puct_scores(root, config)[best.move]
    kept = {}
    for edge in root.edges:
        kept[edge.move] = visits = edge.visits
        if edge is best or not visits:
            continue
        bonus = config.puct_constant * math.sqrt(root.num_visits) * float(edge.prior)
        for fewer in range(visits - 1, visits - 1 - int(num_forced(root, edge, config)), -1):
            if fewer < 0 or edge.mean + bonus / (1 + fewer) >= least:
                break
            visits = fewer
        kept[edge.move] = 0 if visits == 1 else visits
    return kept


def improved_policy(node: PlainNode, config: MCTSConfig) -> dict[int, float]:
    """Returns softmax(logits + σ(completed values)) by move: Danihelka et al. 2022, equations 8, 11 and 33."""
    mixed = node.value
    visited = [edge for edge in node.edges if edge.visits]
    if visited:
        known = sum(float(edge.prior) for edge in visited)
        average = sum(float(edge.prior) * edge.mean for edge in visited) / known
        mixed = (node.value + node.num_visits * average) / (1 + node.num_visits)
    scale = value_scale(node, config)
    logits = {edge.move: math.log(edge.prior) + scale * (edge.mean if edge.visits else mixed) for edge in node.edges}
    greatest = max(logits.values())
    weights = {move: math.exp(logit - greatest) for move, logit in logits.items()}
    return {move: weight / sum(weights.values()) for move, weight in weights.items()}


def value_scale(node: PlainNode, config: MCTSConfig) -> float:
    return (config.visit_offset + max(edge.visits for edge in node.edges)) * config.value_scale


def best_by_improved_policy(node: PlainNode, config: MCTSConfig) -> PlainEdge:
    """Returns the edge of equation 14."""
    policy = improved_policy(node, config)
    return max(node.edges, key=lambda edge: policy[edge.move] - edge.visits / (1 + node.num_visits))


def plain_gumbel(position: Position, config: MCTSConfig) -> tuple[PlainNode, int]:
    """Returns the root of a search by sequential halving without noise, and the move that it plays: algorithm 2.

    The better half is told apart while it is visited for the first time, as the authors do in mctx.
    """

    def choose(node: PlainNode) -> PlainEdge:
        return best_by_improved_policy(node, config)

    def key(edge: PlainEdge) -> float:
        return math.log(edge.prior) + (value_scale(root, config) * edge.mean if edge.visits else 0.0)

    root, budget = PlainNode(position), config.num_simulations or 0
    root.simulate(choose)
    considered = sorted(root.edges, key=key, reverse=True)[: min(config.considered_moves, budget)]
    size, num_phases = len(considered), max(1, math.ceil(math.log2(len(considered))))
    left = considered
    while budget:
        for _ in range(max(1, (config.num_simulations or 0) // (num_phases * size))):
            waiting, left = left, []
            for _ in range(min(size, budget)):
                best = max(waiting, key=key)
                waiting = [edge for edge in waiting if edge is not best]
                left.append(best)
                root.take(best, choose)
                budget -= 1
        size = max(min(2, len(considered)), size // 2)
    most = max(edge.visits for edge in root.edges)
    return root, max((edge for edge in root.edges if edge.visits == most), key=key).move
