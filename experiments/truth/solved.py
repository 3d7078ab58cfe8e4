"""Positions near the end of games with the exact score of every move: what a player is measured against.

`sets/` holds one set for each board size and goal, always the same, so that figures of different days can be compared;
`experiments.truth.make` made them. A file is text: what it is behind #, then columns parted by tabs,

    board  side  empties  board_scores  tournament_scores

a score for each legal move, such as c2:+4, for the side to move, under each scoring.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from agents.search.solver import Solver
from experiments.match import Progress
from reversi_env import Position, Variant
from reversi_env.symmetry import canonical
from reversi_env.variant import SCORINGS

SETS = Path(__file__).parent / "sets"
# By board size: how many empty squares the positions have. Fewer are no test of anyone, and with more, solving takes
# over a second a position.
EMPTIES = {4: range(3, 13), 6: range(3, 23), 8: range(3, 21), 10: range(3, 15)}

_TRIES = 50  # games without a position that is wanted, after which none is expected any more


@dataclass(frozen=True)
class Solved:
    """A position that leaves a choice, and the exact score of each legal move, for the side to move."""

    position: Position
    scores: Mapping[int, int]

    @property
    def best(self) -> int:
        """The score if both sides play perfectly."""
        return max(self.scores.values())

    @property
    def value(self) -> int:
        """Win, draw or loss for the side to move if both sides play perfectly: 1, 0 or -1."""
        return _sign(self.best)

    @property
    def is_decisive(self) -> bool:
        """Whether some move gives a win or a draw away."""
        return not all(map(self.keeps_value, self.scores))

    def keeps_value(self, move: int) -> bool:
        """Returns whether after a move the position is still won, drawn or lost as before."""
        return _sign(self.scores[move]) == self.value

    def regret(self, move: int) -> int:
        """Returns how many discs a move gives away."""
        return self.best - self.scores[move]


def held_out(variant: Variant) -> list[Solved]:
    """Returns the set of a variant's size and goal, in rising order of empty squares, scored by the variant's scoring.

    Its positions are of games from the diagonal start, whatever the variant's own start.
    """
    with _path(variant).open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t")
        return [_solved(row, variant) for row in rows]


def pick(games: Iterable[Sequence[Position]], empties: Iterable[int]) -> Iterator[Position]:
    """Yields a position for each number of empty squares wanted, one of each game, none of them like another.

    They leave a choice of two moves or more. Positions are alike under the symmetries of the board and of the colors.
    Where fifty games have nothing new with so many empty squares, that one is left out.
    """
    seen: set[Position] = set()
    games = iter(games)
    for num_empties in empties:
        for positions in islice(games, _TRIES):
            found = _choice(positions, num_empties)
            if found is not None and (form := _form(found)) not in seen:
                seen.add(form)
                yield found
                break


def solve_all(positions: Sequence[Position], progress: Progress | None = None) -> list[Solved]:
    """Returns positions of one variant with the exact scores of their moves; `progress` hears how many are solved."""
    solver = Solver(positions[0].variant)
    found: list[Solved] = []
    for position in positions:
        found.append(
            Solved(position, {move: solution.score for move, solution in solver.solve_moves(position).items()})
        )
        if progress:
            progress(len(found), len(positions))
    return found


def set_text(by_scoring: Mapping[str, Sequence[Solved]], comment: str) -> str:
    """Returns a file of `sets/`: the same positions under each scoring, below what is said of them."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines.append("\t".join(("board", "side", "empties", *(f"{scoring}_scores" for scoring in SCORINGS))))
    for row in zip(*(by_scoring[scoring] for scoring in SCORINGS), strict=True):
        position = row[0].position
        lines.append("\t".join((position.board, position.side, str(position.num_empties), *(map(_scores_text, row)))))
    return "\n".join(lines) + "\n"


def _path(variant: Variant) -> Path:
    goal = "" if variant.goal == "most" else f"-{variant.goal}"
    return SETS / f"{variant.size}x{variant.size}{goal}.tsv"


def _solved(row: Mapping[str, str], variant: Variant) -> Solved:
    position = Position.from_text(f"{row['board']} {row['side']}", variant)
    entries = (entry.split(":") for entry in row[f"{variant.scoring}_scores"].split())
    return Solved(position, {position.parse_move(name): int(score) for name, score in entries})


def _scores_text(solved: Solved) -> str:
    return " ".join(f"{solved.position.move_name(move)}:{score:+d}" for move, score in solved.scores.items())


def _choice(positions: Sequence[Position], num_empties: int) -> Position | None:
    """Returns the position with so many empty squares that has two legal moves or more."""
    for position in positions:
        if position.num_empties == num_empties and len(position.legal_moves) > 1:
            return position
    return None


def _form(position: Position) -> Position:
    """Returns the same for positions that are alike."""
    as_black = Position.from_bitboards(position.variant, position.player, position.opponent)
    return canonical(as_black)[0]


def _sign(score: int) -> int:
    return (score > 0) - (score < 0)
