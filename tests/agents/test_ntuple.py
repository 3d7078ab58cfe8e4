"""N-tuples: cells and sums against plain Python, weights recovered, tables that survive a disk and refuse damage."""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from agents.evaluation import DISC, LEARNED, Evaluation, check_name, evaluate, evaluation_of, learned_evaluation
from agents.manifest import MANIFEST, CheckpointError, digest_of
from agents.ntuple.layout import UNIT, Layout, layout_of
from agents.ntuple.patterns import patterns_of
from agents.ntuple.tables import FORMAT_VERSION, Tables, is_tables, read_tables, write_tables
from reversi_env import Position, Variant, random_games
from reversi_env.geometry import SIZES, to_squares
from reversi_env.naming import UnknownNameError, UsageError
from reversi_env.symmetry import NUM_SYMMETRIES, transform_position
from tests.reversi_env.strategies import positions

WEIGHTS_FILE = "weights.safetensors"
ERROR_MODEL = np.array([6.5, 0.1, -0.2, -1.5, 0])


@cache
def random_tables(size: int) -> Tables:
    shape = Tables.zeros(Variant(size)).weights.shape
    return Tables(Variant(size), np.random.default_rng(0).normal(size=shape).astype(np.float32))


@cache
def random_evaluation(size: int) -> Evaluation:
    return learned_evaluation(random_tables(size))


def value(position: Position, evaluation: Evaluation) -> int:
    return evaluate(position.player, position.opponent, evaluation, position.variant.rules)


def cells_by_hand(position: Position, layout: Layout) -> list[int]:
    """Returns the cell of each feature, and of the number of empty squares, within a block."""
    size = position.variant.size
    digits = dict.fromkeys(range(size * size), 0)
    digits.update(dict.fromkeys(to_squares(position.player, size), 1))
    digits.update(dict.fromkeys(to_squares(position.opponent, size), 2))
    cells = [1 + (max(position.num_empties, 1) - 1) % layout.stage_width]
    start = 1 + layout.stage_width
    for pattern in patterns_of(size):
        for squares in pattern.features:
            cells.append(start + sum(digits[square] * 3**place for place, square in enumerate(squares)))
        start += 3 ** len(pattern.squares)
    return cells


def played(variant: Variant, num_games: int, seed: int = 1) -> list[Position]:
    """Returns the positions of some random games in which there is something to move."""
    games = random_games(Position(variant), num_games, seed)
    found = []
    for moves, length in zip(games.moves, games.lengths, strict=True):
        position = Position(variant)
        for move in moves[:length].tolist():
            found.append(position)
            position = position.play(move)
    return found


def boards_of(some: list[Position]) -> np.ndarray:
    return np.array([(position.player, position.opponent) for position in some], np.uint64)


# Patterns


@pytest.mark.parametrize(("size", "num_patterns", "num_features"), [(4, 6, 22), (6, 8, 34), (8, 11, 46), (10, 14, 58)])
def test_patterns_have_so_many_features(size: int, num_patterns: int, num_features: int) -> None:
    patterns = patterns_of(size)
    assert len(patterns) == num_patterns
    assert sum(len(pattern.features) for pattern in patterns) == num_features


@pytest.mark.parametrize("size", SIZES)
def test_every_square_is_on_some_feature(size: int) -> None:
    on_features = {square for pattern in patterns_of(size) for feature in pattern.features for square in feature}
    assert on_features == set(range(size * size))


def test_an_edge_shares_its_weights_with_its_mirror_image() -> None:
    edge = patterns_of(8)[0]
    assert edge.squares == (*range(8), 9, 14)  # a1 to h1, b2, g2
    a1, h1, b2, g2 = 3**0, 3**7, 3**8, 3**9
    least = edge.least_indices
    assert least[a1 + 2 * b2] == least[h1 + 2 * g2] == a1 + 2 * b2
    assert least[a1 + 2 * b2] != least[a1 + 2 * g2]
    assert len(np.unique(least)) == (3**10 + 3**5) // 2  # 3^5 edges are their own image


# Evaluation


@settings(max_examples=60)  # plain Python is slow
@given(positions())
def test_an_evaluation_is_the_sum_of_the_weights_of_its_features(position: Position) -> None:
    size = position.variant.size
    layout = layout_of(size)
    stage = (max(position.num_empties, 1) - 1) // layout.stage_width
    weights = layout.rounded(random_tables(size).weights[stage])
    total = sum(int(weights[layout.weight_of_cell[cell - 1]]) for cell in cells_by_hand(position, layout))
    most = DISC * size * size
    assert value(position, random_evaluation(size)) == max(-most, min(most, (total * DISC + UNIT // 2) // UNIT))


@given(positions(), st.integers(0, NUM_SYMMETRIES - 1))
def test_symmetries_leave_a_learned_evaluation_unchanged(position: Position, symmetry: int) -> None:
    evaluation = random_evaluation(position.variant.size)
    assert value(transform_position(position, symmetry), evaluation) == value(position, evaluation)


@cache
def disc_counter(size: int) -> Tables:
    """Returns tables whose patterns, but for the diagonals, share the count of each disc among them."""
    layout = layout_of(size)
    times = np.zeros(size * size)  # how often those patterns look at each square
    used = [number for number, pattern in enumerate(layout.patterns) if not pattern.name.startswith("diagonal")]
    for number in used:
        for feature in layout.patterns[number].features:
            times[list(feature)] += 1
    assert (times > 0).all()
    cells = np.zeros(layout.num_cells)
    for number in used:
        pattern = layout.patterns[number]
        digits = np.arange(pattern.num_indices)[:, None] // 3 ** np.arange(len(pattern.squares)) % 3
        signs = np.array([0, 1, -1])[digits]
        start = layout.pattern_starts[number]
        cells[start : start + pattern.num_indices] = signs @ (1 / times[list(pattern.squares)])
    weights = np.zeros(layout.num_weights)
    weights[layout.weight_of_cell] = cells[1:]
    return Tables(Variant(size), np.tile(weights, (layout.num_stages, 1)).astype(np.float32))


@settings(max_examples=30)  # tables of some megabytes are made for each
@given(positions())
def test_tables_that_count_discs_count_them(position: Position) -> None:
    size = position.variant.size
    counted = value(position, learned_evaluation(disc_counter(size)))
    rounding = DISC * 64 / 2 / UNIT  # of at most 64 weights
    assert abs(counted - DISC * position.disc_differential) <= rounding


def test_weights_beyond_16_bits_are_cut() -> None:
    tables = Tables.zeros(Variant(4))
    tables.weights[:] = 1e6
    assert value(Position(Variant(4)), learned_evaluation(tables)) == DISC * 16


def test_count_empties_counts_both_words() -> None:
    some = played(Variant(10), 2)
    assert layout_of(10).count_empties(boards_of(some)).tolist() == [position.num_empties for position in some]


# Files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tables = Tables(Variant(4), random_tables(4).weights, {"games": 7}, ERROR_MODEL)
    write_tables(tmp_path / "tables", tables, commit="abc")
    return tmp_path / "tables"


def test_tables_come_back_rounded_to_a_unit(folder: Path) -> None:
    tables = read_tables(folder)
    assert tables.variant == Variant(4)
    assert tables.trained_with == {"games": 7}
    assert tables.error_model.tolist() == ERROR_MODEL.tolist()
    np.testing.assert_allclose(tables.weights, random_tables(4).weights, atol=0.5 / UNIT)
    np.testing.assert_array_equal(learned_evaluation(tables).tables, random_evaluation(4).tables)
    assert is_tables(folder)


def test_tables_of_8x8_take_under_4_megabytes(tmp_path: Path) -> None:
    write_tables(tmp_path / "tables", Tables.zeros(Variant(8)))
    assert sum(file.stat().st_size for file in (tmp_path / "tables").iterdir()) < 4 << 20


def test_tables_are_not_written_over_others(folder: Path) -> None:
    with pytest.raises(FileExistsError):
        write_tables(folder, Tables.zeros(Variant(4)))


def rewritten(folder: Path, **changes: object) -> None:
    manifest = json.loads((folder / MANIFEST).read_text()) | changes
    (folder / MANIFEST).write_text(json.dumps(manifest))


def with_weights(folder: Path, content: bytes) -> None:
    (folder / WEIGHTS_FILE).write_bytes(content)
    rewritten(folder, files={WEIGHTS_FILE: digest_of(content)})


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda folder: (folder / MANIFEST).unlink(), "cannot be read"),
    "no JSON": (lambda folder: (folder / MANIFEST).write_text("{"), "is not JSON"),
    "no text": (lambda folder: (folder / MANIFEST).write_bytes(b"\xff"), "cannot be read"),
    "a list": (lambda folder: (folder / MANIFEST).write_text("[]"), "holds no JSON object"),
    "nested": (lambda folder: (folder / MANIFEST).write_text("[" * 100_000), "is not JSON"),
    "a large manifest": (lambda folder: (folder / MANIFEST).write_text(" " * (1 << 21)), "more than any such file"),
    "no version": (lambda folder: rewritten(folder, format_version=None), "no format_version"),
    "a newer version": (lambda folder: rewritten(folder, format_version=FORMAT_VERSION + 1), "a newer reversi-lab"),
    "a network": (lambda folder: rewritten(folder, kind="residual"), "its kind is 'residual'"),
    "no variant": (lambda folder: rewritten(folder, variant=None), "describes no n-tuple tables"),
    "an unknown size": (lambda folder: rewritten(folder, variant={"size": 7}), "a board has 4, 6, 8 or 10 columns"),
    "another size": (lambda folder: rewritten(folder, variant={"size": 6}), "other patterns or stages"),
    "other patterns": (lambda folder: rewritten(folder, patterns={}), "other patterns or stages"),
    "other stages": (lambda folder: rewritten(folder, stage_width=3), "other patterns or stages"),
    "no files": (lambda folder: rewritten(folder, files=[]), "describes no n-tuple tables"),
    "nothing of training": (lambda folder: rewritten(folder, trained_with=3), "describes no n-tuple tables"),
    "half an error model": (lambda folder: rewritten(folder, error_model=[1, 2]), "an error model is 5 numbers"),
    "an endless error": (
        lambda folder: rewritten(folder, error_model=[1, 2, 3, 4, math.inf]),
        "5 numbers of at most ±1000",
    ),
    "an undefined error": (lambda folder: rewritten(folder, error_model=[math.nan] * 5), "an error model is 5 numbers"),
    "a huge error": (lambda folder: rewritten(folder, error_model=[10**400] * 5), "an error model is 5 numbers"),
    "errors in words": (lambda folder: rewritten(folder, error_model=["1"] * 5), "an error model is 5 numbers"),
    "no list of errors": (lambda folder: rewritten(folder, error_model=None), "an error model is 5 numbers"),
    "no weights": (lambda folder: (folder / WEIGHTS_FILE).unlink(), "cannot be read"),
    "cut short": (lambda folder: (folder / WEIGHTS_FILE).write_bytes(b"short"), "cut short or edited"),
    "large weights": (lambda folder: with_weights(folder, bytes(1 << 20)), "more than any such file"),
    "no safetensors": (lambda folder: with_weights(folder, b"nothing of the kind"), "is no file of weights"),
    "another dtype": (
        lambda folder: with_weights(folder, save({"weights": random_tables(4).weights[:2]})),
        r"float32 \[2, \d+\]; expected weights int16",
    ),
    "another name": (lambda folder: with_weights(folder, save({"w": np.zeros(3, np.int16)})), r"holds w int16 \[3\]"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_tables_are_refused_with_the_file_and_the_fault(folder: Path, damage: str) -> None:
    inflict, fault = DAMAGE[damage]
    inflict(folder)
    with pytest.raises(CheckpointError, match=fault) as refusal:
        read_tables(folder)
    assert str(folder) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_tables_of_before_error_models_have_none(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["error_model"]
    (folder / MANIFEST).write_text(json.dumps(manifest))
    assert read_tables(folder).error_model.size == 0


def test_tables_with_an_impossible_error_model_are_no_tables() -> None:
    with pytest.raises(ValueError, match="an error model is 5 numbers"):
        Tables(Variant(4), random_tables(4).weights, error_model=np.full(5, np.nan))


def test_tables_of_another_shape_are_no_tables() -> None:
    with pytest.raises(ValueError, match="tables for 4 columns have the shape"):
        Tables(Variant(4), np.zeros((1, 1), np.float32))


# By name


def test_a_folder_is_an_evaluation(folder: Path) -> None:
    position = Position(Variant(4))
    assert value(position, evaluation_of(str(folder), position.variant)) == value(position, random_evaluation(4))


def test_a_folder_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    folder, position = tmp_path / "tables", Position(Variant(4))
    write_tables(folder, disc_counter(4))
    before = value(position, evaluation_of(str(folder), position.variant))
    folder.rename(tmp_path / "old")
    write_tables(folder, random_tables(4))
    assert before == 0
    assert value(position, evaluation_of(str(folder), position.variant)) == value(position, random_evaluation(4))


@pytest.mark.parametrize("variant", [Variant(6), Variant(4, goal="fewest")])
def test_tables_serve_no_other_size_or_goal(folder: Path, variant: Variant) -> None:
    with pytest.raises(UsageError, match=r"are for 4×4 where the most discs win, not for"):
        evaluation_of(str(folder), variant)


def test_a_start_or_a_scoring_of_its_own_needs_no_tables_of_its_own(folder: Path) -> None:
    assert evaluation_of(str(folder), Variant(4, "free", "most", "tournament")) == evaluation_of(
        str(folder), Variant(4)
    )


def test_where_no_tables_come_along_the_sentence_says_how_to_learn_some() -> None:
    with pytest.raises(UsageError, match=r"experiment=ntuple variant\.size=4 variant\.goal=most` learns some"):
        evaluation_of(LEARNED, Variant(4))


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(CheckpointError, match="there is no checkpoint or run at no/such"):
        evaluation_of("no/such", Variant(4))


def test_names_are_checked_before_a_variant_is_known() -> None:
    for name in ("discs", LEARNED, "runs/x"):
        check_name(name)
    with pytest.raises(UnknownNameError, match="did you mean ntuple"):
        check_name("ntupel")
