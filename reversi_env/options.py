"""What can be chosen of an environment, and checked alike for one game and for many."""

from reversi_env.naming import one_of
from reversi_env.position import Position
from reversi_env.variant import Variant

COLORS = ("black", "white", "random")
REWARDS = ("result", "score")
ILLEGAL_ACTIONS = ("terminate", "raise")
RESET_OPTIONS = ("position", "color")


def checked_color(color: str, has_opponent: bool) -> str:
    """Returns the learner's color; raises ValueError for what is none, and for one that has no meaning."""
    one_of("color", color, COLORS)
    if not has_opponent and color != "black":
        raise ValueError(f"color {color!r} is the learner's, but with opponent=None the caller moves both sides")
    return color


def checked_position(variant: Variant, given: object) -> Position:
    """Returns the position that a game begins from: the start where None is given, or what a text shows.

    Raises ValueError where it belongs to another variant or nothing is left to play, TypeError for what is none.
    """
    if given is None:
        position = Position(variant)
    elif isinstance(given, str):
        position = Position.from_text(given, variant)
    elif isinstance(given, Position):
        position = given
    else:
        raise TypeError(f"the option position is a Position or the text of one, not {given!r}")
    if position.variant != variant:
        raise ValueError(f"the position is one of {position.variant.name}, the environment of {variant.name}")
    if position.is_over:
        raise ValueError(f"the game is already over in {position.text}, so nothing is left to play")
    return position
