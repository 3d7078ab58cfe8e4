"""What a drawing of a board shows, as plain data: every way of drawing starts from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Diagram:
    """A board to be drawn. Squares count row by row from the top left."""

    size: int
    black: tuple[int, ...] = ()
    white: tuple[int, ...] = ()
    dots: tuple[int, ...] = ()  # small dots, on the legal moves
    last_move: int | None = None
    heat: Mapping[int, float] = field(default_factory=dict)  # square → 0..1, a shade: a policy, say
    labels: Mapping[int, str] = field(default_factory=dict)  # square → a few characters: a value in percent, say
    arrows: tuple[tuple[int, int], ...] = ()  # from square to square
    caption: str = ""
