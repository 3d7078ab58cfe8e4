"""A game in the terminal, typed through a pipe."""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import agents
from agents.agent import Agent, Decision
from experiments import cli, play
from reversi_env import Game, Position, Variant, random_games
from reversi_env.playouts import NO_MOVE

Play = Callable[..., str]
SMALL = Variant.named("othello-4x4")


class FirstMove(Agent):
    """Plays the first legal move, and is sure of it."""

    name = "first"

    def __init__(self, variant: Variant | None = None) -> None:
        self.variant = variant

    def select(self, position: Position, rng: np.random.Generator) -> Decision:
        line = (position.legal_moves[0], position.legal_moves[-1])
        return Decision(position.legal_moves[0], value=0.25, evaluation=3, principal_line=line, is_exact=True)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Play:
    """Returns `played(arguments, *typed)`: what is printed when those lines are typed, and then the input ends."""

    def run(arguments: str, *typed: str) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in typed)))
        assert cli.main(["play", *arguments.split()]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has "first" name an agent."""
    make = agents.make
    monkeypatch.setattr(agents, "make", lambda spec: FirstMove() if spec == "first" else make(spec))


def game_with_a_pass_of_black() -> Game:
    games = random_games(Position(SMALL), 1000, seed=1).moves.tolist()
    moves = next(moves for moves in games if SMALL.pass_move in moves[:-4:2])
    return Game.from_moves(moves[: moves.index(NO_MOVE)], SMALL)


def test_two_people_play_a_whole_game(played: Play) -> None:
    game = game_with_a_pass_of_black()
    names = [game.start.move_name(move) for move in game.moves if move != SMALL.pass_move]
    output = played("--two --variant othello-4x4", *names)
    final = game.position
    assert f"black {final.num_black}, white {final.num_white}: " in output
    assert f"transcript: {game.transcript}\n" in output
    assert "has no move and passes." in output
    assert "human (black) against human (white)" in output


def test_names_of_players_say_who_is_black(played: Play) -> None:
    assert "human (black) against greedy (white)" in played("human greedy")
    assert "greedy (black) against human (white)" in played("greedy human")
    assert "greedy (black) against human (white)" in played("greedy --color white")
    assert "human (black) against human (white)" in played("human human")


@pytest.mark.parametrize("players", [["human", "greedy"], ["--two"]])
def test_a_color_beside_two_named_players_is_refused(players: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["play", *players, "--color", "white"]) == 2
    assert "the order of two players says who is black" in capsys.readouterr().err


def test_agent_answers_and_the_dots_are_on_legal_moves(played: Play, first: None) -> None:
    output = played("first --variant othello-6x6", "c2")
    assert "first plays b2." in output
    assert output.count(" black to move") == 0
    assert output.count("black to move\n") == 2


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("a1", "a1 is not legal for black in"),
        ("pass", "pass is not legal for black in"),
        ("z9", "'z9' is not a square of 8×8"),
        ("hnit", "unknown command 'hnit'; did you mean hint"),
        ("undo", "you have not moved yet, so there is nothing to take back"),
    ],
)
def test_what_cannot_be_done_gets_a_sentence_and_the_question_again(played: Play, typed: str, sentence: str) -> None:
    output = played("--two", typed, "d3")
    assert sentence in output
    assert "transcript: d3\n" in output


def test_moves_are_listed(played: Play) -> None:
    assert "d3 c4 f5 e6\n" in played("--two", "moves")


def test_undo_takes_back_the_answer_too(played: Play, first: None) -> None:
    assert "transcript: f5\n" not in played("first", "d3", "undo")
    assert "transcript: (no move)\n" in played("first", "d3", "undo")
    assert "transcript: d3\n" in played("--two", "d3", "c3", "undo")


def test_undo_goes_back_over_passes_to_a_turn_of_ones_own(first: None) -> None:
    whole = game_with_a_pass_of_black()
    place = whole.moves.index(SMALL.pass_move)
    game = Game.from_moves(whole.moves[: place + 2], SMALL)  # black passes and white plays
    session = play.Session(game, (None, FirstMove()), np.random.default_rng(0), gives_hints=False)
    session._obey("undo")
    assert game.moves == whole.moves[: place - 2]


def test_hint_tells_what_the_agent_thinks(played: Play, first: None) -> None:
    expected = "hint: first would play d3, +3 discs for sure, value +0.25, line d3 e6"
    assert expected in played("first", "hint")
    assert expected in played("first --hint")


def test_two_people_get_hints_too(played: Play) -> None:
    assert "would play" in played("--two --variant othello-4x4", "hint")


def test_help_lists_every_word(played: Play) -> None:
    output = played("--two", "help")
    assert all(f"  {word} " in output for word in play.COMMANDS)


def test_resigning_and_leaving_end_the_game(played: Play) -> None:
    assert "white resigns.\ntranscript: d3\n" in played("--two", "d3", "resign", "c3")
    assert "The game is broken off.\ntranscript: d3\n" in played("--two", "d3", "quit", "c3")


def test_end_of_input_leaves_quietly_with_the_transcript(played: Play) -> None:
    assert played("--two", "d3").endswith("transcript: d3\n")


def test_interruption_leaves_quietly_with_the_transcript(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupted)
    assert cli.main(["play", "--two"]) == 0
    output = capsys.readouterr()
    assert output.out.endswith("transcript: (no move)\n")
    assert "Traceback" not in output.err


def test_an_agent_that_breaks_the_rules_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bot = tmp_path / "my_bot.py"
    bot.write_text("def bot(position, rng):\n    return 0\n")
    assert cli.main(["play", f"{bot}:bot", "--color", "white"]) == 1
    assert "broke the rules: a1 is not legal for black" in capsys.readouterr().err


def test_the_newest_run_plays_where_none_is_named(
    played: Play, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for age, name in enumerate(("new", "old", "damaged")):
        manifest = Path("runs", name, "checkpoints", "00001", "manifest.json")
        manifest.parent.mkdir(parents=True)
        manifest.touch()
        os.utime(manifest, (1000 - age, 1000 - age) if name != "damaged" else None)

    make = agents.make

    def make_runs(spec: str) -> Agent:
        if not spec.startswith("runs"):
            return make(spec)
        if spec.endswith("damaged"):
            raise ValueError(f"{spec} is damaged")
        agent = FirstMove(Variant.named("othello-6x6" if spec.endswith("new") else "othello"))
        agent.name = spec
        return agent

    monkeypatch.setattr(agents, "make", make_runs)
    assert "against runs/new (white), othello-6x6" in played("")
    assert "against runs/old (white), othello." in played("--variant othello")
    assert "against level:medium" in played("--variant anti-reversi")


def test_a_level_for_people_plays_where_nothing_was_trained(
    played: Play, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "against level:medium" in played("")
