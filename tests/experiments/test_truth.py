"""Solved positions and the moves that players make in them: against the oracle, enumeration and hand-made scores."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise, product

import numpy as np
import pytest

import agents
from agents.agent import Agent, Decision
from agents.mcts import MCTSAgent, MCTSConfig
from agents.search.solver import Solver
from experiments import cli
from experiments.truth.games import mixed_games, own_and_random_games
from experiments.truth.report import TruthReport, measure_truth
from experiments.truth.solved import EMPTIES, Solved, held_out, pick, set_text, solve_all
from reversi_env import Position, Variant
from reversi_env.geometry import SIZES
from reversi_env.variant import GOALS, SCORINGS
from tests import oracle

VARIANTS = [Variant(size, goal=goal, scoring=scoring) for size, goal, scoring in product(SIZES, GOALS, SCORINGS)]
SMALL = Variant.named("othello-6x6")

Choose = Callable[[Solved, np.random.Generator], int]


class Told(Agent):
    """Plays as it is told for each of some solved positions, and tells what they are worth."""

    name = "told"

    def __init__(self, positions: Sequence[Solved], choose: Choose) -> None:
        self._solved = {solved.position: solved for solved in positions}
        self._choose = choose

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        solved = self._solved[position]
        return Decision(self._choose(solved, rng), value=float(np.sign(solved.best)))


def best_move(solved: Solved, rng: np.random.Generator) -> int:
    return max(solved.scores, key=solved.scores.__getitem__)


def worst_move(solved: Solved, rng: np.random.Generator) -> int:
    return min(solved.scores, key=solved.scores.__getitem__)


def any_move(solved: Solved, rng: np.random.Generator) -> int:
    return int(rng.choice(list(solved.scores)))


def brute_force(position: Position) -> dict[int, int]:
    """Returns the score of each legal square if both play perfectly afterwards."""
    variant, board, side = position.variant, list(position.board), position.side
    return {
        square: -oracle.negamax(oracle.play(board, side, square), oracle.other(side), variant.goal, variant.scoring)
        for square in oracle.legal_squares(board, side)
    }


def forms(position: Position) -> set[str]:
    """Returns the board in all its symmetries, the side to move as X."""
    board = list(position.board)
    if position.side == "O":
        board = [{"X": "O", "O": "X"}.get(cell, cell) for cell in board]
    return {"".join(oracle.symmetry(board, k)) for k in range(8)}


# The sets


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_held_out_scores_are_what_brute_force_finds_with_few_empty_squares(variant: Variant) -> None:
    few = [solved for solved in held_out(variant) if solved.position.num_empties <= 4]
    assert len(few) >= 20
    for solved in few:
        assert dict(solved.scores) == brute_force(solved.position)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_held_out_scores_are_what_the_solver_finds_without_a_table(variant: Variant) -> None:
    solver = Solver(variant, table_entries=2)
    for solved in held_out(variant)[::7]:
        if solved.position.num_empties <= 9:
            assert solver.solve(solved.position).score == solved.best


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_held_out_positions_leave_a_choice_and_none_is_like_another(variant: Variant) -> None:
    positions = held_out(variant)
    seen: set[str] = set()
    for solved in positions:
        board, side = list(solved.position.board), solved.position.side
        assert solved.position.variant == variant
        assert list(solved.scores) == oracle.legal_squares(board, side)
        assert len(solved.scores) >= 2
        mine = forms(solved.position)
        assert not seen & mine
        seen |= mine
    counts = [solved.position.num_empties for solved in positions]
    assert counts == sorted(counts)
    assert set(counts) <= set(EMPTIES[variant.size])
    if variant.size > 4:  # on which there are few
        assert {counts.count(number) for number in EMPTIES[variant.size]} == {counts.count(counts[0])}


@pytest.mark.parametrize("name", ["othello-6x6", "anti-reversi"])
def test_held_out_positions_are_won_lost_and_decisive_in_good_parts(name: str) -> None:
    positions = held_out(Variant.named(name))
    shares = [np.mean([solved.value == value for solved in positions]) for value in (1, -1)]
    assert min(shares) > 0.25
    assert np.mean([solved.is_decisive for solved in positions]) > 0.25


def test_a_start_given_otherwise_has_the_positions_of_its_size_and_goal() -> None:
    placed = held_out(Variant.named("reversi-1883"))
    assert [solved.position.text for solved in placed] == [solved.position.text for solved in held_out(Variant())]
    assert [solved.scores for solved in placed] == [solved.scores for solved in held_out(Variant())]


def test_a_set_is_read_as_it_was_written(tmp_path, monkeypatch) -> None:
    wanted = [3, 4, 5]
    by_scoring = {
        scoring: solve_all(list(pick(mixed_games(Variant(6, scoring=scoring), 1), wanted))) for scoring in SCORINGS
    }
    monkeypatch.setattr("experiments.truth.solved.SETS", tmp_path)
    (tmp_path / "6x6.tsv").write_text(set_text(by_scoring, "made\nfor a test"), encoding="utf-8")
    for scoring in SCORINGS:
        assert held_out(Variant(6, scoring=scoring)) == by_scoring[scoring]


def test_the_same_seed_gives_the_same_positions_and_another_seed_others() -> None:
    first, again, other = (list(pick(mixed_games(SMALL, seed), [6, 10, 6])) for seed in (1, 1, 2))
    assert first == again != other


def test_one_position_of_each_game_is_picked_with_the_empty_squares_wanted() -> None:
    wanted = [5, 9, 13, 9]
    games = [positions for positions, _ in zip(mixed_games(SMALL, 3), range(40), strict=False)]
    picked = list(pick(games, wanted))
    assert [position.num_empties for position in picked] == wanted
    of_game = [next(number for number, game in enumerate(games) if position in game) for position in picked]
    assert len(set(of_game)) == len(wanted)


def test_what_no_game_has_is_left_out() -> None:
    game = next(iter(mixed_games(SMALL, 1)))
    assert list(pick([game] * 200, [60])) == []
    assert len(list(pick([game] * 200, [8, 8]))) <= 1  # there is one, and no other than it


def test_own_games_come_by_turns_with_random_ones() -> None:
    greedy = agents.make("greedy")
    games = list(own_and_random_games(greedy, SMALL, 4, seed=5))
    assert len(games) == 8
    for number, positions in enumerate(games):
        assert positions[0] == Position(SMALL)
        assert positions[-1].is_over
        if number % 2 == 0:  # after the opening each move flips as many discs as any
            for before, after in list(pairwise(positions))[6:]:
                most = max(len(oracle.flips(list(before.board), before.side, move)) for move in range(36))
                flipped = after.disc_differential + before.disc_differential
                assert before.must_pass or -flipped == 2 * most + 1


# What is measured


def by_hand(text: str, scores: dict[str, int]) -> Solved:
    position = Position.from_text(text, Variant.named("othello-4x4"))
    return Solved(position, {position.parse_move(name): score for name, score in scores.items()})


# Three positions of 4×4 with scores made up: won, with a move that draws and one that loses; lost anyhow; won anyhow.
HAND_MADE = [
    by_hand("-----OX--XO----- X", {"a2": 4, "b1": 0, "d3": -2, "c4": 4}),
    by_hand("-X---XX--XO----- O", {"a1": -6, "c1": -2, "a3": -8}),
    by_hand("-----OX--XO----- O", {"a3": 2, "b4": 8, "c1": 2, "d2": 2}),
]


def measured(choose: Choose, positions: Sequence[Solved] = HAND_MADE) -> TruthReport:
    return measure_truth(Told(positions, choose), positions)


def test_a_perfect_player_keeps_everything() -> None:
    numbers = measured(best_move).metrics()
    assert (numbers["truth/search/kept"], numbers["truth/search/discs_lost"]) == (1, 0)
    assert numbers["truth/search/kept_high"] == 1
    assert numbers["truth/search/kept_low"] == pytest.approx(3 / (3 + 1.959964**2))  # Wilson's, for 3 of 3
    assert numbers["truth/search/value_error"] == 0


def test_what_the_worst_moves_cost_is_counted() -> None:
    numbers = measured(worst_move).metrics()
    assert numbers["truth/search/kept"] == pytest.approx(2 / 3)
    assert numbers["truth/search/discs_lost"] == pytest.approx((6 + 6 + 6) / 3)
    assert (numbers["truth/search/kept_decisive"], numbers["truth/search/discs_lost_decisive"]) == (0, 6)


@pytest.mark.parametrize("num_discs", [0, 2, 4])
def test_a_player_that_gives_so_many_discs_away_is_said_to(num_discs: int) -> None:
    positions = [solved for solved in held_out(SMALL) if solved.best - num_discs in solved.scores.values()]
    assert len(positions) > 40

    def choose(solved: Solved, rng: np.random.Generator) -> int:
        return next(move for move, score in solved.scores.items() if score == solved.best - num_discs)

    assert measured(choose, positions).metrics()["truth/search/discs_lost"] == num_discs


@pytest.mark.parametrize("name", ["othello-6x6", "anti-reversi"])
def test_random_moves_keep_as_much_as_counting_moves_says(name: str) -> None:
    positions = held_out(Variant.named(name))
    shares = [
        np.mean([np.sign(score) == np.sign(max(solved.scores.values())) for score in solved.scores.values()])
        for solved in positions
    ]
    lost = [max(solved.scores.values()) - np.mean([*solved.scores.values()]) for solved in positions]
    reports = [measure_truth(agents.make("random"), positions, seed).metrics() for seed in range(10)]
    kept = np.mean([numbers["truth/search/kept"] for numbers in reports])
    spread = np.sqrt(np.mean([share * (1 - share) for share in shares]) / (10 * len(positions)))
    assert kept == pytest.approx(np.mean(shares), abs=4 * spread)
    assert np.mean([numbers["truth/search/discs_lost"] for numbers in reports]) == pytest.approx(np.mean(lost), rel=0.1)


def test_groups_are_counted_apart() -> None:
    positions = held_out(SMALL)
    report = measured(worst_move, positions)
    names, masks = zip(*((group.name, group.mask) for group in report.groups), strict=True)
    assert names == (
        "all",
        "decisive",
        "19 to 22 empty",
        "15 to 18 empty",
        "11 to 14 empty",
        "7 to 10 empty",
        "3 to 6 empty",
    )
    assert np.array_equal(sum(masks[2:]), np.ones(len(positions)))
    numbers = report.metrics()
    decisive = [solved for solved in positions if len({np.sign(score) for score in solved.scores.values()}) > 1]
    assert numbers["truth/search/kept_decisive"] == 0
    assert numbers["truth/search/kept"] == pytest.approx(1 - len(decisive) / len(positions))
    late = [solved for solved in positions if solved.position.num_empties <= 6]
    assert numbers["truth/search/discs_lost_03_to_06"] == pytest.approx(
        np.mean([max(solved.scores.values()) - min(solved.scores.values()) for solved in late])
    )


def test_a_network_is_measured_alone_and_with_its_search() -> None:
    positions = [solved for solved in held_out(SMALL) if solved.is_decisive and solved.position.num_empties <= 6]

    def evaluate(player: np.ndarray, opponent: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        """Sees nothing: the same policy and value everywhere, but the worst moves of `positions` first."""
        policy = np.zeros((len(player), variant.num_actions), np.float32)
        for row, boards in enumerate(zip(player, opponent, strict=True)):
            position = Position.from_bitboards(variant, *map(tuple, boards))
            policy[row, list(position.legal_moves)] = 1 / len(position.legal_moves)
            if position in worst:
                policy[row] = 0.9 * policy[row] + 0.1 * np.eye(variant.num_actions)[worst[position]]
        return policy, np.zeros(len(player), np.float32)

    worst = {
        Position.from_bitboards(SMALL, solved.position.player, solved.position.opponent): worst_move(
            solved, np.random.default_rng(0)
        )
        for solved in positions
    }
    agent = MCTSAgent(evaluate, MCTSConfig(num_simulations=600), "blind", SMALL)
    numbers = measure_truth(agent, positions).metrics()
    assert numbers["truth/network/kept"] == 0
    assert numbers["truth/network/value_error"] == np.mean([max(solved.scores.values()) > 0 for solved in positions])
    assert numbers["truth/search/kept"] > 0.9  # since it sees the ends of games
    assert numbers["truth/search/discs_lost"] < numbers["truth/network/discs_lost"]


# The command


def evaluated(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["evaluate", *line.split()]) == 0
    return capsys.readouterr().out


def test_evaluate_tells_the_truth_without_games(capsys: pytest.CaptureFixture[str]) -> None:
    out = evaluated("alphabeta:depth=1,exact=12 --truth --variant othello-4x4", capsys)
    assert "opponent" not in out
    (row,) = [line for line in out.splitlines() if line.startswith("all")]
    assert row.split()[2] == "100.0"
    assert row.split()[-1] == "0.00"


def test_evaluate_tells_it_of_a_players_own_games(capsys: pytest.CaptureFixture[str]) -> None:
    line = "greedy random --games 2 --truth --own-positions 30 --variant othello-4x4 --json"
    found = json.loads(evaluated(line, capsys))
    assert [row["opponent"] for row in found["rows"]] == ["random"]
    (everything, *_) = found["truth"]["search"]
    assert 10 <= everything["num_positions"] <= 30  # of so small a board there are few
    assert 0 < everything["kept"]["low"] <= everything["kept"]["value"] < 1
    assert json.loads(evaluated(line, capsys))["truth"] == found["truth"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("greedy --own-positions 30", "ask for --truth too"),
        ("greedy --truth --own-positions 0", "own_positions is 1 or more, got 0"),
        ("greedy --truth --seed=-1", "the seed is 0 or more, got -1"),
    ],
)
def test_positions_that_cannot_be_are_refused(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", *line.split()]) == cli.WRONG_USAGE
    assert sentence in capsys.readouterr().err
