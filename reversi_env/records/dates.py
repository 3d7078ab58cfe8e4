"""Dates as records tell them: 2003-12-15, 2000-4-16 11:13 EST, 2003.12.15_12:33:18.MST, 2003, or seconds since 1970."""

import datetime
import re
from functools import lru_cache
from typing import NamedTuple

_DATE = re.compile(r"(\d{1,5})(?:[-./](\d{1,2})(?:[-./](\d{1,2}))?)?(?![^\s_,;T])", re.ASCII)
_SECONDS = re.compile(r"\d{9,10}", re.ASCII)  # 1973 to 2286


class Date(NamedTuple):
    """A year, and a month and a day where they are told; sorts by time."""

    year: int
    month: int = 0
    day: int = 0

    def __str__(self) -> str:
        return f"{self.year:04}" + "".join(f"-{part:02}" for part in self[1:] if part)


@lru_cache(maxsize=4096)
def parse_date(text: str) -> Date | None:
    """Returns the date with which a text begins, or None where it begins with none."""
    text = text.strip()
    if _SECONDS.fullmatch(text):
        moment = datetime.datetime.fromtimestamp(int(text), datetime.UTC)
        return Date(moment.year, moment.month, moment.day)
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day = (int(part or 0) for part in match.groups())
    if month > 12 or day > 31:
        return Date(year)
    return Date(year, month, day if month else 0)
