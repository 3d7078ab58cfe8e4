"""Makes a set of solved positions, a file of `sets/`, on stdout.

    python -m experiments.truth.make 6 most > experiments/truth/sets/6x6.tsv

Each position is of a game of its own, from random moves to four plies of looking ahead with an error now and then: so
there are won, lost and even ones, such as good players reach and such as beginners do.
"""

import sys

from experiments.match import OPENING_PLIES
from experiments.truth.games import mixed_games
from experiments.truth.solved import EMPTIES, pick, set_text, solve_all
from reversi_env import Position, Variant
from reversi_env.variant import SCORINGS

EACH = 16  # positions for each number of empty squares
SEED = 20261130

_COMMENT = """\
Exact scores of {num} positions, {size}×{size}, where the {goal} discs win, for the side to move.
Made by: python -m experiments.truth.make {size} {goal}
Each is of a game of its own, begun with {plies} random moves; by turns all moves are random, or the players look 1,
2 or 4 plies ahead and a fifth, a tenth or a twentieth of their moves are random. Seed {seed}."""


def main(arguments: list[str]) -> int:
    """Writes the set of a size and a goal."""
    if len(arguments) != 2:
        sys.exit(__doc__)
    size, goal = int(arguments[0]), arguments[1]
    variant = Variant(size=size, goal=goal)
    wanted = [num_empties for num_empties in EMPTIES[size] for _ in range(EACH)]
    positions = list(pick(mixed_games(variant, SEED), wanted))
    by_scoring = {
        scoring: solve_all([_scored(position, scoring) for position in positions], _show) for scoring in SCORINGS
    }
    comment = _COMMENT.format(num=len(positions), size=size, goal=goal, plies=OPENING_PLIES[size], seed=SEED)
    sys.stdout.write(set_text(by_scoring, comment))
    return 0


def _scored(position: Position, scoring: str) -> Position:
    variant = position.variant
    return Position.from_text(position.text, Variant(size=variant.size, goal=variant.goal, scoring=scoring))


def _show(num_solved: int, num_positions: int) -> None:
    if num_solved % 20 == 0 or num_solved == num_positions:
        print(f"{num_solved} of {num_positions} solved", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
