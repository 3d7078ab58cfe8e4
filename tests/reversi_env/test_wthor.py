"""WTHOR: bytes put together by hand, the federation's own files byte for byte, and a sentence for every damage."""

import datetime
import io
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reversi_env import Position, Variant, random_games
from reversi_env.notation import parse_transcript
from reversi_env.records import wthor
from reversi_env.records.record import GameRecord, RecordError, WthorFacts
from tests import oracle

WIPEOUT = "e6f4e3f6g5d6e7f5c5"  # 13-0, after which nobody can move
OPENING = "f5d6c3"
DATE = datetime.date(2009, 12, 22)


def header(
    num_games: int = 0, num_names: int = 0, year: int = 0, size: int = 8, kind: int = 0, depth: int = 24
) -> bytes:
    return struct.pack("<4BiHH4B", 20, 9, 12, 22, num_games, num_names, year, size, kind, depth, 0)


def game(transcript: str, discs: int, numbers: tuple[int, int, int] = (3, 1, 2), theoretical: int = 40) -> bytes:
    squares = [
        10 * int(transcript[place + 1]) + "abcdefgh".index(transcript[place]) + 1
        for place in range(0, len(transcript), 2)
    ]
    return struct.pack("<3H2B", *numbers, discs, theoretical) + bytes(squares).ljust(60, b"\0")


def games_of(data: bytes, names: wthor.Names | None = None) -> list[GameRecord]:
    return list(wthor.read(io.BytesIO(data), names=names))


def faults_of(data: bytes) -> tuple[list[GameRecord], list[str]]:
    faults: list[RecordError] = []
    games = list(wthor.read(io.BytesIO(data), faults.append))
    return games, [str(fault) for fault in faults]


def written(records: list[GameRecord], **arguments: object) -> bytes:
    file = io.BytesIO()
    wthor.write(file, records, **{"date": DATE, **arguments})  # type: ignore[arg-type]
    return file.getvalue()


def record_of(transcript: str, **fields: object) -> GameRecord:
    """Returns the record of a game in which nobody passes."""
    fields = {"variant": Variant(), **fields}
    return GameRecord(moves=tuple(parse_transcript(transcript, 8)), **fields)  # type: ignore[arg-type]


def score_of(record: GameRecord) -> int:
    assert record.black_score is not None
    return record.black_score


# Reading


def test_a_game_put_together_by_hand_is_read() -> None:
    names = wthor.Names(["", "Rose", "Tastet"], ["", "", "", "Mondial"])
    (record,) = games_of(header(1, year=2001) + game(WIPEOUT, discs=64), names)
    assert record == GameRecord(
        variant=Variant(scoring="tournament"),
        moves=tuple(parse_transcript(WIPEOUT, 8)),
        black="Rose",
        white="Tastet",
        black_score=64,
        date="2001",
        event="Mondial",
        wthor=WthorFacts(tournament=3, black=1, white=2, theoretical_discs=40, theoretical_depth=24),
    )
    assert record.game.position.black_score == 64  # 13 discs, and the 51 empties


def test_passes_which_are_not_written_are_found() -> None:
    variant = Variant(scoring="tournament")
    games = random_games(Position(variant), 200, seed=1)
    records = [
        GameRecord(variant, tuple(moves[:length]), black_score=score)
        for moves, length, score in zip(
            games.moves.tolist(), games.lengths.tolist(), games.black_scores.tolist(), strict=True
        )
    ]
    assert any(variant.pass_move in record.moves for record in records)
    assert games_of(written(records, depth=0)) == [
        replace(record, wthor=WthorFacts(0, 0, 0, (score_of(record) + 64) // 2, 0)) for record in records
    ]


def test_an_unfinished_game_keeps_the_stored_score() -> None:
    (record,) = games_of(header(1) + game(OPENING, discs=20))
    assert not record.is_over
    assert record.black_score == 20 - 44


def test_names_without_a_file_are_empty_and_numbers_stay() -> None:
    (record,) = games_of(header(1) + game(OPENING, 20, (700, 800, 900)), wthor.Names(["A"], ["B"]))
    assert (record.black, record.white, record.event, record.date) == ("", "", "", "")
    assert record.wthor == WthorFacts(700, 800, 900, 40, 24)


def test_name_files_put_together_by_hand_are_read() -> None:
    players = header(num_names=3, size=0, depth=0) + b"???".ljust(20, b"\0") + b"Andr\xe9".ljust(20, b"\0") + b"x" * 20
    assert wthor.read_players(io.BytesIO(players)) == ["???", "André", "x" * 20]
    tournaments = header(num_names=1, size=0, depth=0) + b"Mondial\0garbage".ljust(26, b"\0")
    assert wthor.read_tournaments(io.BytesIO(tournaments)) == ["Mondial"]


def test_size_0_is_8x8() -> None:
    assert games_of(header(1, size=0) + game(OPENING, 20)) == games_of(header(1) + game(OPENING, 20))


def test_more_games_than_a_block_are_read() -> None:
    number = 2 * wthor._BLOCK + 1
    games = games_of(header(number) + game(OPENING, 20) * number)
    assert len(games) == number
    assert games[0] == games[-1]


SOUND = game(OPENING, 20)
DAMAGES = {
    "no header": (b"", 0, "byte 0: the file ends within the header, which has 16 bytes"),
    "half a header": (header(1)[:9], 0, "byte 9: the file ends within the header"),
    "negative number of games": (header(-1), 0, "byte 4: the header tells of -1 games"),
    "10×10": (header(1, size=10) + SOUND, 0, "byte 12: the games are of a board of 10 columns; only those of 8×8"),
    "solitaires": (header(1, kind=1) + SOUND, 0, "byte 13: the file holds no games, but records of type 1"),
    "game cut short": (header(2) + SOUND + SOUND[:40], 1, "byte 124: the file ends within game 2 of 2"),
    "games missing": (header(2**31 - 1) + SOUND, 1, "byte 84: the file ends within game 2 of 2147483647"),
    "bytes after the end": (header(1) + SOUND + b"\0", 1, "byte 84: the file goes on after 1 games, as many as"),
    "illegal move": (
        header(2) + game("f5d6c3a1", 20) + SOUND,
        1,
        "game 1 at byte 16: move 4: a1 is not legal for white",
    ),
    "no square": (
        header(1) + SOUND[:10] + b"\x63" + SOUND[11:],
        0,
        "game 1 at byte 16: move 3 is 99, which is no square",
    ),
    "a hole": (
        header(1) + SOUND[:9] + b"\0" + SOUND[10:],
        0,
        "game 1 at byte 16: move 2 is missing, and others follow",
    ),
    "too many discs": (header(1) + game(OPENING, 65), 0, "game 1 at byte 16: black has 65 discs of 64"),
    "move after the end": (
        header(1) + game(WIPEOUT + "a1", 64),
        0,
        "game 1 at byte 16: move 10: a1 cannot be played: the game is over",
    ),
}


@pytest.mark.parametrize(("data", "num_games", "sentence"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_named_with_its_place_and_the_other_games_are_read(
    data: bytes, num_games: int, sentence: str
) -> None:
    games, faults = faults_of(data)
    assert len(games) == num_games
    assert len(faults) == 1
    assert faults[0].startswith(sentence)
    with pytest.raises(RecordError) as raised:
        games_of(data)
    assert str(raised.value) == faults[0]


def test_damaged_name_files_are_named_with_the_byte() -> None:
    with pytest.raises(RecordError, match="byte 26: the file ends within name 1 of 2"):
        wthor.read_players(io.BytesIO(header(num_names=2) + b"x" * 10))
    with pytest.raises(RecordError, match="byte 42: the file goes on after 1 names"):
        wthor.read_tournaments(io.BytesIO(header(num_names=1) + b"x" * 30))


class Pipe(io.BytesIO):
    """A file that gives less than it is asked for."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(size if size is None or size < 0 else min(size, 7))


def test_a_pipe_is_read_to_its_end() -> None:
    assert len(list(wthor.read(Pipe(header(30) + SOUND * 30)))) == 30


# Writing


def test_a_game_is_written_as_put_together_by_hand() -> None:
    facts = WthorFacts(3, 1, 2, 40, 24)
    record = record_of(WIPEOUT, black_score=64, date="2001", wthor=facts, variant=Variant(scoring="tournament"))
    assert written([record]) == header(1, year=2001) + game(WIPEOUT, 64)
    assert written([record], year=7, depth=9) == header(1, year=7, depth=9) + game(WIPEOUT, 64)


@pytest.mark.parametrize(
    ("dates", "year"),
    [
        (["2003", "2003-12-15", "2003-07-01 12:00"], 2003),
        (["2003.12.15_12:33:18.MST", "2003-4-16 11:13 EST", "1060000000"], 2003),
        (["945277754"], 1999),
        (["34771"], 34771),  # the fuzzer's: a year has up to five digits
        (["2003", "2004"], 0),
        (["2003", ""], 0),
        (["99999"], 0),
        (["15.12.2003"], 0),
    ],
)
def test_the_year_is_what_all_games_tell(dates: list[str], year: int) -> None:
    records = [record_of(WIPEOUT, date=date) for date in dates]
    assert written(records)[10:12] == year.to_bytes(2, "little")


def test_boards_scored_as_they_lie_get_their_empties() -> None:
    assert written([record_of(WIPEOUT, black_score=13)])[22] == 64
    assert written([record_of(WIPEOUT)])[22] == 64
    assert written([record_of(OPENING, black_score=-10)])[22] == 27


def test_names_get_numbers_in_the_order_of_their_coming_and_games_keep_theirs() -> None:
    facts = WthorFacts(tournament=1, black=2, white=4, theoretical_discs=3, theoretical_depth=0)
    records = [
        record_of(OPENING, black_score=0, black="Ada", white="Bob", event="Cup"),
        record_of(OPENING, black_score=0, black="Cyd", white="Ada"),
        record_of(OPENING, black_score=0, black="Eve", wthor=facts),
        record_of(OPENING, black_score=0, black="Eve", white="Dan"),
    ]
    file = io.BytesIO()
    names = wthor.write(file, records)
    assert names == wthor.Names(["", "Ada", "Eve", "Bob", "", "Cyd", "Dan"], ["", "", "Cup"])
    numbers = [struct.unpack_from("<3H", file.getvalue(), 16 + 68 * row) for row in range(4)]
    assert numbers == [(2, 1, 3), (0, 5, 1), (1, 2, 4), (0, 2, 6)]
    known = wthor.write(io.BytesIO(), records, names=wthor.Names(["", "Zoe", "", "Bob"]))
    assert known.players == ["", "Zoe", "Eve", "Bob", "", "Ada", "Cyd", "Dan"]


def test_name_files_are_written_as_put_together_by_hand() -> None:
    file = io.BytesIO()
    wthor.write_players(file, ["", "André"], DATE)
    assert file.getvalue() == header(num_names=2, size=0, depth=0) + bytes(20) + b"Andr\xe9".ljust(20, b"\0")
    file = io.BytesIO()
    wthor.write_tournaments(file, ["Mondial"], DATE)
    assert file.getvalue() == header(num_names=1, size=0, depth=0) + b"Mondial".ljust(26, b"\0")


REFUSED = {
    "6×6": (record_of("b3", variant=Variant(6)), "WTHOR holds Othello on 8×8, not othello-6x6"),
    "another start": (
        record_of("c3", variant=Variant(start="parallel")),
        "WTHOR holds Othello on 8×8, not 8x8, start parallel",
    ),
    "another goal": (record_of("f5", variant=Variant(goal="fewest")), "WTHOR holds Othello on 8×8, not anti-reversi"),
    "unfinished": (record_of(OPENING), "the game has not ended, and says no score"),
    "odd score": (record_of(OPENING, black_score=3), r"a score of \+3 is none that tournament scoring knows"),
    "large score": (record_of(OPENING, black_score=-66), "a score of -66 is none that tournament scoring knows"),
    "Greek name": (record_of(WIPEOUT, black="Ωmega"), "the name 'Ωmega' has letters beyond Latin-1"),
    "long name": (record_of(WIPEOUT, white="x" * 21), "which has room for 20 letters"),
    "long event": (record_of(WIPEOUT, event="x" * 27), "which has room for 26 letters"),
    "NUL": (record_of(WIPEOUT, white="a\0b"), "none of them NUL"),
    "large depth": (record_of(WIPEOUT, wthor=WthorFacts(0, 0, 0, 0, 999)), "is that at 0 to 64 empties, not at 999"),
    "large number": (record_of(WIPEOUT, wthor=WthorFacts(0, 65536, 0, 0, 0)), "numbers as large as those of"),
}


@pytest.mark.parametrize(("record", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_game_that_wthor_cannot_hold_is_refused(record: GameRecord, sentence: str) -> None:
    sound = record_of(WIPEOUT)
    with pytest.raises(RecordError, match=f"^game 2: .*{sentence}"):
        written([sound, record, sound])
    faults: list[RecordError] = []
    assert len(games_of(written([sound, record, sound], on_fault=faults.append))) == 2
    assert len(faults) == 1


@pytest.mark.parametrize("order", [(0, 24, 22), (24, 0, 22), (22, 24, 0)])
def test_a_file_has_one_depth_and_scores_of_another_are_lost_but_no_game(
    order: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    records = [record_of(WIPEOUT, wthor=WthorFacts(1, 2, 3, 30 + depth, depth)) for depth in order]
    kept = order[0] or order[1]
    assert [game.wthor for game in games_of(written(records))] == [
        WthorFacts(1, 2, 3, 30 + depth if depth == kept else 64, kept) for depth in order
    ]
    assert [message.getMessage() for message in caplog.records] == [
        f"a .wtb file has theoretical scores of one depth, here {kept} empties; 1 games lose those of other depths"
    ]
    assert written(records, depth=20)[14] == 20


def test_games_without_a_theoretical_score_come_back_byte_for_byte(caplog: pytest.LogCaptureFixture) -> None:
    original = header(2, depth=0) + game(WIPEOUT, 64, theoretical=40) * 2
    assert written(games_of(original)) == original
    assert not caplog.records


def test_a_number_that_stands_for_another_name_is_left_to_it() -> None:
    facts = WthorFacts(tournament=1, black=5, white=6, theoretical_discs=64, theoretical_depth=24)
    here = record_of(WIPEOUT, black="Ada", white="Bob", event="Cup", wthor=facts)
    there = record_of(WIPEOUT, black="Eve", white="Ada", event="Open", wthor=facts)
    nameless = record_of(WIPEOUT, wthor=facts)
    for records in ([here, there, nameless, here], [nameless, there, here]):
        file = io.BytesIO()
        names = wthor.write(file, records)
        games = games_of(file.getvalue(), names)
        assert [
            (game.black, game.white, game.event) for game, record in zip(games, records, strict=True) if record.black
        ] == [(record.black, record.white, record.event) for record in records if record.black]
        assert games[records.index(nameless)].wthor == facts


def test_a_fault_in_a_later_block_has_the_number_of_its_game() -> None:
    number = wthor._BLOCK + 3
    _, faults = faults_of(header(number) + SOUND * (number - 1) + game("f5d6c3a1", 20))
    assert [fault.partition(":")[0] for fault in faults] == [f"game {number} at byte {16 + 68 * (number - 1)}"]


@pytest.mark.slow
def test_more_names_than_numbers_are_refused() -> None:
    record = record_of(WIPEOUT)
    records = [replace(record, black=f"b{number}", white=f"w{number}") for number in range(32_767)]
    assert len(written(records)) == 16 + 68 * len(records)
    records.append(replace(record, black="one more"))
    with pytest.raises(RecordError, match="more than 65535 names"):
        written(records)


def test_a_start_given_as_a_board_is_no_other_start() -> None:
    variant = Variant(start=Position().text)
    assert written([replace(record_of(WIPEOUT), variant=variant)]) == written([record_of(WIPEOUT)])


# The federation's files


def test_games_of_a_year_agree_with_the_oracle_and_come_back_byte_for_byte(data: Callable[[str], Path]) -> None:
    original = data("wthor/WTH_1984.wtb").read_bytes()
    records = games_of(original)
    assert len(records) == int.from_bytes(original[4:8], "little")
    for record in records[:40]:
        board, side = oracle.start_board(8, "diagonal"), oracle.BLACK
        for move in record.moves:
            if move < 64:
                board = oracle.play(board, side, move)
            else:
                assert oracle.must_pass(board, side)
            side = oracle.other(side)
        assert record.is_over == oracle.is_over(board)
        if record.is_over:
            assert record.black_score == oracle.score(board, oracle.BLACK, scoring="tournament")
    century, year, month, day = original[:4]
    assert written(records, date=datetime.date(100 * century + year, month, day)) == original
