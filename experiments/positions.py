"""Positions as words of a command line: a board with its side to move, or the moves of a game so far."""

import re
from dataclasses import replace

from reversi_env import Game, Position, Variant
from reversi_env.naming import UsageError

_TRANSCRIPT = re.compile(r"\s*(?:1\s*\.\s*)?[a-j](?:10|[1-9])", re.IGNORECASE)  # how the moves of a game begin
_BOARD = re.compile(r"\s*[-._·?Xx*Bb●Oo0Ww○]{2,}(?:\s|$)|.*\n", re.DOTALL)  # how a board begins, or a drawing


def looks_like_position(word: str) -> bool:
    """Returns whether a word is meant for a position, perhaps a faulty one, rather than for an agent or a file."""
    is_transcript = _TRANSCRIPT.match(word) and not any(mark in word for mark in ":/")  # b1/x, b1.py:Bot
    return bool(is_transcript or _BOARD.match(word))


def start_position(variant: Variant | None, scoring: str | None = None) -> Position:
    """Returns the start of a variant, or of Othello, under another scoring where one is given."""
    return Position(_scored(variant or Variant(), scoring))


def read_position(text: str, variant: Variant | None, scoring: str | None = None) -> Position:
    """Returns the position that a board or the moves of a game show; raises UsageError for a text that shows none.

    Without a variant the rules are Othello's, for a board those of its size.
    """
    is_transcript = _TRANSCRIPT.match(text)
    try:
        if is_transcript:
            return Game.from_transcript(text, start_position(variant, scoring)).position
        if variant is None:
            variant = Position.from_text(text).variant
        return Position.from_text(text, _scored(variant, scoring))
    except ValueError as error:
        raise UsageError(f"{'moves' if is_transcript else 'position'}: {error}") from None


def _scored(variant: Variant, scoring: str | None) -> Variant:
    return variant if scoring is None else replace(variant, scoring=scoring)
