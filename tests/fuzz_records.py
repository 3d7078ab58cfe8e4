"""Feeds the readers of records with damaged files and says what they cannot bear.

    python -m tests.fuzz_records
    python -m tests.fuzz_records ggf sgf --megabytes 100 --seed 1
    python -m tests.fuzz_records --seconds 60

Sound files are mutated, case by case, and read, as a file and again with a taker of faults. Nothing may come of it but
records and RecordErrors, in time that grows with the size alone and in little memory; and what was read is written and
read again as the same. A case that fails is printed with its cause and kept as a file. Exit code 1 when there is one.

Case n of a seed is the same in every run. `--seconds` are shared by the formats, `--megabytes` are of each.
"""

import argparse
import io
import math
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from reversi_env import Position, Variant, random_games
from reversi_env.records import ggf, obf, sgf, transcript, wthor
from reversi_env.records.record import GameRecord, OnFault, ProblemRecord, RecordError, WthorFacts
from reversi_env.replay import moves_array, replay

SHARED_GGF = Path(__file__).parents[2] / "shared" / "data" / "games.ggf"
NUM_WRITTEN = 20  # records of a case that are written and read again
LARGEST = 1 << 20  # bytes of a case
MOST_MEMORY = 256 << 20  # bytes more than before
SLOWEST_S = 0.5, 50e-6  # CPU seconds of a case, and of each of its bytes: several times what the slowest take


# Sound files


def _records(variant: Variant, number: int) -> list[GameRecord]:
    games = random_games(Position(variant), number, seed=1)
    return [
        GameRecord(variant, tuple(moves[:length]), "Ada", "Bób [x]", score, date="2003-12-15", event="Cup \\ 1")
        for moves, length, score in zip(
            games.moves.tolist(), games.lengths.tolist(), games.black_scores.tolist(), strict=True
        )
    ]


def _written(write: Callable[[BinaryIO, Iterable[Any]], object], records: Iterable[Any]) -> bytes:
    file = io.BytesIO()
    write(file, records)
    return file.getvalue()


def _games() -> list[GameRecord]:
    facts = WthorFacts(tournament=1, black=2, white=3, theoretical_discs=32, theoretical_depth=24)
    games = _records(Variant(scoring="tournament"), 8)
    return [*games, *(replace(game, wthor=facts) for game in games[:2])]


def _text_games(write: Callable[[BinaryIO, Iterable[Any]], object]) -> list[bytes]:
    others = [Variant(6), Variant(10), Variant(start="parallel")]
    return [_written(write, _games()), *(_written(write, _records(variant, 2)) for variant in others)]


def _ggf_files() -> list[bytes]:
    shared = [b"\n".join(SHARED_GGF.read_bytes().splitlines()[:4])] if SHARED_GGF.exists() else []
    made = b"1 (;GM[Othello]PC[x]PB[a]PW[b]TI[05:00/00:10/02:00]TY[s8r20]RE[+4.000:t]BO[8 " + b"-" * 27
    made += b"O*------*O" + b"-" * 27 + b" *]B[F5/1.5/2]W[d6//3]B[c3]W[D3];)\r\n"
    return [*shared, made, *_text_games(ggf.write)]


def _sgf_files() -> list[bytes]:
    made = b"(;FF[4]GM[2]SZ[8]AB[e4][d5]AW[d4]\r\n[e5]PL[B]C[a \\] b];B[f5]BL[1.5];W[d6](;B[c3])(;B[c6]))"
    return [made, *_text_games(sgf.write)]


def _transcript_files() -> list[bytes]:
    made = b"# a comment\nf5d6c3d3c4 34-30\nF5 D6 C3 d3: +2\r\n1. f5 2. d6\n\n"
    return [made, *_text_games(transcript.write)[:1]]


def _obf_files() -> list[bytes]:
    problems = []
    for game in _records(Variant(scoring="tournament"), 6):
        position = Position(game.variant)
        for move in game.moves[:-8]:
            position = position.play(move)
        problems.append(ProblemRecord(position, dict.fromkeys(position.legal_moves, 2.0), "a name"))
    return [_written(obf.write, problems), b"% a comment\n" + b"-" * 27 + b"OX------XO" + b"-" * 27 + b" X; f5:+0;\r\n"]


def _wthor_files() -> list[bytes]:
    return [_written(wthor.write, _games()), _written(wthor.write, _games() * 20)]


def _name_files(write: Callable[[BinaryIO, list[str]], None]) -> list[bytes]:
    return [_written(write, [f"player {number}" for number in range(count)]) for count in (1, 30)]


# Formats


class Target(NamedTuple):
    """A reader, what belongs to it, and text that its mutations put in."""

    files: Callable[[], list[bytes]]
    read: Callable[[BinaryIO, OnFault | None], Iterable[Any]]
    write: Callable[[BinaryIO, Iterable[Any]], object]
    words: tuple[bytes, ...]
    told: Callable[[Any], object] = lambda record: record  # what is read again as the same


def _moves(record: GameRecord) -> object:
    return record.variant, record.moves


def _reads_names(read: Callable[[BinaryIO], list[str]]) -> Callable[[BinaryIO, OnFault | None], Iterable[str]]:
    def names(file: BinaryIO, on_fault: OnFault | None) -> Iterable[str]:
        try:
            return read(file)
        except RecordError as error:
            if on_fault is None:
                raise
            on_fault(error)
            return []

    return names


TEXT = (
    *(b"\0", b"\xff", b"\x80", b"\r\n", b"\n", b" ", b"\t", b"\xc3\xa9", b"\xef\xbb\xbf", b"\xe2\x88\x92", b"\\", b'"'),
    *(
        b"9" * 400,
        b"-1",
        b"1e999",
        b"nan",
        b"inf",
        b"0",
        b"99999999999",
        b"1_0",
        b"\xd9\xa3",
        b"+64.000:r",
        b":t",
        b"%",
    ),
    *(b"pass", b"PA", b"--", b"f5", b"F5", b"j10", b"a0", b"@@", b"/", b"//", b":", b";", b",", b".", b"#"),
    *(b"-", b"|", b"(34-30)", b"| +2", b"1 f5 2 d6", b"f5-d6"),
)
TREE = (
    *(
        b"[",
        b"]",
        b"(",
        b")",
        b"(;",
        b";)",
        b"[]",
        b"\\]",
        b"(" * 2000,
        b";" * 2000,
        b"[" * 2000,
        b"B[",
        b"W[",
        b"B[pa]",
    ),
    *(b"GM[Othello]", b"GM[2]", b"SZ[8]", b"SZ[10]", b"AB[a1][h8]", b"AW[a1:h8]", b"PL[W]", b"RE[B+R]", b"RE[", b"TI["),
    *(b"BO[8 ", b"TY[10]", b"TY[8r20]", b"KO[]", b"KM[]", b"PB[", b"DT[", b"C[", b"VA[", b"(;GM[Othello]PC[GGS/os]"),
    *(
        b"(;GM[2\\]",
        b"CA[koi8-r]",
        b"CA[utf-16]",
        b"CA[Shift_JIS]",
        b"CA[unicode_escape]",
        b"SZ[08]",
        b"SZ[6x6]",
        b"TY[8r]",
    ),
)
BINARY = (b"\0\0\0\0", b"\xff\xff", b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\x0a", b"\x38", b"\x00\x01", b"\x41")

TARGETS = {
    "ggf": Target(_ggf_files, ggf.read, ggf.write, TEXT + TREE),
    "sgf": Target(_sgf_files, sgf.read, sgf.write, TEXT + TREE),
    "obf": Target(_obf_files, obf.read, obf.write, (*TEXT, b"X", b"O", b"-", b"; f5:", b"X;", b"O;", b"*")),
    "transcripts": Target(_transcript_files, transcript.read, transcript.write, TEXT, _moves),
    "wtb": Target(_wthor_files, wthor.read, wthor.write, BINARY),
    "jou": Target(
        lambda: _name_files(wthor.write_players), _reads_names(wthor.read_players), wthor.write_players, BINARY
    ),
    "trn": Target(
        lambda: _name_files(wthor.write_tournaments),
        _reads_names(wthor.read_tournaments),
        wthor.write_tournaments,
        BINARY,
    ),
}


# Mutations


def mutated(rng: random.Random, files: list[bytes], words: tuple[bytes, ...]) -> bytes:
    """Returns one of `files` with some damage."""
    data = bytearray(rng.choice(files))
    for _ in range(rng.choice((1, 1, 2, 3, 6, 30))):
        first, last = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        last = min(last, first + rng.choice((1, 2, 8, 100, LARGEST)))
        match rng.randrange(10):
            case 0 | 1:
                if data:
                    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            case 2:
                data[first : first + 1] = bytes((rng.randrange(256),))
            case 3:
                del data[first:last]
            case 4 | 5:
                data[first:first] = rng.choice(words)
            case 6:
                data[first:last] = rng.choice(words)
            case 7:
                other = rng.choice(files)
                data[first:] = other[rng.randrange(len(other)) :]
            case 8:
                data[first:first] = rng.randbytes(rng.choice((1, 4, 40)))
            case 9:
                times = rng.choice((2, 2, 2, 10, 100, 100_000))
                chunk = data[first:last]
                data[first:first] = chunk * min(times, LARGEST // 16 // max(len(chunk), 1))
    return bytes(data[:LARGEST])


# Running a case


class Stuck(BaseException):
    """Raised by the timer, past every `except Exception`."""


@dataclass
class Tally:
    """What became of a format's cases."""

    cases: int = 0
    size: int = 0
    records: int = 0
    faults: int = 0
    failures: int = 0


def run_case(target: Target, data: bytes, tally: Tally) -> str | None:
    """Reads a damaged file and returns what was wrong with that, or None."""
    before = _most_memory()
    limit_s = SLOWEST_S[0] + SLOWEST_S[1] * len(data)
    signal.setitimer(signal.ITIMER_VIRTUAL, 4 * limit_s)
    began = time.process_time()
    try:
        wrong = _read_both_ways(target, data, tally)
        took_s = time.process_time() - began
    except Stuck:
        return f"takes more than {4 * limit_s:.1f} s for {len(data)} bytes"
    except Exception:
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if took_s > limit_s:
        return f"takes {took_s:.1f} s for {len(data)} bytes"
    if (grown := _most_memory() - before) > MOST_MEMORY:
        return f"takes {grown >> 20} MiB for {len(data)} bytes"
    return wrong


def _read_both_ways(target: Target, data: bytes, tally: Tally) -> str | None:
    first_fault = raised = ""
    kept = []

    def take(fault: RecordError) -> None:
        nonlocal first_fault
        first_fault = first_fault or str(fault)
        tally.faults += 1

    for record in target.read(io.BytesIO(data), take):
        tally.records += 1
        if len(kept) < NUM_WRITTEN:
            kept.append(record)
    try:
        for _ in target.read(io.BytesIO(data), None):
            pass
    except RecordError as error:
        raised = str(error)
    if raised != first_fault:
        return f"raises {raised!r}, and hands on {first_fault!r} first"
    return _write_and_read(target, kept)


def _write_and_read(target: Target, records: list[Any]) -> str | None:
    for record in records:
        try:
            written = _written(target.write, [record])
        except RecordError:
            continue  # a reader may be more forgiving than a writer
        again = list(target.read(io.BytesIO(written), None))
        if [target.told(found) for found in again] != [target.told(record)]:
            return f"was read as\n{record}\nwritten as\n{written!r}\nand read again as\n{again}"
    return None


def _most_memory() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _ring(signum: int, frame: object) -> None:
    raise Stuck


def compile_kernels() -> None:
    """Calls what no timer may ring in: the kernels, on both widths of a board."""
    for variant in (Variant(8), Variant(10)):
        replay(Position(variant), moves_array([game.moves for game in _records(variant, 2)]))
        position = Position(variant)
        replay(position, moves_array([position.legal_moves[:1]]))
        position.play(position.legal_moves[0]).flips(0)


def fuzz(name: str, seed: int, size: float, seconds: float, folder: Path) -> Tally:
    """Runs the cases of a format until so many bytes or seconds are spent; keeps those that fail in `folder`."""
    target, tally = TARGETS[name], Tally()
    files = target.files()
    for file in files:
        assert list(target.read(io.BytesIO(file), None)), f"a sound file of {name} holds nothing"
    ends = time.monotonic() + seconds
    while tally.size < size and time.monotonic() < ends:
        data = mutated(random.Random(f"{seed} {name} {tally.cases}"), files, target.words)
        wrong = run_case(target, data, tally)
        if wrong:
            tally.failures += 1
            kept = folder / f"{seed}-{tally.cases}.{name}"
            folder.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(data)
            print(f"{name}, seed {seed}, case {tally.cases}, kept as {kept}: {wrong}", flush=True)
        tally.cases += 1
        tally.size += len(data)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=f"{', '.join(TARGETS)}; else all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--megabytes", type=float, help="of each format")
    parser.add_argument("--seconds", type=float, help="in all (default: 60, where no megabytes are given)")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "reversi-fuzz", metavar="FOLDER")
    arguments = parser.parse_args()
    names = arguments.formats or list(TARGETS)
    if unknown := set(names) - set(TARGETS):
        parser.error(f"unknown format {min(unknown)}; there are: {', '.join(TARGETS)}")
    seconds = arguments.seconds or (math.inf if arguments.megabytes else 60.0)
    compile_kernels()
    signal.signal(signal.SIGVTALRM, _ring)
    failures = 0
    for name in names:
        began = time.process_time()
        tally = fuzz(
            name, arguments.seed, (arguments.megabytes or math.inf) * 1e6, seconds / len(names), arguments.keep
        )
        rate = tally.size / 1e6 / max(time.process_time() - began, 1e-9)
        print(
            f"{name}: {tally.cases} cases, {tally.size / 1e6:.1f} MB, {rate:.2f} MB/s, {tally.records} records, "
            f"{tally.faults} faults, {tally.failures} failures",
            flush=True,
        )
        failures += tally.failures
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
