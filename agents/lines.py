"""Games that lead to a position, for engines that can only be told moves."""

from reversi_env import Position
from reversi_env.geometry import mask_of, mask_squares

MOST_POSITIONS = 20_000  # looked at before a search gives up; 8 random plies take 20 to 120, 12 up to some thousands
KEPT = 1_000  # positions whose games are remembered: enough for as many games side by side


class Lines:
    """Finds a game from the start to each position that it is asked for, and remembers the games.

    So a position is found where it lies a few moves after one that was asked for before, or after the start. Several
    games may lead to it; which of them is found is no matter, since a player has to know the position alone.
    """

    def __init__(self) -> None:
        self._known: dict[Position, tuple[int, ...]] = {}  # in the order asked for

    def to(self, position: Position) -> tuple[int, ...]:
        """Returns moves, passes included, from the start to `position`; raises ValueError where none are found."""
        moves = self._search(position)
        self._known.pop(position, None)
        self._known[position] = moves
        if len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        return moves

    def _search(self, target: Position) -> tuple[int, ...]:
        """Searches depth first from all positions that are known, those nearest to the target first."""
        variant, occupied = target.variant, _occupied(target)
        squares = {*mask_squares(occupied, variant.size), variant.pass_move}
        moves_to = {
            origin: moves
            for origin, moves in {Position(variant): (), **self._known}.items()
            if origin.variant == variant and not _occupied(origin) & ~occupied
        }
        to_look_at = sorted(moves_to, key=lambda origin: origin.num_empties, reverse=True)
        while to_look_at and len(moves_to) < MOST_POSITIONS:
            position = to_look_at.pop()
            if position == target:
                return moves_to[position]
            for move in squares.intersection(position.legal_moves):
                after = position.play(move)
                if after not in moves_to:
                    moves_to[after] = (*moves_to[position], move)
                    to_look_at.append(after)
        raise ValueError(f"no game was found that leads to {target.text}")


def _occupied(position: Position) -> int:
    return mask_of(position.player) | mask_of(position.opponent)
