"""The variants of the game: size, start, goal and scoring."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from reversi_env.geometry import SIZES, to_bitboard
from reversi_env.naming import UnknownNameError
from reversi_env.notation import BLACK, EMPTY, WHITE, parse_board
from reversi_env.rules import Rules

STARTS = ("diagonal", "parallel", "free")
GOALS = ("most", "fewest")
SCORINGS = ("board", "tournament")


@dataclass(frozen=True)
class Variant:
    """One set of rules. Variants with equal fields are equal.

    A board given as `start` is kept as `Position.text` spells it. `Variant.named("othello-6x6")` makes one of
    `Variant.NAMES`. Raises ValueError for a field that has no such value.
    """

    size: int = 8
    start: str = "diagonal"  # "diagonal" (Othello), "parallel", "free" (the placement of 1883), or a board as text
    goal: str = "most"  # "most" or "fewest" discs win
    scoring: str = "board"  # discs as they lie, or "tournament": the empties to the side with more discs

    NAMES: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or self.size not in SIZES:
            raise ValueError(f"a board has {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]} columns, not {self.size!r}")
        if self.goal not in GOALS:
            raise UnknownNameError("goal", str(self.goal), GOALS)
        if self.scoring not in SCORINGS:
            raise UnknownNameError("scoring", str(self.scoring), SCORINGS)
        if not isinstance(self.start, str):
            raise ValueError(f"start is {', '.join(STARTS)} or a board as text, not {self.start!r}")
        if self.start not in STARTS:
            try:
                board, side = parse_board(self.start, self.size)
                object.__setattr__(self, "start", f"{board} {side}")  # one board in two spellings is one variant
            except ValueError as error:
                board_name = f"a board of {self.size}×{self.size}"
                raise ValueError(
                    f"start {self.start!r} is neither {', '.join(STARTS)} nor {board_name}: {error}"
                ) from None

    @classmethod
    def named(cls, name: str, **changes: str | int) -> Self:
        """Returns the variant of that name, with some fields changed; raises UnknownNameError with the near misses."""
        if name not in _NAMED:
            raise UnknownNameError("variant", name, _NAMED)
        for field in changes:
            if field not in (known := [known.name for known in fields(cls)]):
                raise UnknownNameError("field of a variant", field, known)
        return cls(**{**_NAMED[name], **changes})  # type: ignore[arg-type]  # __post_init__ checks the values

    @staticmethod
    def of(variant: "Variant | str") -> "Variant":
        """Returns a variant as it is, or the one of that name; raises TypeError for anything else."""
        if not isinstance(variant, Variant | str):
            raise TypeError(f"a variant is a Variant or the name of one, not {variant!r}")
        return Variant.named(variant) if isinstance(variant, str) else variant

    @property
    def name(self) -> str:
        """The variant's name where it has one, else its fields in a line."""
        for name in _NAMED:
            if self == Variant.named(name):
                return name
        return f"{self.size}x{self.size}, start {self.start}, {self.goal} discs, {self.scoring} scoring"

    @property
    def num_squares(self) -> int:
        return self.size * self.size

    @property
    def pass_move(self) -> int:
        """The pass as a move and action: size²."""
        return self.size * self.size

    @property
    def num_actions(self) -> int:
        return self.size * self.size + 1

    @cached_property
    def center(self) -> tuple[int, int, int, int]:
        """The four center squares in rising order."""
        first = (self.size // 2 - 1) * (self.size + 1)
        return first, first + 1, first + self.size, first + self.size + 1

    @cached_property
    def rules(self) -> Rules:
        """The variant as kernels take it."""
        return Rules(
            squares=to_bitboard(range(self.num_squares), self.size),
            center=to_bitboard(self.center if self.start == "free" else (), self.size),
            size=self.size,
            fewest=self.goal == "fewest",
            tournament=self.scoring == "tournament",
        )

    @cached_property
    def field(self) -> np.ndarray:
        """The squares and the center of `rules` as an array, uint64 [2, W]."""
        return np.array([self.rules.squares, self.rules.center], np.uint64)

    @cached_property
    def start_board(self) -> tuple[str, str]:
        """The board before the first move, as size² characters, and the side to move."""
        if self.start not in STARTS:
            return self.start[:-2], self.start[-1]
        cells = [EMPTY] * self.num_squares
        discs = {"diagonal": (WHITE, BLACK, BLACK, WHITE), "parallel": (WHITE, WHITE, BLACK, BLACK)}
        for square, disc in zip(self.center, discs.get(self.start, (EMPTY,) * 4), strict=True):
            cells[square] = disc
        return "".join(cells), BLACK

    def is_played_like(self, other: "Variant") -> bool:
        """Returns whether games of two variants begin alike and go alike; their scoring may differ."""
        if self == other:
            return True
        mine, theirs = ((one.size, one.goal, one.start_board, one.rules.center) for one in (self, other))
        return mine == theirs

    def with_start(self, board: str) -> Self:
        """Returns this variant begun from a given board."""
        return replace(self, start=board)


_NAMED: dict[str, dict[str, str | int]] = {
    "othello": {},
    "othello-4x4": {"size": 4},
    "othello-6x6": {"size": 6},
    "othello-10x10": {"size": 10},
    "reversi-1883": {"start": "free"},
    "anti-reversi": {"goal": "fewest"},
}
Variant.NAMES = tuple(_NAMED)
