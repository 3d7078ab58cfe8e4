"""Variants: named ones, given starts, equality, and what is said of fields that have no such value."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reversi_env import Position, Variant
from reversi_env.geometry import SIZES
from reversi_env.naming import UnknownNameError
from reversi_env.variant import GOALS, SCORINGS
from tests import oracle
from tests.reversi_env.strategies import texts, variants

WHITE_FIRST = "-----OX--XO----- O"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("othello", (8, "diagonal", "most", "board")),
        ("othello-4x4", (4, "diagonal", "most", "board")),
        ("othello-6x6", (6, "diagonal", "most", "board")),
        ("othello-10x10", (10, "diagonal", "most", "board")),
        ("reversi-1883", (8, "free", "most", "board")),
        ("anti-reversi", (8, "diagonal", "fewest", "board")),
    ],
)
def test_named_variants_are_what_their_names_say(name: str, fields: tuple[int, str, str, str]) -> None:
    variant = Variant.named(name)
    assert (variant.size, variant.start, variant.goal, variant.scoring) == fields
    assert variant.name == name
    assert name in Variant.NAMES
    assert Position(name).variant == variant == Variant(*fields)


def test_a_named_variant_can_be_changed() -> None:
    assert Variant.named("anti-reversi", size=6, scoring="tournament") == Variant(6, "diagonal", "fewest", "tournament")
    assert Variant.named("othello", goal="fewest").name == "anti-reversi"
    assert Variant.named("reversi-1883", size=4).name == "4x4, start free, most discs, board scoring"


@given(variants())
def test_pass_and_actions_follow_the_squares(variant: Variant) -> None:
    assert variant.num_squares == variant.pass_move == variant.size**2
    assert variant.num_actions == variant.size**2 + 1
    assert list(variant.center) == oracle.center_squares(variant.size)


# Given starts


def test_a_given_start_has_its_own_side_to_move() -> None:
    variant = Variant(4, WHITE_FIRST)
    assert Position(variant).side == "O"
    assert Position(variant).play(2).is_black_to_move


@given(st.data())
def test_any_board_can_be_a_start(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from(SIZES))
    text = data.draw(texts(size))
    variant = Variant(size).with_start(text)
    assert Position(variant).text == text == variant.start
    assert Position(variant) == Position.from_text(text, variant)
    assert variant == Variant(size, text)
    assert replace(variant, start="diagonal") == Variant(size)


def test_one_start_in_several_spellings_is_one_variant() -> None:
    spellings = [
        WHITE_FIRST,
        "---- -ox- -xo- ---- o",
        "....\n.wb.\n.bw.\n....\nwhite",
        str(Position(Variant(4, WHITE_FIRST))),
    ]
    assert {Variant(4, spelling) for spelling in spellings} == {Variant(4, WHITE_FIRST)}


def test_a_given_start_may_have_a_blocked_mover_or_be_over() -> None:
    assert Position(Variant(4, "OX-- X--- ---- ---- X")).legal_moves == (16,)
    assert Position(Variant(4, "XX-- ---- ---- ---- X")).is_over


def test_a_given_start_with_an_empty_center_has_no_placement() -> None:
    assert Position(Variant(4, f"{'-' * 16} X")).is_over


# Equality, hash, copies


@given(variants(), variants())
def test_variants_with_equal_fields_are_equal(a: Variant, b: Variant) -> None:
    equal = (a.size, a.start, a.goal, a.scoring) == (b.size, b.start, b.goal, b.scoring)
    assert (a == b) == equal
    assert hash(a) == hash(replace(a))


@given(variants())
def test_copies_of_a_variant_are_equal_and_play_alike(variant: Variant) -> None:
    assert variant.rules  # so that what is worked out once is copied too
    assert variant.field.dtype == "uint64"
    for twin in (pickle.loads(pickle.dumps(variant)), copy.deepcopy(variant), copy.copy(variant), replace(variant)):
        assert twin == variant
        assert Position(twin) == Position(variant)


def test_a_variant_cannot_be_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        Variant().size = 6  # type: ignore[misc]  # this is the point


# Faults


@pytest.mark.parametrize("size", [0, 2, 5, 7, 12, -8, 8.0, "8", None])
def test_a_size_that_no_board_has_is_refused(size: Any) -> None:
    with pytest.raises(ValueError, match=rf"a board has 4, 6, 8 or 10 columns, not {size!r}"):
        Variant(size)


@pytest.mark.parametrize("start", [3, None, ["diagonal"]])
def test_a_start_that_is_no_text_is_refused(start: Any) -> None:
    with pytest.raises(ValueError, match="start is diagonal, parallel, free or a board as text, not "):
        Variant(start=start)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"goal": "mosst"}, "unknown goal 'mosst'; did you mean most"),
        ({"goal": ""}, "unknown goal ''; there are: fewest, most"),
        ({"scoring": "tournement"}, "unknown scoring 'tournement'; did you mean tournament"),
        (
            {"start": "diagnal"},
            "start 'diagnal' is neither diagonal, parallel, free nor a board of 8×8: .* found 6 squares",
        ),
        ({"start": WHITE_FIRST}, "found 16 squares, expected 64"),
        ({"colour": "red"}, "unknown field of a variant 'colour'; there are: goal, scoring, size, start"),
        ({"strat": "free"}, "unknown field of a variant 'strat'; did you mean start"),
    ],
)
def test_a_field_without_such_a_value_gets_the_near_misses(changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Variant.named("othello", **changes)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("othelo", "unknown variant 'othelo'; did you mean othello"),
        ("anti-othello", "unknown variant 'anti-othello'; did you mean .*othello"),
        ("chess", f"unknown variant 'chess'; there are: {', '.join(sorted(Variant.NAMES))}"),
    ],
)
def test_an_unknown_variant_gets_the_near_misses(name: str, sentence: str) -> None:
    for make in (Variant.named, Position):
        with pytest.raises(UnknownNameError, match=sentence):
            make(name)


def test_goals_and_scorings_have_no_other_values() -> None:
    assert GOALS == ("most", "fewest")
    assert SCORINGS == ("board", "tournament")
