"""Writes a data set of games: random ones, or recorded ones, as sequences of squares for learners.

    reversi records dataset sequences --games 200000
    reversi records dataset sequences --games 1000000 --seed 1 --variant othello-6x6 --passes mark
    reversi records dataset tournament wthor/*.wtb

The folder holds shards as NumPy files, a game a row (uint8, padded with 255), their final scores, and a manifest;
`reversi_env.shards.open_dataset` reads it. Random games are those of the seed; where their making was stopped, the same
command goes on. Of recorded games those of one variant are taken, the first game's unless one is named; a game that is
no game is left out, with a sentence.
"""

import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.arguments import UsageError, parse, setting
from experiments.records.faults import Faults
from reversi_env import Variant
from reversi_env.durable import check_free
from reversi_env.records.formats import FORMATS, format_of, read_records
from reversi_env.records.record import GameRecord, RecordError
from reversi_env.shards import PASSES, Plan, write_random_games, write_recorded_games

GAMES = 1_000_000


@dataclass
class DatasetSettings:
    """What the data set holds, and how."""

    games: int | None = setting(None, f"random games in all (default: {GAMES})")
    seed: int | None = setting(None, "of the random games (default: 0)")
    variant: str | None = setting(None, f"{', '.join(Variant.NAMES)}; else othello, or that of the first recorded game")
    games_per_shard: int = setting(100_000, "games in a file; so many are held in memory")
    passes: str = setting("omit", f"{' or '.join(PASSES)}: left out of the sequences, or written as size²")
    json: bool = setting(False, "print figures as JSON")


def main(arguments: list[str]) -> int:
    """Runs `reversi records dataset`."""
    words, settings = parse("records dataset", "FOLDER [FILE ...]", DatasetSettings, __doc__ or "", arguments)
    if not words:
        raise UsageError("a data set in which folder? reversi records dataset FOLDER [FILE ...]")
    folder, *files = words
    if Path(folder).suffix.lower() in FORMATS:
        raise UsageError(f"{folder} is called like a file of records; it comes behind the FOLDER to write")
    began = time.process_time()
    plan = _write_recorded(Path(folder), files, settings) if files else _write_random(Path(folder), settings)
    cpu_s = time.process_time() - began
    if settings.json:
        figures = {
            "folder": folder,
            "variant": plan.variant.name,
            "games": plan.num_games,
            "shards": plan.num_shards,
            "cpu_s": cpu_s,
            "games_per_cpu_s": plan.num_games / max(cpu_s, time.get_clock_info("process_time").resolution),
        }
        print(json.dumps(figures))
    else:
        print(f"{folder}: {plan.num_games:,} games of {plan.variant.name}, {plan.num_shards} shards, {cpu_s:.3g} CPU s")
    return 0


def _write_random(folder: Path, settings: DatasetSettings) -> Plan:
    games = GAMES if settings.games is None else settings.games
    variant = Variant.named(settings.variant or "othello")
    plan = Plan(variant, games, settings.games_per_shard, settings.passes)
    write_random_games(folder, plan, settings.seed or 0, _show_progress)
    return plan


def _show_progress(shards: int, num_shards: int, was_there: bool) -> None:
    """Writes the finished shards over the last line of stderr; nothing where that is no terminal."""
    if sys.stderr.isatty():
        end = "\n" if shards == num_shards else ""
        print(
            f"\r{shards} of {num_shards} shards{', there already' * was_there:<16}",
            end=end,
            file=sys.stderr,
            flush=True,
        )


def _write_recorded(folder: Path, files: Sequence[str], settings: DatasetSettings) -> Plan:
    for name in ("games", "seed"):
        if getattr(settings, name) is not None:
            raise UsageError(f"{name} is for random games, and files of recorded ones are given")
    for file in files:
        if format_of(file).record is not GameRecord:
            raise UsageError(f"{file} holds no games")
    check_free(folder)
    named = None if settings.variant is None else Variant.named(settings.variant)
    faults = Faults()
    games = _games(files, faults, named)
    first = next(games, None)
    if first is None:
        raise RecordError(f"there is no game without a fault in {', '.join(files)}")
    variant = named or first[1].variant
    alike = _alike(itertools.chain([first], games), variant, faults)
    plan = write_recorded_games(
        folder, alike, variant, [Path(file).name for file in files], settings.games_per_shard, settings.passes
    )
    faults.print_number()
    return plan


def _games(files: Sequence[str], faults: Faults, variant: Variant | None) -> Iterator[tuple[str, GameRecord]]:
    """Yields the games of the files, with their places."""
    for file in files:
        for number, record in enumerate(read_records(file, faults.add, variant), start=1):
            assert isinstance(record, GameRecord)
            yield f"{file}: sound game {number}", record


def _alike(games: Iterator[tuple[str, GameRecord]], variant: Variant, faults: Faults) -> Iterator[GameRecord]:
    """Yields the games that are played by the variant's rules, and finds fault with the others."""
    for place, game in games:
        if game.variant.is_played_like(variant):
            yield game
        else:
            faults.add(RecordError(f"it is of {game.variant.name}, and not of {variant.name}").at(place))
