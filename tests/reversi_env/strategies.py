"""What Hypothesis draws: boards as they arise in play, and boards that no game reaches."""

from hypothesis import strategies as st

from reversi_env import Position, Variant
from reversi_env.geometry import SIZES
from reversi_env.notation import BLACK, EMPTY, WHITE
from reversi_env.variant import GOALS, SCORINGS, STARTS

sizes = st.sampled_from(SIZES)
symmetries = st.integers(0, 7)


@st.composite
def variants(draw: st.DrawFn, size: int | None = None) -> Variant:
    """Draws a variant with one of the named starts."""
    return Variant(
        size=size or draw(sizes),
        start=draw(st.sampled_from(STARTS)),
        goal=draw(st.sampled_from(GOALS)),
        scoring=draw(st.sampled_from(SCORINGS)),
    )


@st.composite
def texts(draw: st.DrawFn, size: int) -> str:
    """Draws any board whatever of `size` columns, with its side to move, as `Position.text` spells it.

    Boards are full, bare or mixed: evenly drawn cells alone would hardly ever hold a long line or a pass.
    """
    cells = draw(st.sampled_from([BLACK + WHITE, EMPTY * 6 + BLACK + WHITE, EMPTY + BLACK + WHITE * 6, "XO-"]))
    board = draw(st.text(cells, min_size=size * size, max_size=size * size))
    return f"{board} {draw(st.sampled_from([BLACK, WHITE]))}"


@st.composite
def arbitrary_positions(draw: st.DrawFn, variant: Variant | None = None) -> Position:
    """Draws any discs whatever on any variant."""
    variant = variant or draw(variants())
    return Position.from_text(draw(texts(variant.size)), variant)


@st.composite
def played_positions(draw: st.DrawFn, variant: Variant | None = None) -> Position:
    """Draws a position that play reaches; it may be over."""
    position = Position(variant or draw(variants()))
    for choice in draw(st.lists(st.integers(0, 2**16), max_size=2 * position.num_empties)):
        if position.is_over:
            break
        position = position.play(position.legal_moves[choice % len(position.legal_moves)])
    return position


def positions() -> st.SearchStrategy[Position]:
    """Draws positions of both kinds."""
    return st.one_of(arbitrary_positions(), played_positions())
