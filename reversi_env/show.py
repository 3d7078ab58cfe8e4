"""A position as a picture, with what a player thinks of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from reversi_env.drawing.diagram import Diagram
from reversi_env.drawing.svg import to_svg
from reversi_env.drawing.text import to_ansi
from reversi_env.position import Position

_LEAST_SHARE = 0.005  # what a label would round to 0 % is left a dot


@dataclass(frozen=True)
class Drawing:
    """A picture: notebooks show it, `print` writes it as text, `save` keeps it as an SVG file."""

    diagram: Diagram

    @property
    def svg(self) -> str:
        """The picture as an SVG element."""
        return to_svg(self.diagram)

    def save(self, path: str | Path) -> None:
        """Writes the picture to a file whose name ends with .svg; raises ValueError for another ending."""
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise ValueError(f"a drawing is saved as SVG, so its file ends with .svg, not {path.suffix!r}: {path}")
        path.write_text(self.svg, encoding="utf-8")

    def __str__(self) -> str:
        return to_ansi(self.diagram, color=False)

    def _repr_html_(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg


def show(
    position: Position,
    *,
    last_move: int | str | None = None,
    policy: np.ndarray | None = None,
    values: Mapping[int, float] | np.ndarray | None = None,
    arrows: Iterable[tuple[int | str, int | str]] = (),
) -> Drawing:
    """Returns a drawing of a position: its discs, a dot on each legal move, and what is asked for beside that.

    `policy`, float [size² + 1], shades the squares and labels them in percent; `values`, by move or [size² + 1], are
    written instead of the percents, with their sign. An array speaks of the legal moves alone, and a NaN of nothing.
    What they say of the pass stands in the caption. Squares are numbers or names. Raises ValueError for an array of
    another shape, for a share below 0 and for a square that is not on the board.
    """
    heat: dict[int, float] = {}
    labels: dict[int, str] = {}
    if policy is not None:
        shares = _by_move(position, policy, "policy")
        if (least := min(shares.values(), default=0.0)) < 0:
            raise ValueError(f"policy holds shares, which are 0 or more, not {least:g}; other numbers are values")
        heat = {move: share**0.5 for move, share in shares.items()}  # the root lets small shares be seen
        labels = {move: f"{100 * share:.0f}" for move, share in shares.items() if share >= _LEAST_SHARE}
    if values is not None:
        given = values if isinstance(values, Mapping) else _by_move(position, values, "values")
        labels = {_move(position, move): f"{round(value, 2):+g}" for move, value in given.items()}

    diagram = position.diagram()
    pass_move = position.variant.pass_move
    heat.pop(pass_move, None)
    pass_label = labels.pop(pass_move, None)
    last = None if last_move is None else _move(position, last_move)
    return Drawing(
        replace(
            diagram,
            last_move=None if last == pass_move else last,
            heat=heat,
            labels=labels,
            arrows=tuple((_square(position, start), _square(position, end)) for start, end in arrows),
            caption=diagram.caption if pass_label is None else f"{diagram.caption}, pass {pass_label}",
        )
    )


def _by_move(position: Position, numbers: np.ndarray, what: str) -> dict[int, float]:
    """Returns the numbers of the legal moves that are not NaN."""
    numbers = np.asarray(numbers)
    if numbers.shape != (position.variant.num_actions,):
        raise ValueError(
            f"{what} holds one number an action, [{position.variant.num_actions}], not {list(numbers.shape)}"
        )
    return {move: float(numbers[move]) for move in position.legal_moves if not np.isnan(numbers[move])}


def _move(position: Position, move: int | str) -> int:
    """Returns a move as a number; raises ValueError where the board has none such."""
    return position.parse_move(move if isinstance(move, str) else position.move_name(move))


def _square(position: Position, square: int | str) -> int:
    number = _move(position, square)
    if number == position.variant.pass_move:
        raise ValueError("an arrow goes from square to square; a pass has none")
    return number
