"""What speaks for and against a move in words: English, filled with the figures of `agents.reasons`."""

from dataclasses import asdict
from typing import Any

from agents.reasons import OpensCorner, Parity, Reason, StableDiscs
from reversi_env import Position

# By kind; parity has one for each way to settle it. A count before a colon is told with that noun, or with its sign.
PHRASES = {
    "only_move": "is the only move",
    "wipes_out": "flips the opponent's last {num_flipped:disc}",
    "exact_score": "ends with {score:+} if both play perfectly",
    "loses_discs": "ends {regret:disc} worse than {best_moves}",
    "takes_corner": "takes the corner {corner}",
    "opens_corner": "lets the opponent take the corner {corner}, through {through}",
    "risks_corner": "stands diagonally beside the empty corner {corner}",
    "opponent_passes": "makes the opponent pass, and has {num_own_moves:move} then",
    "replies": "leaves the opponent {num_replies:move}, {num_safe} safe",
    "parity.mover": "gets the last move in the region {region}",
    "parity.opponent": "leaves the opponent the last move in the region {region}",
    "parity.shut_out": "plays in the region {region}, where the opponent cannot",
    "stable_discs": "makes {num_gained:disc} stable",
    "mobility": "has {num_own_moves:move} after the likely reply",
    "flips_discs": "flips {num_flipped:disc}, frontier {num_frontier:+}",
}
_SQUARES = ("corner", "x_square")  # fields that are one square; tuples are always of squares


class _Count(int):
    """A number that a phrase tells with its noun, `{:move}`, or with its sign, `{:+}`."""

    def __format__(self, noun: str) -> str:
        if noun in ("", "+"):
            return f"{int(self):{noun}d}" if self else "0"
        return f"{self or 'no'} {noun}{'' if self == 1 else 's'}"


def phrase(reason: Reason, position: Position) -> str:
    """Returns a reason for or against a move in `position` as half a sentence, whose subject is the move."""
    told: dict[str, str | _Count] = {}
    for name, figure in figures(reason, position).items():
        if isinstance(figure, list):
            told[name] = " ".join(figure)
        else:
            told[name] = _Count(figure) if isinstance(figure, int) else str(figure)
    match reason:
        case OpensCorner(x_square=x_square, c_squares=c_squares):
            through = (*c_squares, *(() if x_square is None else (x_square,)))
            told["through"] = " ".join(map(position.move_name, through))
        case StableDiscs(gained=gained):
            told["num_gained"] = _Count(len(gained))
    return PHRASES[_key(reason)].format(**told)


def figures(reason: Reason, position: Position) -> dict[str, Any]:
    """Returns what a reason says beside its kind, as JSON has it: squares by name."""
    return {
        name: [*map(position.move_name, figure)]
        if isinstance(figure, tuple)
        else position.move_name(figure)
        if name in _SQUARES and figure is not None
        else figure
        for name, figure in asdict(reason).items()
    }


def _key(reason: Reason) -> str:
    if not isinstance(reason, Parity):
        return reason.kind
    if reason.is_opponent_shut_out:
        return f"{reason.kind}.shut_out"
    return f"{reason.kind}.{'mover' if reason.is_mover_last else 'opponent'}"
