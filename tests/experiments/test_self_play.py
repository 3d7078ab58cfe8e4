"""Games against oneself, replayed by the rule book, solved by brute force, and counted."""

import math
from dataclasses import dataclass, fields

import numpy as np
import pytest
from scipy import stats

from agents.mcts import MCTSConfig
from experiments.training.replay import Samples
from experiments.training.search_games import OPENING_PLIES
from experiments.training.self_play import Playing, SelfPlay, SelfPlayConfig, play_games
from reversi_env import Position, Variant
from reversi_env.geometry import bit_indices
from tests import oracle
from tests.agents.plain_trees import VARIANTS, evaluate_as_even, evaluate_by_hash
from tests.agents.tree_reading import check_trees

GAMMA = 0x9E3779B97F4A7C15  # what a state of `reversi_env.random_bits` grows by
QUICK = {"full_share": 0.4, "quick_simulations": 3}


def mover_board(player, opponent, size):
    """A sample's board, the mover's discs as X."""
    mover, other = (sum(int(word) << 64 * place for place, word in enumerate(words)) for words in (player, opponent))
    return ["X" if mover >> bit & 1 else "O" if other >> bit & 1 else "-" for bit in bit_indices(size)]


def boards_of(samples, size):
    return [mover_board(*boards, size) for boards in zip(samples.player, samples.opponent, strict=True)]


def as_mover_sees(board, side):
    return board if side == "X" else [{"X": "O", "O": "X", "-": "-"}[cell] for cell in board]


def after_move(board, side, move, free):
    """The boards after a move and all that must follow it, each with the side that then moves and the passes so far."""
    path = [(oracle.play(board, side, move, free), oracle.other(side), 0)]
    while not oracle.is_over(path[-1][0], free):
        board, side, num_passes = path[-1]
        legal = oracle.legal_squares(board, side, free)
        if len(legal) > 1:
            break
        if legal:
            path.append((oracle.play(board, side, legal[0], free), oracle.other(side), num_passes))
        else:
            path.append((board, oracle.other(side), num_passes + 1))
    return path


@dataclass
class Replayed:
    """A game from its samples: the board after each ply, the samples' rows, sides and plies, and the passes."""

    boards: list[list[str]]
    rows: list[int]
    sides: list[str]
    plies: list[int]
    num_passes: int


def replayed(played: SelfPlay, variant: Variant) -> list[Replayed]:
    """Returns the games, asserting that the rules lead from each sample to the next one and to the end."""
    samples, free = played.samples, variant.start == "free"
    shown = boards_of(samples, variant.size)
    num_discs = [len(board) - board.count("-") for board in shown]
    starts = [row for row in range(len(samples)) if row == 0 or num_discs[row] < num_discs[row - 1]]
    games = []
    for first, end in zip(starts, [*starts[1:], len(samples)], strict=True):
        board, side = oracle.start_board(variant.size, variant.start), "X"
        game = Replayed([], list(range(first, end)), [], [], 0)
        for row in game.rows:
            assert shown[row] == as_mover_sees(board, side)
            game.sides.append(side)
            game.plies.append(len(game.boards))
            paths = [after_move(board, side, move, free) for move in oracle.legal_squares(board, side, free)]
            if row + 1 < end:
                path = next(path for path in paths if as_mover_sees(*path[-1][:2]) == shown[row + 1])
            else:
                path = next(path for path in paths if path[-1][0] == end_board(samples, row, side, variant.size))
            game.boards += [step[0] for step in path]
            board, side, num_passes = path[-1]
            game.num_passes += num_passes
        assert oracle.is_over(board, free)
        games.append(game)
    return games


def end_board(samples, row, side, size):
    final = mover_board(samples.final_player[row], samples.final_opponent[row], size)
    return as_mover_sees(final, side)


def arrays_of(played: SelfPlay) -> dict[str, np.ndarray]:
    """Everything but times."""
    sums = {field.name: np.array(getattr(played, field.name)) for field in fields(SelfPlay) if field.name != "samples"}
    return played.samples.arrays() | {name: value for name, value in sums.items() if not name.endswith("_s")}


def assert_alike(one: SelfPlay, other: SelfPlay) -> None:
    for name, array in arrays_of(one).items():
        np.testing.assert_allclose(arrays_of(other)[name], array, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_samples_are_positions_of_games_with_results_from_the_movers_side(variant):
    search = MCTSConfig(num_simulations=6, temperature_moves=100)
    played = play_games(variant, evaluate_by_hash, search, SelfPlayConfig(exact_empties=0), range(3), seed=(7,))
    samples = played.samples
    samples.check(variant)
    assert len(samples) == played.num_searched
    assert (samples.policy_weight == 1).all()
    games = replayed(played, variant)
    assert len(games) == played.num_games == 3
    assert played.num_plies == sum(len(game.boards) for game in games)
    assert played.num_passes == sum(game.num_passes for game in games)
    free, black_scores = variant.start == "free", []
    for game, opening in zip(games, played.openings, strict=True):
        end = game.boards[-1]
        black_scores.append(oracle.score(end, "X", variant.goal, variant.scoring))
        assert mover_board(*opening, variant.size) == game.boards[:OPENING_PLIES][-1]
        for row, side in zip(game.rows, game.sides, strict=True):
            board = mover_board(samples.player[row], samples.opponent[row], variant.size)
            legal = oracle.legal_squares(board, "X", free)
            assert float(samples.policy[row].sum()) == pytest.approx(1, abs=0.01)
            assert set(np.flatnonzero(samples.policy[row])) <= set(legal)
            assert samples.result[row] == oracle.result(end, side, variant.goal, variant.scoring)
            assert samples.score[row] == oracle.score(end, side, variant.goal, variant.scoring)
            assert end_board(samples, row, side, variant.size) == end
    assert played.black_score == sum(black_scores)
    assert played.black_result == sum(np.sign(black_scores))


@pytest.mark.parametrize(
    ("variant", "exact_empties"),
    [
        (Variant(4), 8),
        (Variant(4, "parallel", "fewest", "tournament"), 7),
        (Variant(4, "free"), 7),
        (Variant(6, "diagonal", "most", "tournament"), 5),
        (Variant(6, "parallel", "fewest"), 5),
    ],
    ids=str,
)
def test_the_end_is_played_perfectly_and_teaches_the_best_moves(variant, exact_empties):
    search = MCTSConfig(num_simulations=2, noise_fraction=1.0, temperature_moves=60)
    config = SelfPlayConfig(exact_empties=exact_empties, max_random_plies=2)
    played = play_games(variant, evaluate_as_even, search, config, range(6), seed=(1,))
    samples, free = played.samples, variant.start == "free"
    samples.check(variant)

    def score_of(board, side):
        return oracle.negamax(board, side, variant.goal, variant.scoring, free)

    num_exact = 0
    for row, board in enumerate(boards_of(samples, variant.size)):
        if board.count("-") > exact_empties:
            continue
        num_exact += 1
        assert samples.score[row] == score_of(board, "X")
        assert samples.value[row] == samples.result[row] == np.sign(samples.score[row])
        assert samples.policy_weight[row] == 1
        (move,) = np.flatnonzero(samples.policy[row])
        assert samples.policy[row, move] == 1
        assert -score_of(oracle.play(board, "X", int(move), free), "O") == samples.score[row]
    assert num_exact > 10
    assert played.num_searched == len(samples) - num_exact


def test_a_game_that_is_solved_from_its_start_needs_no_search():
    played = play_games(
        Variant(4), evaluate_as_even, MCTSConfig(), SelfPlayConfig(exact_empties=12), range(3), seed=(1,)
    )
    assert played.num_evaluated == played.num_searched == played.num_simulations == 0
    assert played.black_score == 3 * -8  # as 4×4 is solved, and no square stays empty
    assert (played.samples.score == np.where(played.samples.score < 0, -8, 8)).all()


SEARCHES = {
    "puct": MCTSConfig(num_simulations=9, noise_fraction=0.25, temperature_moves=20, forced_playouts=2.0),
    "gumbel": MCTSConfig(root="gumbel", num_simulations=9, gumbel_scale=1.0),
    "batches of leaves": MCTSConfig(num_simulations=12, noise_fraction=0.25, leaves_per_call=3, exact_empties=3),
}


@pytest.mark.parametrize("reuses_tree", [False, True])
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_games_do_not_depend_on_which_others_are_played_beside_them(search, reuses_tree):
    if reuses_tree and search.root == "gumbel":
        pytest.skip("a Gumbel root begins anew")
    for name in ("othello-4x4", "othello-6x6"):
        variant = Variant.named(name)

        def play(numbers, games_at_once, seed=(3, 1), variant=variant):
            config = SelfPlayConfig(games_at_once, 4, 6, surprise_share=0.5, reuses_tree=reuses_tree, **QUICK)
            return play_games(variant, evaluate_by_hash, search, config, numbers, seed)

        together = play(range(7), 64)
        assert_alike(together, play(range(7), 64))
        for games_at_once in (1, 3):
            assert_alike(together, play(range(7), games_at_once))
        assert_alike(together, SelfPlay.joined([play(range(0, 3), 2), play(range(3, 7), 64)]))
        backwards = [play([number], 1) for number in (6, 5, 4, 3, 2, 1, 0)]
        assert_alike(together, SelfPlay.joined(backwards[::-1]))
        other = play(range(7), 64, seed=(3, 2))
        assert len(other.samples) != len(together.samples) or (other.samples.player != together.samples.player).any()


def check_games(variant: Variant, search: MCTSConfig, config: SelfPlayConfig, num_games: int) -> None:
    """Plays games, asserting of every tree after every step what `check_trees` does."""
    actor = Playing(variant, evaluate_by_hash, search, config, range(num_games), (2,))
    ended = {}
    while actor.is_playing:
        actor.search.step()
        check_trees(actor.search, evaluate_by_hash)
        ended |= actor.step()
    assert sorted(ended) == list(range(num_games))
    assert not actor.search.tree.num_nodes.any()
    SelfPlay.joined(list(ended.values())).samples.check(variant)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_trees_of_whole_games_agree_with_themselves_after_every_step(search):
    for name in ("othello-4x4", "reversi-1883"):
        config = SelfPlayConfig(2, 4, 3, reuses_tree=search.root == "puct", **QUICK)
        check_games(Variant.named(name), search, config, {"othello-4x4": 5}.get(name, 1))


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_trees_of_whole_games_of_every_variant_do_so_too(search):
    for variant in VARIANTS:
        check_games(variant, search, SelfPlayConfig(3, 4, 3, reuses_tree=search.root == "puct", **QUICK), 5)


def test_what_was_found_below_a_move_is_kept_and_saves_evaluations():
    search = MCTSConfig(num_simulations=40, noise_fraction=0.25, proves=False)
    for name in ("othello-6x6", "anti-reversi"):
        variant = Variant.named(name)
        anew, kept = (
            play_games(variant, evaluate_by_hash, search, SelfPlayConfig(8, 0, reuses_tree=reuses_tree), range(2), (5,))
            for reuses_tree in (False, True)
        )
        replayed(kept, variant)
        assert anew.num_simulations == 40 * anew.num_searched
        assert kept.num_simulations < 35 * kept.num_searched
        # A simulation asks the evaluator once at the most, and a new root once more.
        for played in (anew, kept):
            assert played.num_evaluated <= played.num_simulations + played.num_searched


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_quick_searches_have_their_share_are_quick_and_teach_no_policy(root):
    search = MCTSConfig(root=root, num_simulations=12, proves=False)
    config = SelfPlayConfig(exact_empties=8, full_share=0.3, quick_simulations=4)
    played = play_games(Variant.named("othello-6x6"), evaluate_by_hash, search, config, range(60), (9,))
    samples = played.samples
    is_searched = np.array([board.count("-") > 8 for board in boards_of(samples, 6)])
    is_full = samples.policy_weight[is_searched] == 1
    assert (samples.policy_weight[is_searched][~is_full] == 0).all()
    assert (samples.policy_weight[~is_searched] == 1).all()
    assert stats.binomtest(int(is_full.sum()), len(is_full), 0.3).pvalue > 1e-3
    assert played.num_simulations == 12 * is_full.sum() + 4 * (~is_full).sum()
    if root == "puct":  # whose policy tells the visits
        visits = samples.policy[is_searched] * np.where(is_full, 12, 4)[:, None]
        np.testing.assert_allclose(visits, visits.round(), atol=0.01)


def test_quick_searches_are_without_noise():
    search = MCTSConfig(num_simulations=16, noise_fraction=1.0, proves=False)
    config = SelfPlayConfig(exact_empties=11, full_share=0.5, quick_simulations=8)
    played = play_games(Variant(4), evaluate_by_hash, search, config, range(60), (2,))
    policies = {0: set(), 1: set()}
    for row in range(len(played.samples)):
        if is_at(played.samples, row, Position(Variant(4))):
            policies[int(played.samples.policy_weight[row])].add(played.samples.policy[row].tobytes())
    assert len(policies[0]) == 1
    assert len(policies[1]) > 10


@pytest.mark.parametrize(("temperature_moves", "temperature"), [(1, 0.5), (1, 1.0), (0, 2.0)])
def test_moves_are_drawn_by_the_policy_to_the_power_of_the_inverse_temperature(temperature_moves, temperature):
    num_games, variant = 800, Variant(4)
    late = {"final_temperature": temperature} if not temperature_moves else {"temperature": temperature}
    search = MCTSConfig(num_simulations=40, temperature_moves=temperature_moves, **late)
    config = SelfPlayConfig(exact_empties=11)  # a game is its first move, the rest is solved
    played = play_games(variant, evaluate_by_hash, search, config, range(num_games), (4,))
    samples, start = played.samples, Position(variant)
    (first,) = {samples.policy[row].tobytes() for row in range(len(samples)) if is_at(samples, row, start)}
    weights = np.frombuffer(first, np.float16).astype(float) ** (1 / temperature)
    drawn = np.zeros(variant.num_actions)
    for move in start.legal_moves:
        drawn[move] = sum(is_at(samples, row, start.play(move)) for row in range(len(samples)))
    moves = np.flatnonzero(weights)
    assert drawn.sum() == drawn[moves].sum() == num_games
    assert stats.chisquare(drawn[moves], num_games * weights[moves] / weights.sum()).pvalue > 1e-3


def is_at(samples: Samples, row: int, position: Position) -> bool:
    return (tuple(samples.player[row]), tuple(samples.opponent[row])) == (position.player, position.opponent)


def test_later_moves_are_the_most_visited():
    search = MCTSConfig(num_simulations=30, temperature_moves=4, proves=False)
    variant = Variant.named("othello-6x6")
    played = play_games(variant, evaluate_by_hash, search, SelfPlayConfig(exact_empties=0), range(4), (4,))
    num_early_others = 0
    for game in replayed(played, variant):
        for row, side, ply in zip(game.rows, game.sides, game.plies, strict=True):
            policy = played.samples.policy[row]
            before = game.boards[ply - 1] if ply else oracle.start_board(6, "diagonal")
            best = [oracle.play(before, side, move) for move in np.flatnonzero(policy == policy.max()).tolist()]
            is_best = game.boards[ply] in best
            num_early_others += not is_best
            assert is_best or ply < 4
    assert num_early_others


def test_games_begin_with_a_number_of_random_plies_drawn_evenly_none_of_them_a_sample():
    num_games = 600
    config = SelfPlayConfig(exact_empties=8, max_random_plies=3)
    played = play_games(Variant(4), evaluate_as_even, MCTSConfig(num_simulations=1), config, range(num_games), (6,))
    num_discs = [16 - board.count("-") for board in boards_of(played.samples, 4)]
    firsts = [now for now, before in zip(num_discs, [99, *num_discs], strict=False) if now < before]
    counts = np.bincount(firsts, minlength=9)[4:]
    assert counts.sum() == num_games
    assert not counts[4:].any()
    assert stats.chisquare(counts[:4]).pvalue > 1e-3


def test_a_game_that_ends_in_its_random_plies_has_no_samples():
    config = SelfPlayConfig(exact_empties=0, max_random_plies=40)
    variant, seeds = Variant(4), range(30)
    played = play_games(variant, evaluate_as_even, MCTSConfig(num_simulations=2), config, seeds, (6,))
    assert played.num_games == 30
    assert played.samples.player.shape[1:] == (1,)
    alone = [play_games(variant, evaluate_as_even, MCTSConfig(num_simulations=2), config, [n], (6,)) for n in seeds]
    assert any(not len(game.samples) for game in alone)
    assert_alike(played, SelfPlay.joined(alone))


def test_a_game_shorter_than_an_opening_tells_its_end():
    variant = Variant(4, start="XXXXOOOO-OOX-OXX O")  # whose first mover has no move
    played = play_games(variant, evaluate_as_even, MCTSConfig(num_simulations=2), SelfPlayConfig(2, 0), range(5), (1,))
    for opening in played.openings:
        board = mover_board(*opening, 4)
        assert oracle.is_over(board)
        assert board.count("-") < 2


def test_surprise_moves_weight_between_the_positions_of_a_game_and_keeps_its_sum():
    variant, share = Variant.named("othello-6x6"), 0.6
    search = MCTSConfig(num_simulations=40, proves=False)

    def play(surprise_share):
        config = SelfPlayConfig(exact_empties=0, surprise_share=surprise_share)
        return play_games(variant, evaluate_by_hash, search, config, range(1), (8,))

    samples = play(share).samples
    plain = play(0.0)
    np.testing.assert_array_equal(samples.player, plain.samples.player)
    weight = samples.policy_weight.astype(float)
    assert weight.sum() == pytest.approx(len(samples), rel=1e-3)
    policy = samples.policy.astype(float)
    priors = evaluate_by_hash(samples.player, samples.opponent, variant)[0]
    surprise = np.array(
        [stats.entropy(row[row > 0], prior[row > 0]) for row, prior in zip(policy, priors, strict=True)]
    )
    # What is not taken by a policy is missing from the priors above, so they do not sum to one; entropy() makes them.
    surprise -= [math.log(prior[row > 0].sum()) for row, prior in zip(policy, priors, strict=True)]
    np.testing.assert_allclose(weight, 1 - share + share * surprise / surprise.mean(), rtol=0.02, atol=0.01)
    assert plain.surprise == pytest.approx(surprise.sum(), rel=0.01)
    assert plain.entropy == pytest.approx(stats.entropy(policy, axis=1).sum(), rel=0.01)


def test_noise_and_draws_of_a_game_come_from_streams_that_do_not_meet():
    search = MCTSConfig(num_simulations=4, noise_fraction=0.25, temperature_moves=30)
    for reuses_tree in (False, True):
        config = SelfPlayConfig(4, 0, max_random_plies=4, reuses_tree=reuses_tree)
        actor = Playing(Variant(), evaluate_as_even, search, config, range(4), (1,))
        seen = set()
        for _ in range(60):
            actor.step()
            seen |= set(actor._games.rng_state.tolist()) | set(actor.search.tree.rng_state.tolist())
        begun = np.array(sorted(pow(GAMMA, -1, 1 << 64) * state % (1 << 64) for state in seen), np.uint64)
        # A stream moves on by few numbers at a time, and is far from all others.
        gaps = np.diff(begun)
        assert ((gaps < 200) | (gaps > 1 << 32)).all()
        num_streams = 1 + (gaps > 1 << 32).sum()
        assert num_streams > 40 or reuses_tree


def test_check_is_called_between_calls_of_the_evaluator_and_ends_the_games():
    class EndedError(Exception):
        pass

    calls = []

    def check():
        calls.append("check")
        if calls.count("check") == 12:
            raise EndedError

    def evaluate(player, opponent, variant):
        calls.append("evaluate")
        return evaluate_as_even(player, opponent, variant)

    with pytest.raises(EndedError):
        play_games(Variant(), evaluate, MCTSConfig(), SelfPlayConfig(), range(4), (1,), check)
    assert calls == [*(["check", "evaluate"] * 11), "check"]


@pytest.mark.parametrize(
    ("search", "config", "sentence"),
    [
        (MCTSConfig(time_limit_s=1), SelfPlayConfig(), "time_limit_s is not for self-play"),
        (MCTSConfig(root="gumbel"), SelfPlayConfig(reuses_tree=True), "reuses_tree is for search.root=puct"),
        (
            MCTSConfig(num_simulations=8),
            SelfPlayConfig(full_share=0.5, quick_simulations=8),
            "quick_simulations must be less than search.num_simulations = 8, got 8",
        ),
    ],
)
def test_a_search_that_does_not_go_with_self_play_is_refused(search, config, sentence):
    with pytest.raises(ValueError, match=sentence):
        play_games(Variant(4), evaluate_as_even, search, config, range(1), (1,))
