"""Says what files of records hold, replays every game, and names what is wrong.

    reversi records info games.ggf
    reversi records info wthor/*.wtb --json

The format is that of the file's ending: .wtb (WTHOR), .ggf, .sgf, .txt (transcripts, a game a line) or .obf (endgame
problems). A result agrees when it is the score that the moves lead to under the variant's scoring. Exit code 1 when a
file has faults.
"""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.arguments import UsageError, parse, setting
from experiments.records.transcripts import variant_of_transcripts
from experiments.tables import print_figures
from reversi_env import Position, Variant
from reversi_env.records.dates import Date, parse_date
from reversi_env.records.formats import format_of, read_records
from reversi_env.records.record import GameRecord, RecordError
from reversi_env.replay import moves_array, replay

SHOWN_FAULTS = 3  # of each file, in full
BATCH = 4096  # records that are replayed together
COUNTS = (
    "games",
    "finished",
    "unfinished",
    "problems",
    "faults",
    "wipeouts",  # finished games that leave one side without a disc
    "draws",
    "results_told",
    "results_agreeing",
)
HEADER = (
    "file",
    "format",
    "games",
    "finished",
    "unfinished",
    "problems",
    "faults",
    "passes at most",
    "wipe-outs",
    "draws",
    "results agreeing",
    "players",
    "dates",
)


@dataclass
class InfoSettings:
    """What is assumed, and how the figures are printed."""

    variant: str | None = setting(None, "of transcripts, which do not say it (default: othello, tournament scoring)")
    json: bool = setting(False, "print figures as JSON")


@dataclass
class Summary:
    """What a file, or all files, hold; of the results told, those of finished games count."""

    file: str
    format: str
    counts: Counter[str] = field(default_factory=Counter)  # of COUNTS
    most_passes: int = 0  # in one game
    first_faults: list[str] = field(default_factory=list)
    players: set[str] = field(default_factory=set)
    first_date: Date | None = None  # of the dates that can be read
    last_date: Date | None = None

    def add_fault(self, error: RecordError) -> None:
        self.counts["faults"] += 1
        if len(self.first_faults) < SHOWN_FAULTS:
            self.first_faults.append(str(error))

    def add_games(self, games: Sequence[GameRecord]) -> None:
        """Counts games of one variant."""
        start = Position(games[0].variant)
        moves = moves_array([game.moves for game in games])
        played = replay(start, moves)
        scores = played.black_scores
        is_bare = (played.black_discs == 0) | (played.white_discs == 0)
        is_told = played.is_over & [game.black_score is not None for game in games]
        found = {
            "finished": played.is_over,
            "unfinished": ~played.is_over,
            "wipeouts": played.is_over & is_bare,
            "draws": scores == 0,
            "results_told": is_told,
            "results_agreeing": is_told & (scores == [game.black_score or 0 for game in games]),
        }
        self.counts.update({name: int(is_so.sum()) for name, is_so in found.items()}, games=len(games))
        num_passes = (played.moves == start.variant.pass_move).sum(1)
        self.most_passes = max(self.most_passes, int(num_passes.max()))
        for game in games:
            self.players.update(_players_of(game))
        for date in {game.date for game in games}:
            self._add_date(parse_date(date))

    def add(self, other: "Summary") -> None:
        """Counts what another file holds."""
        self.counts.update(other.counts)
        self.most_passes = max(self.most_passes, other.most_passes)
        self.players |= other.players
        self._add_date(other.first_date)
        self._add_date(other.last_date)

    def _add_date(self, date: Date | None) -> None:
        if date:
            self.first_date = min(self.first_date or date, date)
            self.last_date = max(self.last_date or date, date)

    def figures(self) -> dict[str, Any]:
        """Returns what `--json` prints."""
        counts = {name: self.counts[name] for name in COUNTS}
        dates = {"first_date": _shown(self.first_date), "last_date": _shown(self.last_date)}
        return {**vars(self), "counts": counts, "players": len(self.players), **dates}

    def row(self) -> list[str]:
        """Returns what a line of the table shows under `HEADER`."""
        counts = self.counts
        first, last = _shown(self.first_date), _shown(self.last_date)
        return [
            self.file,
            self.format,
            *(str(counts[name]) for name in ("games", "finished", "unfinished", "problems", "faults")),
            str(self.most_passes),
            *(str(counts[name]) for name in ("wipeouts", "draws")),
            f"{counts['results_agreeing']} of {counts['results_told']}",
            str(len(self.players)),
            f"{first} – {last}" if first != last else first,
        ]


def _shown(date: Date | None) -> str:
    return "" if date is None else str(date)


def summary_of(path: str, variant: Variant | None = None) -> Summary:
    """Returns what a file holds, transcripts of `variant`.

    Raises UnknownNameError for an ending that no format has, and OSError.
    """
    summary = Summary(path, format_of(path).name)
    records = read_records(path, summary.add_fault, variant)
    while batch := list(itertools.islice(records, BATCH)):
        games: dict[Variant, list[GameRecord]] = defaultdict(list)
        for record in batch:
            if isinstance(record, GameRecord):
                games[record.variant].append(record)
            else:
                summary.counts["problems"] += 1
        for group in games.values():
            summary.add_games(group)
    return summary


def _players_of(game: GameRecord) -> set[str]:
    """Returns the names of a game's players, or what stands for them."""
    numbers = (game.wthor.black, game.wthor.white) if game.wthor else (None, None)
    sides = zip((game.black, game.white), numbers, strict=True)
    return {name or f"WTHOR {number}" for name, number in sides if name or number is not None}


def main(arguments: list[str]) -> int:
    """Runs `reversi records info`."""
    files, settings = parse("records info", "FILE [FILE ...]", InfoSettings, __doc__ or "", arguments)
    if not files:
        raise UsageError("info on which files? reversi records info FILE [FILE ...]")
    for file in files:
        format_of(file)  # a file of an unknown format is named before the first is read
    variant = variant_of_transcripts(settings.variant, files)
    summaries: list[Summary] = []
    try:
        summaries.extend(summary_of(file, variant) for file in files)
    finally:  # one file that is not there need not cost the work on the others
        _print(summaries, settings.json)
    return 1 if any(summary.counts["faults"] for summary in summaries) else 0


def _print(summaries: Sequence[Summary], as_json: bool) -> None:
    """Prints what the files hold, and what is in all of them; nothing where there is none."""
    if not summaries:
        return
    total = Summary("total", "")
    for summary in summaries:
        total.add(summary)
    if as_json:
        figures = {"files": [summary.figures() for summary in summaries], "total": total.figures()}
        print(json.dumps(figures, indent=1))
    else:
        print_figures(HEADER, [summary.row() for summary in (*summaries, *([total] if len(summaries) > 1 else []))])
        for summary in summaries:
            _print_faults(summary)


def _print_faults(summary: Summary) -> None:
    for fault in summary.first_faults:
        print(fault)
    if more := summary.counts["faults"] - len(summary.first_faults):
        print(f"{summary.file}: and {more} more faults")
