"""Alpha-beta against plain minimax of the rule book, published endgames, the clock and Ctrl-C."""

import csv
import itertools
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.agent import Decision
from agents.alpha_beta import AlphaBetaAgent, AlphaBetaConfig
from agents.evaluation import DISC, KINDS, evaluate, evaluation_of
from agents.search.midgame import FINISHED
from reversi_env import Position, Variant
from reversi_env.geometry import SIZES
from reversi_env.naming import UnknownNameError
from reversi_env.notation import BLACK, EMPTY, WHITE
from reversi_env.symmetry import NUM_SYMMETRIES, transform_position
from reversi_env.variant import GOALS, SCORINGS, STARTS
from tests import oracle

VARIANTS = [
    Variant(size=size, goal=goal, scoring=scoring, start=start)
    for size, goal, scoring, start in itertools.product(SIZES, GOALS, SCORINGS, STARTS)
]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def played_position(variant: Variant, num_plies: int, seed: int) -> Position:
    """Returns a position that goes on, so many random plies from the start, or fewer where the game ends before."""
    generator = np.random.default_rng(seed)
    position = Position(variant)
    for _ in range(num_plies):
        after = position.play(int(generator.choice(position.legal_moves)))
        if after.is_over:
            break
        position = after
    return position


def late_position(variant: Variant, num_empties: int, seed: int) -> Position:
    """Returns a position that goes on, with any discs whatever and so many empty squares."""
    generator = np.random.default_rng(seed)
    while True:
        cells = [EMPTY] * num_empties + list(generator.choice([BLACK, WHITE], variant.num_squares - num_empties))
        generator.shuffle(cells)
        position = Position.from_text("".join(cells) + str(generator.choice([BLACK, WHITE])), variant)
        if not position.is_over:
            return position


def decide(position: Position, **settings: int | str | float) -> Decision:
    return AlphaBetaAgent(AlphaBetaConfig(**settings)).select(position, rng())


def minimax(position: Position, depth: int, kind: str) -> float:
    """Returns the rule book's value; an evaluation is a fraction of a disc, and so less than any score but a draw."""
    variant = position.variant

    def leaf(board: oracle.Board, side: str) -> float:
        at = Position.from_text("".join(board) + side, variant)
        return evaluate(at.player, at.opponent, evaluation_of(kind, variant), variant.rules) / FINISHED

    return oracle.minimax(
        list(position.board), position.side, depth, leaf, variant.goal, variant.scoring, variant.start == "free"
    )


def negamax(position: Position) -> int:
    variant = position.variant
    return oracle.negamax(list(position.board), position.side, variant.goal, variant.scoring, variant.start == "free")


def after(position: Position, moves: tuple[int, ...]) -> Position:
    for move in moves:
        position = position.play(move)
    return position


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_depth_agrees_with_minimax(variant: Variant) -> None:
    depth = {4: 4, 6: 3, 8: 2, 10: 2}[variant.size]
    for seed, num_plies in enumerate([0, 1, 3, 5, 7, 9, variant.num_squares // 2, variant.num_squares - 8]):
        position = played_position(variant, num_plies, seed)
        kind = sorted(KINDS)[seed % len(KINDS)]
        decision = decide(position, depth=depth, exact=0, evaluation=kind)
        expected = minimax(position, depth, kind)
        scale = 1 if abs(expected) >= 1 else FINISHED / DISC
        assert decision.evaluation == pytest.approx(expected * scale)
        assert -minimax(position.play(decision.move), depth - 1, kind) == expected


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_depth_agrees_with_minimax_near_the_end(variant: Variant) -> None:
    for seed in range(3):
        position = late_position(variant, 4 + seed, seed)
        depth = 2 + seed
        expected = minimax(position, depth, "mobility")
        scale = 1 if abs(expected) >= 1 else FINISHED / DISC
        assert decide(position, depth=depth, exact=0).evaluation == pytest.approx(expected * scale)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_exact_agrees_with_the_rule_book(variant: Variant) -> None:
    for seed in range(6):
        position = late_position(variant, 1 + seed % 7, seed)
        decision = decide(position)
        score = negamax(position)
        assert decision.is_exact
        assert decision.evaluation == score
        assert decision.value == np.sign(score)
        end = after(position, decision.principal_line)
        assert end.is_over
        assert (end.score if end.is_black_to_move == position.is_black_to_move else -end.score) == score


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("goal", GOALS)
def test_search_with_a_table_agrees_with_the_rule_book_nine_squares_before_the_end(goal: str, scoring: str) -> None:
    variant = Variant(size=4, goal=goal, scoring=scoring)
    for seed in range(4):
        position = played_position(variant, 3, seed)
        assert decide(position, exact=12).evaluation == negamax(position)


def endgames(data: Callable[[str], Path]) -> list[dict[str, str]]:
    with data("ffo.tsv").open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def assert_solved(problem: dict[str, str]) -> None:
    position = Position.from_text(problem["board64"] + problem["side"], Variant(scoring="tournament"))
    decision = decide(position, exact=position.num_empties)
    assert decision.is_exact
    assert decision.evaluation == int(problem["score"])
    assert position.move_name(decision.move) in problem["best_moves"].split()


def test_published_endgames_of_up_to_15_empties_are_solved(data: Callable[[str], Path]) -> None:
    problems = [problem for problem in endgames(data) if int(problem["empties"]) <= 15]
    assert len(problems) > 8
    for problem in problems:
        assert_solved(problem)


@pytest.mark.slow
def test_published_endgames_of_16_to_20_empties_are_solved(data: Callable[[str], Path]) -> None:
    for problem in endgames(data):
        if 16 <= int(problem["empties"]) <= 20:
            assert_solved(problem)


@pytest.mark.parametrize(("scoring", "score"), [("board", -8), ("tournament", -10)])
def test_4x4_is_lost_for_black(scoring: str, score: int) -> None:
    assert decide(Position(Variant(size=4, scoring=scoring)), exact=12).evaluation == score


def test_symmetries_leave_the_evaluation_unchanged() -> None:
    position = played_position(Variant(), 20, seed=5)
    values = {decide(transform_position(position, symmetry), depth=4).evaluation for symmetry in range(NUM_SYMMETRIES)}
    assert len(values) == 1


def test_what_was_searched_before_does_not_matter() -> None:
    position = played_position(Variant(), 24, seed=1)
    fresh = decide(position, depth=5)
    used = AlphaBetaAgent(AlphaBetaConfig(depth=5, table_entries=1 << 10))
    for seed in range(8):
        used.select(played_position(Variant(), 24 + seed, seed), rng())
    small = AlphaBetaAgent(AlphaBetaConfig(depth=5, table_entries=1 << 10))
    assert used.select(position, np.random.default_rng(9)) == small.select(position, rng())
    assert small.select(position, rng()).evaluation == fresh.evaluation


def test_a_forced_pass_is_played_and_valued() -> None:
    position = Position.from_text("XXO-" + "----" * 3 + "O", Variant(size=4))  # only black can go on, with d1
    decision = decide(position)
    assert decision.move == position.variant.pass_move
    assert decision.principal_line == (16, 3)
    assert decision.evaluation == -4


def test_a_finished_game_is_refused() -> None:
    with pytest.raises(ValueError, match="the game is over"):
        decide(Position.from_text("X" * 16 + "O", Variant(size=4)))


def test_a_proven_win_counts_more_than_any_estimate() -> None:
    position = late_position(Variant(size=6), 8, seed=3)
    shallow = decide(position, depth=16, exact=0)
    assert shallow.evaluation == negamax(position)
    assert not shallow.is_exact
    assert shallow.value == np.sign(shallow.evaluation)


def test_time_limit_ends_a_search_that_has_no_end() -> None:
    position = played_position(Variant(), 12, seed=0)
    decide(position, depth=1)  # compiles
    begun = time.perf_counter()
    decision = decide(position, time_limit_s=0.2)
    assert 0.15 < time.perf_counter() - begun < 5
    assert decision.move in position.legal_moves
    assert len(decision.principal_line) > 4  # deeper than without a limit


def test_shortest_time_limit_still_brings_a_legal_move() -> None:
    position = played_position(Variant(), 12, seed=0)
    assert decide(position, time_limit_s=1e-9).move in position.legal_moves


def test_time_that_is_not_needed_is_left() -> None:
    position = played_position(Variant(size=6), 20, seed=1)
    decision = decide(position, time_limit_s=60, exact=1)
    assert decision.is_exact
    assert decision.evaluation == decide(position, exact=12).evaluation


def test_depth_holds_within_a_time_limit() -> None:
    position = played_position(Variant(), 12, seed=0)
    assert decide(position, depth=2, time_limit_s=60) == decide(position, depth=2)


def test_a_search_tells_of_every_depth_and_can_be_stopped() -> None:
    position = played_position(Variant(), 12, seed=0)
    agent = AlphaBetaAgent(AlphaBetaConfig(time_limit_s=600))
    search = agent.begin(position)
    lengths = []
    for decision in search:
        lengths.append(len(decision.principal_line))
        assert decision.move in position.legal_moves
        if len(lengths) == 5:
            threading.Timer(0.2, search.stop).start()
    assert lengths == list(range(1, len(lengths) + 1))
    assert len(lengths) >= 5


@pytest.mark.parametrize(("limits", "depth"), [({"time_limit_s": 600}, 1), ({"exact": 60}, 2)], ids=str)
def test_a_search_that_is_stopped_before_it_begins_gives_its_first_decision(limits: dict[str, Any], depth: int) -> None:
    search = AlphaBetaAgent(AlphaBetaConfig(**limits)).begin(Position())
    search.stop()
    (decision,) = search
    assert decision.move in Position().legal_moves
    assert decision.depth == depth


def test_a_search_that_is_over_stops_no_other() -> None:
    agent = AlphaBetaAgent(AlphaBetaConfig(depth=5))
    first = agent.begin(Position())
    whole = list(first)
    second = iter(agent.begin(Position()))  # in the memory of the first
    told = [next(second)]
    first.stop()
    assert [*told, *second] == whole
    assert len(whole) == 3


def test_limit_of_nodes_gives_the_same_at_every_call() -> None:
    position = played_position(Variant(), 12, seed=0)
    decision = decide(position, nodes=20_000)
    assert decision == decide(position, nodes=20_000)
    assert len(decision.principal_line) > 3
    assert decision.num_nodes < 20_200
    assert decide(position, nodes=1).move in position.legal_moves


def test_time_limit_is_kept() -> None:
    position = played_position(Variant(), 40, seed=0)  # 20 empty squares, so the solver has a try
    agent = AlphaBetaAgent(AlphaBetaConfig(time_limit_s=0.3))
    agent.select(position, rng())  # compiles
    used, begun = time.process_time(), time.perf_counter()
    agent.select(position, rng())
    used, elapsed = time.process_time() - used, time.perf_counter() - begun
    assert min(used, elapsed) < 0.35  # a busy machine takes more of the clock, and no more of the processor


def test_moves_of_a_game_share_its_time() -> None:
    config = AlphaBetaConfig(game_time_s=60)
    for start in (60, 59):
        moves = [position_with(empties) for empties in range(start, 0, -2)]
        assert 54 < sum(config.time_for(position) for position in moves) <= 60  # some is left for moves in a row
    assert config.time_for(position_with(40)) > config.time_for(position_with(10)) > 0
    assert AlphaBetaConfig(game_time_s=600, time_limit_s=1).time_for(position_with(40)) == 1


def position_with(num_empties: int) -> Position:
    return late_position(Variant(), num_empties, seed=1)


def test_selectivity_looks_at_less() -> None:
    position = played_position(Variant(), 20, seed=0)
    sure, bold = decide(position, depth=8), decide(position, depth=8, selectivity=5)
    assert bold.num_nodes < sure.num_nodes


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_interrupt_ends_a_long_search_and_the_agent_goes_on() -> None:
    position = played_position(Variant(), 12, seed=0)
    agent = AlphaBetaAgent(AlphaBetaConfig(depth=40))
    decide(position, depth=1)
    main_thread = threading.get_ident()
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main_thread, signal.SIGINT))
    begun = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        agent.select(position, rng())
    assert time.perf_counter() - begun < 5
    agent.config.depth = 3
    assert agent.select(position, rng()) == decide(position, depth=3)


def test_threads_search_side_by_side() -> None:
    agent = AlphaBetaAgent(AlphaBetaConfig(depth=5))
    positions = [played_position(Variant(), 20, seed) for seed in range(8)]
    expected = [agent.select(position, rng()) for position in positions]
    found: list[Decision | None] = [None] * len(positions)

    def work(index: int) -> None:
        found[index] = agent.select(positions[index], rng())

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(positions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"depth": 0}, "depth must be at least 1 ply, got 0"),
        ({"time_limit_s": 0.0}, "time_limit_s must be more than 0 seconds, got 0.0"),
        ({"time_limit_s": float("nan")}, "time_limit_s must be more than 0 seconds, got nan"),
        ({"time_limit_s": float("inf")}, "time_limit_s must be at most .* seconds, got inf"),
        ({"time_limit_s": 1e300}, "time_limit_s must be at most .* seconds, got 1e\\+300"),
        ({"game_time_s": 0.0}, "game_time_s must be more than 0 seconds, got 0.0"),
        ({"nodes": 0}, "nodes must be at least 1, got 0"),
        ({"selectivity": 6}, "selectivity must be 0 .* to 5, got 6"),
        ({"exact": -1}, "exact must be 0"),
        ({"table_entries": 1}, "table_entries must be at least 2, got 1"),
    ],
)
def test_impossible_settings_get_a_sentence(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        AlphaBetaConfig(**settings)


def test_unknown_evaluation_gets_the_near_miss() -> None:
    with pytest.raises(UnknownNameError, match="did you mean mobility"):
        AlphaBetaConfig(evaluation="mobilities")
