"""What GGF and SGF write alike beside the moves: numbers, clocks, results, rules, texts, and what neither can say.

Properties of our own carry what the formats lack, so that a record survives them whole:

    RU[start=free goal=most scoring=board]     the rules, where a reader would not take them for granted
    WTHOR[tournament black white discs depth]  `WthorFacts`
    TEXT[PB:…]                                 a text with control characters, of the property named, percent-encoded
    TAG[name:…]                                a tag that cannot stand under its own name, percent-encoded
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import compress
from typing import NamedTuple, TypeAlias, TypedDict
from urllib.parse import quote, unquote

from reversi_env.geometry import SIZES
from reversi_env.notation import BLACK, parse_move, square_name
from reversi_env.records.properties import Properties, escape
from reversi_env.records.record import Clock, GameRecord, RecordError, WthorFacts, place_moves, shown
from reversi_env.variant import GOALS, SCORINGS, STARTS, Variant

BLACK_MOVE, WHITE_MOVE = "B", "W"
CARRIERS = ("RU", "WTHOR", "TEXT", "TAG")

_MAX_NUMBER_LENGTH = 40
_MAX_RULES_LENGTH = 100
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_FIVE_INTEGERS = re.compile(r"\s+".join([r"(-?\d{1,9})"] * 5), re.ASCII)
_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LINE_BREAK = re.compile(r"\r\n?|\n\r?|[\t\v\f]")
_BLACK_FIRST = (BLACK_MOVE, WHITE_MOVE) * (SIZES[-1] ** 2 + 1)
_WHITE_FIRST = (WHITE_MOVE, BLACK_MOVE) * (SIZES[-1] ** 2 + 1)
_MOVES = frozenset((BLACK_MOVE, WHITE_MOVE))
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


def encode(text: str) -> bytes:
    """Returns a record as UTF-8; raises RecordError where it has half of a surrogate pair, which no file can hold."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"{shown(text[error.start : error.end])} is no character that a file can hold") from None


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
    if not math.isfinite(number) or float(number) != number:
        raise RecordError(f"{number} is no number that can be written; numbers are finite, integers at most 2^53")
    return repr(float(number)).removesuffix(".0")


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


def text_properties(texts: dict[str, str]) -> str:
    """Returns properties with those of these texts, by name, that are not empty; `take_text` reads them back."""
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


# Moves


@lru_cache
def move_names(size: int) -> tuple[str, ...]:
    """Returns the names of the squares of a board and of the pass, in the order of their numbers."""
    return tuple(square_name(move, size) for move in range(size * size + 1))


@lru_cache
def _moves_by_name(size: int) -> dict[str, int]:
    names = {name: move for move, name in enumerate(move_names(size))}
    return {**names, **{name.upper(): move for name, move in names.items()}, "": size * size}


class Told(NamedTuple):
    """The properties of a record, its moves apart: bare ones, or else any."""

    run: list[str]  # bare moves, each like "B[f5"
    colors: list[str]  # of other moves, BLACK_MOVE or WHITE_MOVE
    moves: list[str]
    nodes: Sequence[int]  # where the moves stand
    others: list[tuple[str, str, int]]  # name, value, node


def told_by(properties: Properties) -> Told:
    """Returns the properties, the moves apart from the others."""
    names, values, nodes, run = properties
    others = [entry for entry in zip(names, values, nodes, strict=False) if entry[0] not in _MOVES]
    run_nodes = range(nodes[-1], nodes[-1] + len(run))
    if len(others) == len(names):
        return Told(run, [], [], run_nodes, others)
    is_move = [name in _MOVES for name in names]
    return Told(
        [],
        [*compress(names, is_move), *(play[0] for play in run)],
        [*compress(values, is_move), *(play[2:] for play in run)],
        [*compress(nodes, is_move), *run_nodes],
        others,
    )


@lru_cache
def _plays_by_text(size: int) -> dict[str, tuple[str, int]]:
    names = enumerate(move_names(size))
    return {f"{color}[{name}": (color, move) for move, name in names for color in (BLACK_MOVE, WHITE_MOVE)}


def parse_plays(told: Told, names: Sequence[str], size: int) -> tuple[Sequence[str], Sequence[int]]:
    """Returns the colors and the moves told; `names` are those of `told.moves`. Raises RecordError as `parse_moves`."""
    if not told.run:
        return told.colors, parse_moves(names, size)
    known = _plays_by_text(size)
    try:
        colors, moves = zip(*map(known.__getitem__, told.run), strict=True)
    except KeyError:
        return (), parse_moves([play[2:] for play in told.run], size)  # which says what is wrong
    return colors, moves


def parse_moves(names: Sequence[str], size: int) -> list[int]:
    """Returns the moves of these names, an empty one being a pass; raises RecordError for the first that is none."""
    known = _moves_by_name(size)
    try:
        return list(map(known.__getitem__, names))
    except KeyError:
        return [_parse_move(name, size) for name in names]


def _parse_move(name: str, size: int) -> int:
    try:
        return parse_move(name, size) if name.strip() else size * size
    except ValueError:
        last = square_name(size * size - 1, size)
        right = f"squares are a1 to {last}, a pass is 'pass'"
        raise RecordError(f"{shown(name.strip())} is not a square of {size}×{size}; {right}") from None


def movers(variant: Variant) -> Sequence[str]:
    """Returns whose turn it is, BLACK_MOVE or WHITE_MOVE, at each ply of the longest game."""
    return _BLACK_FIRST if variant.start_board[1] == BLACK else _WHITE_FIRST


class Play(TypedDict):
    """What a `GameRecord` holds of the moves."""

    moves: tuple[int, ...]
    evaluations: tuple[float | None, ...]
    times_s: tuple[float | None, ...]


def play_from(
    variant: Variant,
    colors: Sequence[str],
    told: Sequence[int],
    evaluations: Sequence[float | None],
    times_s: Sequence[float | None],
) -> Play:
    """Returns the moves told, each by the color BLACK_MOVE or WHITE_MOVE, with the passes left out put in.

    `evaluations` and `times_s` have one entry for each move told, or none at all. Raises RecordError where a move is
    not legal or not its color's.
    """
    moves, plies = place_moves(variant, told)
    turns = movers(variant)
    expected = tuple([turns[ply] for ply in plies])
    if expected != tuple(colors[: len(expected)]):
        number = next(number for number, turn in enumerate(expected) if colors[number] != turn)
        move = f"{colors[number]}[{move_names(variant.size)[told[number]]}]"
        turn = "black" if expected[number] == BLACK_MOVE else "white"
        raise RecordError(f"move {number + 1}, {move}, is out of turn; it is {turn}'s")
    return Play(
        moves=moves,
        evaluations=_spread(evaluations, plies, len(moves)),
        times_s=_spread(times_s, plies, len(moves)),
    )


def _spread(values: Sequence[float | None], plies: Sequence[int], length: int) -> tuple[float | None, ...]:
    """Returns one value for each of `length` plies: those told at `plies`, and None at passes put in; () for none."""
    if not values:
        return ()
    spread: list[float | None] = [None] * length
    for ply, value in zip(plies, values, strict=False):
        spread[ply] = value
    return tuple(spread)
