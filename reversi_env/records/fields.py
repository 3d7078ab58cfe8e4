"""What GGF and SGF write alike beside the moves: numbers, clocks, results, rules, texts, and what neither can say.

Properties of our own carry what the formats lack, so that a record survives them whole:

    RU[start=free goal=most scoring=board]     the rules, where a reader would not take them for granted
    WTHOR[tournament black white discs depth]  `WthorFacts`
    TEXT[PB:…]                                 a text with control characters, of the property named, percent-encoded
    TAG[name:…]                                a tag that cannot stand under its own name, percent-encoded
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias, TypedDict
from urllib.parse import quote, unquote

from reversi_env.records.properties import escape
from reversi_env.records.record import Clock, GameRecord, RecordError, WthorFacts
from reversi_env.variant import GOALS, SCORINGS, STARTS, Variant

CARRIERS = ("RU", "WTHOR", "TEXT", "TAG")

_MAX_NUMBER_LENGTH = 40
_MAX_RULES_LENGTH = 100
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_FIVE_INTEGERS = re.compile(r"\s+".join([r"(-?\d{1,9})"] * 5), re.ASCII)
_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LINE_BREAK = re.compile(r"\r\n?|\n\r?|[\t\v\f]")
_FLAGS = {"r": "resignation", "t": "timeout", "s": "agreement"}
_GIVEN = "given"  # a start that is a board, though it may look like one with a name

Root: TypeAlias = dict[str, str]
"""The properties of a record by upper-case name, several values of one in lines of their own. Reading takes out what it
understands, and the rest are tags."""


def root_from(entries: Iterable[tuple[str, str]]) -> Root:
    """Returns the properties of these names and values."""
    values: dict[str, list[str]] = {}
    for name, value in entries:
        values.setdefault(name, []).append(value)
    return {name: "\n".join(of_name) for name, of_name in values.items()}


# Numbers


def parse_number(text: str) -> float | None:
    """Returns the finite number that a text is, or None."""
    text = text.strip()
    if len(text) > _MAX_NUMBER_LENGTH or not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def number_text(number: float) -> str:
    """Returns the shortest text that `parse_number` reads as this number; raises RecordError where there is none."""
    try:
        written = float(number)
    except OverflowError:
        written = math.inf
    if not math.isfinite(written) or written != number:
        told = number if math.isfinite(written) else written
        raise RecordError(f"{told} is no number that can be written; numbers are finite, integers at most 2^53")
    return repr(written).removesuffix(".0")


def signed_text(number: float) -> str:
    """Returns the text of a number with its sign, also where that is a plus."""
    text = number_text(number)
    return text if text.startswith("-") else f"+{text}"


def take_number(root: Root, name: str) -> float | None:
    """Takes a property out where it is a number, and returns it."""
    number = parse_number(root.get(name, ""))
    if number is not None:
        del root[name]
    return number


def number_property(name: str, number: float | None) -> str:
    return "" if number is None else f"{name}[{number_text(number)}]"


# Clocks: main time/increment/extension, each as seconds, minutes:seconds or hours:minutes:seconds


def parse_clock(text: str) -> Clock | None:
    """Returns the clock of "05:00//02:00", or None for a text that is none, or says more than a `Clock` can."""
    parts = text.split("/")
    if not text.strip() or len(parts) > 3:
        return None
    main, increment, extension = map(_parse_time, [*parts, "", ""][:3])
    if main is None or increment is None or extension is None:
        return None
    return Clock(main, increment, extension)


def _parse_time(text: str) -> float | None:
    if not text.strip():
        return 0.0
    seconds = 0.0
    for part in text.split(":"):
        number = parse_number(part)
        if number is None:
            return None
        seconds = 60 * seconds + number
    return seconds if math.isfinite(seconds) else None


def clock_text(clock: Clock) -> str:
    """Returns what `parse_clock` reads as this clock."""
    increment = _time_text(clock.increment_s) if clock.increment_s else ""
    return f"{_time_text(clock.main_s)}/{increment}/{_time_text(clock.extension_s)}"


def _time_text(seconds: float) -> str:
    if not 0 <= seconds < 1e9 or seconds != int(seconds):
        return number_text(seconds)  # the only spelling that is exact
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


# Results: black's score, and how the game ended if before its end


def take_result(root: Root, name: str) -> tuple[int | None, str]:
    """Takes a property out where it is a result, and returns the score and the ending."""
    result = _parse_result(root.get(name, ""))
    if result is None:
        return None, ""
    del root[name]
    return result


def _parse_result(text: str) -> tuple[int | None, str] | None:
    """Returns the score and the ending of "+12.000:r", either of which may be absent, or None for what is no result."""
    score_text, colon, flag = text.strip().partition(":")
    score = parse_number(score_text)
    ending = _FLAGS.get(flag.strip().lower(), "")
    if bool(colon) != bool(ending) or (score is None and score_text.strip()) or (score is None and not ending):
        return None
    if score is not None and not score.is_integer():
        return None
    return None if score is None else int(score), ending


def result_text(record: GameRecord) -> str:
    """Returns what `take_result` reads as the record's score and ending; empty where it has neither."""
    text = "" if record.black_score is None else signed_text(record.black_score)
    if record.ending:
        text += ":" + next(flag for flag, ending in _FLAGS.items() if ending == record.ending)
    return text


# Rules


@lru_cache(maxsize=256)
def variant_from(board: str, side: str, goal: str, rules: str = "") -> Variant | None:
    """Returns the variant of a game that begins with this board, size² of "X", "O" and "-", or None for a fault.

    The goal and tournament scoring hold where `rules`, the value of RU, does not say otherwise; a board that is the
    Othello diagonal or the parallel start is taken for that. None is returned where `rules` are none of ours.
    """
    size = math.isqrt(len(board))
    words = dict(word.partition("=")[::2] for word in rules.split())
    start = words.pop("start", "")
    variant_words = {"goal": goal, "scoring": "tournament", **words}
    if len(variant_words) > 2 or variant_words["goal"] not in GOALS or variant_words["scoring"] not in SCORINGS:
        return None
    if start not in ("", _GIVEN, *STARTS):
        return None
    variant = Variant(size=size, goal=variant_words["goal"], scoring=variant_words["scoring"])
    if start == "free":
        return replace(variant, start=start)
    for named in ("diagonal", "parallel"):
        if start != _GIVEN and replace(variant, start=named).start_board == (board, side):
            return replace(variant, start=named)
    return variant.with_start(f"{board} {side}")


def take_variant(root: Root, board: str, side: str, goal: str = "most") -> Variant:
    """Returns the variant of a game that begins with this board, and takes RU out where the rules in it are ours."""
    rules = root.get("RU", "")
    variant = variant_from(board, side, goal, rules) if 0 < len(rules) <= _MAX_RULES_LENGTH else None
    if variant is not None:
        del root["RU"]
        return variant
    variant = variant_from(board, side, goal)
    assert variant is not None  # without rules nothing can be wrong with them
    return variant


def rules_property(variant: Variant, goal: str = "most") -> str:
    """Returns RU where a reader would not guess the variant from its board and `goal`."""
    board, side = variant.start_board
    if variant_from(board, side, goal) == variant:
        return ""
    start = variant.start if variant.start in STARTS else _GIVEN
    return f"RU[start={start} goal={variant.goal} scoring={variant.scoring}]"


# Texts


def take_text(root: Root, name: str) -> str:
    """Takes a text of one line out and returns it; line breaks and tabs in it are blanks."""
    text = _LINE_BREAK.sub(" ", root.pop(name, ""))
    return _entries(root["TEXT"]).get(name, text) if "TEXT" in root else text


def text_properties(record: GameRecord) -> str:
    """Returns properties with those texts of a record that are not empty; `take_circumstances` reads them back."""
    texts = {"DT": record.date, "EV": record.event, "PB": record.black, "PW": record.white}
    plain = "".join(f"{name}[{escape(_CONTROL.sub(' ', text))}]" for name, text in texts.items() if text)
    return plain + _entry_list("TEXT", {name: text for name, text in texts.items() if _CONTROL.search(text)})


def take_tags(root: Root) -> dict[str, str]:
    """Returns what is left of the properties as tags, and those that could not stand under their names."""
    root.pop("TEXT", None)
    carried = _entries(root.pop("TAG", ""))
    return {**root, **carried}


def tag_properties(tags: Mapping[str, str], taken: Collection[str]) -> str:
    """Returns properties with these tags; names that are `taken`, by properties of the format, go into TAG."""
    plain, carried = "", {}
    for name, text in tags.items():
        if name in taken or not _NAME.fullmatch(name) or _CONTROL.search(text.replace("\n", "")):
            carried[name] = text
        else:
            plain += f"{name}[{escape(text)}]"
    return plain + _entry_list("TAG", carried)


def _entries(text: str) -> dict[str, str]:
    pairs = [entry.partition(":") for entry in text.split()]
    return {unquote(name): unquote(value) for name, colon, value in pairs if colon}


def _entry_list(name: str, entries: dict[str, str]) -> str:
    values = "".join(f"[{quote(key, safe='')}:{quote(text, safe='')}]" for key, text in entries.items())
    return f"{name}{values}" if values else ""


# Who, when and where


class Circumstances(TypedDict):
    """What a `GameRecord` holds beside the game, under names that both formats share."""

    black: str
    white: str
    date: str
    event: str
    wthor: WthorFacts | None
    tags: dict[str, str]


def take_circumstances(root: Root) -> Circumstances:
    """Takes out all that is left."""
    return Circumstances(
        black=take_text(root, "PB"),
        white=take_text(root, "PW"),
        date=take_text(root, "DT"),
        event=take_text(root, "EV"),
        wthor=take_wthor(root),
        tags=take_tags(root),
    )


# WTHOR


def take_wthor(root: Root) -> WthorFacts | None:
    """Takes WTHOR out where it is five integers, and returns the facts."""
    numbers = _FIVE_INTEGERS.fullmatch(root.get("WTHOR", ""))
    if numbers is None:
        return None
    del root["WTHOR"]
    return WthorFacts(*map(int, numbers.groups()))


def wthor_property(facts: WthorFacts | None) -> str:
    if facts is None:
        return ""
    numbers = (facts.tournament, facts.black, facts.white, facts.theoretical_discs, facts.theoretical_depth)
    text = " ".join(map(str, numbers))
    if not _FIVE_INTEGERS.fullmatch(text):
        raise RecordError(f"WTHOR's numbers are integers of at most nine digits, not {text}")
    return f"WTHOR[{text}]"
