"""Drawings show what the position holds: as SVG that any reader accepts, as text, as pixels, and through `show`."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reversi_env import Game, Position, Variant, show
from reversi_env.drawing import style
from reversi_env.drawing.diagram import Diagram
from reversi_env.drawing.rgb import to_rgb
from reversi_env.drawing.svg import UNIT, to_svg
from reversi_env.drawing.text import shows_color, to_ansi
from reversi_env.geometry import SIZES
from tests.reversi_env.strategies import positions

SVG = "{http://www.w3.org/2000/svg}"
GAME = Game.from_transcript("f5d6c3d3c4f4f6")  # white to move


def elements(svg: str, tag: str, **attributes: str) -> list[ElementTree.Element]:
    found = ElementTree.fromstring(svg).iter(SVG + tag)
    return [element for element in found if all(element.get(name) == value for name, value in attributes.items())]


def squares_of(circles: list[ElementTree.Element], size: int) -> set[int]:
    """Returns the squares that the middles of some circles stand on."""
    corner = style.MARGIN * UNIT
    places = [(float(circle.attrib["cx"]) - corner, float(circle.attrib["cy"]) - corner) for circle in circles]
    return {int(y // UNIT) * size + int(x // UNIT) for x, y in places}


def texts(svg: str) -> list[str | None]:
    return [element.text for element in elements(svg, "text")]


# SVG


@given(positions())
def test_svg_shows_the_discs_and_legal_moves_of_any_position(position: Position) -> None:
    size, svg = position.variant.size, to_svg(position.diagram())
    for color, cell in ((style.BLACK_DISC, "X"), (style.WHITE_DISC, "O")):
        expected = {square for square, found in enumerate(position.board) if found == cell}
        assert squares_of(elements(svg, "circle", fill=color), size) == expected
    expected = set() if position.must_pass else set(position.legal_moves)
    assert squares_of(elements(svg, "circle", fill=style.DOT), size) == expected


@pytest.mark.parametrize("size", SIZES)
def test_svg_names_each_column_and_row_on_both_sides(size: int) -> None:
    written = Counter(texts(to_svg(Diagram(size))))
    assert written == Counter([*"abcdefghij"[:size], *map(str, range(1, size + 1))] * 2)


@given(caption=st.text(), label=st.text(max_size=4))
def test_any_text_is_valid_xml_and_comes_out_as_it_went_in(caption: str, label: str) -> None:
    svg = to_svg(Diagram(8, labels={5: label}, caption=caption))
    written = [text or "" for text in texts(svg)]
    for text in (caption, label):
        if text.isprintable() and text:
            assert text in written


def test_what_xml_cannot_hold_is_shown_as_unknown() -> None:
    assert "a\N{REPLACEMENT CHARACTER}b" in texts(to_svg(Diagram(8, caption="a\0b")))


def test_markup_in_text_stays_text() -> None:
    svg = to_svg(Diagram(8, labels={5: "<b>"}, caption="\"a\" <script> & 'b'"))
    assert {"<b>", "\"a\" <script> & 'b'"} <= set(texts(svg))
    assert ElementTree.fromstring(svg).get("aria-label") == "\"a\" <script> & 'b'"


def test_svg_scales_and_needs_nothing_from_its_page() -> None:
    svg = to_svg(replace(GAME.position.diagram(), arrows=((0, 63),), heat={1: 0.5}))
    root = ElementTree.fromstring(svg)
    assert root.get("viewBox") == "0 0 450 480"
    assert not any(word in svg for word in ("id=", "url(", "<style", "href", "class="))


def test_the_last_move_is_a_dot_or_a_ring_around_a_label() -> None:
    diagram = replace(GAME.position.diagram(), last_move=45)
    assert squares_of(elements(to_svg(diagram), "circle", fill=style.LAST_MOVE), 8) == {45}
    labeled = to_svg(replace(diagram, labels={45: "7"}))
    assert squares_of(elements(labeled, "circle", stroke=style.LAST_MOVE), 8) == {45}
    assert not elements(labeled, "circle", fill=style.LAST_MOVE)


def test_a_label_takes_the_place_of_the_dot_and_contrasts_with_what_it_stands_on() -> None:
    position = GAME.position
    free, black, white = position.legal_moves[0], position.board.index("X"), position.board.index("O")
    svg = to_svg(replace(position.diagram(), labels={free: "free", black: "black", white: "white"}))
    assert free not in squares_of(elements(svg, "circle", fill=style.DOT), 8)
    fills = {element.text: element.get("fill") for element in elements(svg, "text")}
    assert fills["free"] == style.TEXT_ON_FELT
    assert fills["black"] == style.TEXT_ON_BLACK
    assert fills["white"] == style.TEXT_ON_WHITE


def test_heat_is_as_opaque_as_it_is_high_and_cut_to_its_range() -> None:
    svg = to_svg(Diagram(8, heat={0: 0.25, 1: 0.5, 2: 1.0, 3: -1.0, 4: 7.0}))
    opacities = [float(element.attrib["fill-opacity"]) for element in elements(svg, "rect", fill=style.HEAT)]
    np.testing.assert_allclose(np.array(opacities) / style.HEAT_OPACITY, [0.25, 0.5, 1, 0, 1], atol=0.01)


def test_an_arrow_points_from_square_to_square_and_none_to_itself() -> None:
    (arrow,) = elements(to_svg(Diagram(8, arrows=((0, 63), (5, 5)))), "polygon")
    corners = [tuple(map(float, corner.split(","))) for corner in arrow.attrib["points"].split()]
    assert corners[3] == (425 - UNIT / 2, 425 - UNIT / 2)
    np.testing.assert_allclose(np.mean([corners[0], corners[6]], axis=0), (25 + UNIT / 2, 25 + UNIT / 2))


def test_a_notebook_shows_a_position_as_svg() -> None:
    assert GAME.position._repr_html_() == to_svg(GAME.position.diagram())


# Text


@given(positions())
def test_plain_text_is_read_back_as_the_position(position: Position) -> None:
    drawn = to_ansi(replace(position.diagram(), caption=f"{position.color_name} to move"), color=False)
    assert Position.from_text(drawn, position.variant) == position


def test_plain_text_reads_as_a_board() -> None:
    assert to_ansi(replace(GAME.position.diagram(), last_move=45), color=False).splitlines() == [
        "    a b c d e f g h",
        " 1  - - - - - - - -",
        " 2  - - - - - - - -",
        " 3  - . X O - . - -",
        " 4  - . X X X O - -",
        " 5  - . - O X X . -",
        " 6  - - - O - X . -",
        " 7  - - - - - . - -",
        " 8  - - - - - - - -",
        "white to move",
        "X 7, O 4, last move f6",
    ]


@given(positions())
def test_colors_add_nothing_to_what_is_drawn(position: Position) -> None:
    drawn = to_ansi(position.diagram(), color=True)
    cells = re.findall(r"\x1b\[([\d;]+)m (.) \x1b\[0m", drawn)
    size = position.variant.size
    assert len(cells) == size * size
    ink = {"1;38;5;16": "X", "1;38;5;231": "O"}
    board = [ink[codes.split(";", 3)[3]] if face == "●" else "-" for codes, face in cells]
    assert "".join(board) == position.board
    dots = tuple(square for square, (_, face) in enumerate(cells) if face == "·")
    assert dots == (() if position.must_pass else position.legal_moves)


def test_the_last_move_has_a_ground_of_its_own() -> None:
    drawn = to_ansi(replace(GAME.position.diagram(), last_move=45), color=True)
    grounds = [codes.split(";")[2] for codes in re.findall(r"\x1b\[(48[\d;]+)m", drawn)]
    assert [square for square, ground in enumerate(grounds) if grounds.count(ground) == 1] == [45]


@pytest.mark.parametrize("color", [True, False])
def test_labels_widen_all_columns_alike(color: bool) -> None:
    diagram = replace(GAME.position.diagram(), labels={0: "100", 19: "no"})
    lines = re.sub(r"\x1b\[[\d;]+m", "", to_ansi(diagram, color)).splitlines()
    assert "100" in lines[1]
    assert "no" not in lines[3]  # a disc lies there
    assert lines[0].index("h") - lines[0].index("g") == (5 if color else 4)


# Pixels


def middle(image: np.ndarray, square: int, size: int, down: float = 0.0) -> str:
    """Returns the color in the middle of a square, or so many squares below it."""
    unit = int(len(image) / (size + 1)) // 2 * 2
    corner = (len(image) - unit * (size + 1)) // 2
    row, column = square // size + 1 + down, square % size + 1
    return "#" + bytes(image[int(corner + row * unit), corner + column * unit]).hex()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("pixels", [200, 333, 512])
def test_pixels_show_the_discs_and_legal_moves(size: int, pixels: int) -> None:
    game = Game(Variant(size=size))
    while game.position.num_empties > size * size // 2:
        game.play(game.position.legal_moves[0])
    position = game.position
    image = to_rgb(position.diagram(), pixels)
    assert image.shape == (pixels, pixels, 3)
    assert image.dtype == np.uint8
    for square, cell in enumerate(position.board):
        dot = style.DOT if square in position.legal_moves else style.FELT
        assert middle(image, square, size) == {"X": style.BLACK_DISC, "O": style.WHITE_DISC, "-": dot}[cell]


def test_pixels_show_the_last_move_heat_labels_and_arrows() -> None:
    plain = Diagram(8, black=(27,), white=(28,))
    shown = {
        "last_move": (replace(plain, last_move=27), 27, style.LAST_MOVE),
        "arrows": (replace(plain, arrows=((0, 16),)), 8, None),
        "heat": (replace(plain, heat={40: 1.0}), 40, None),
    }
    for what, (diagram, square, color) in shown.items():
        found = middle(to_rgb(diagram), square, 8)
        assert found == color if color else found != middle(to_rgb(plain), square, 8), what
    labeled = to_rgb(replace(plain, labels={40: "57"}))
    assert (labeled != to_rgb(plain)).any(axis=2).sum() > 50
    ringed = to_rgb(replace(plain, last_move=27, labels={27: "?"}))
    assert middle(ringed, 27, 8, down=style.RIM_RADIUS) == style.LAST_MOVE


def test_edges_are_smooth() -> None:
    image = to_rgb(Diagram(8, white=(27,)), 512)
    unit = 56
    across = image[32 + 3 * unit + 28 - 4 - 8, 32 + 3 * unit - 4 : 32 + 4 * unit, 0].astype(int)
    assert len(set(across.tolist())) > 6


def test_drawing_twice_is_the_same_and_leaves_the_empty_board_empty() -> None:
    empty = to_rgb(Diagram(6))
    np.testing.assert_array_equal(to_rgb(GAME.position.diagram()), to_rgb(GAME.position.diagram()))
    to_rgb(Diagram(6, black=tuple(range(36))))
    np.testing.assert_array_equal(to_rgb(Diagram(6)), empty)


@pytest.mark.parametrize("label", ["", "ß", "1234567890", "−4", "7.5%"])
def test_any_label_can_be_asked_of_pixels(label: str) -> None:
    to_rgb(Diagram(10, labels={0: label, 99: label}), 88)


def test_too_few_pixels_are_refused() -> None:
    with pytest.raises(ValueError, match="a board of 10×10 needs 88 pixels or more, got 60"):
        to_rgb(Diagram(10), 60)


# show


def test_show_draws_a_policy_as_heat_and_percents_of_the_legal_moves() -> None:
    policy = np.zeros(65, np.float32)
    policy[[19, 26, 37, 0]] = 0.64, 0.356, 0.004, 0.5  # a1 is not legal
    diagram = show(Position(), policy=policy).diagram
    assert diagram.labels == {19: "64", 26: "36"}
    assert set(diagram.heat) == {19, 26, 37, 44}
    assert diagram.heat[19] == pytest.approx(0.8)
    assert diagram.heat[19] > diagram.heat[26] > diagram.heat[37] > diagram.heat[44] == 0


def test_show_writes_values_with_their_sign_instead_of_the_percents() -> None:
    values = np.full(65, np.nan)
    values[[19, 26]] = 0.123, -1
    assert show(Position(), values=values, policy=np.full(65, 0.25)).diagram.labels == {19: "+0.12", 26: "-1"}
    assert show(Position(), values={19: 12, 44: -3.5}).diagram.labels == {19: "+12", 44: "-3.5"}


def test_show_tells_of_a_pass_in_the_caption() -> None:
    blocked = Position.from_text("OX-------------- X")
    drawing = show(blocked, policy=np.eye(17)[16], last_move="pass")
    assert drawing.diagram.caption == "black to move, pass 100"
    assert (drawing.diagram.heat, drawing.diagram.labels, drawing.diagram.last_move) == ({}, {}, None)


def test_show_takes_squares_as_names_and_as_numbers() -> None:
    by_name = show(GAME.position, last_move="f6", arrows=[("f5", "d3"), ("a1", "h8")])
    assert by_name == show(GAME.position, last_move=45, arrows=[(37, 19), (0, 63)])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"policy": np.zeros(64)}, "policy holds one number an action, [65], not [64]"),
        ({"policy": -np.ones(65)}, "policy holds shares, which are 0 or more, not -1; other numbers are values"),
        ({"values": np.zeros((8, 8))}, "values holds one number an action, [65], not [8, 8]"),
        ({"last_move": "k9"}, "'k9' is not a square of 8×8"),
        ({"values": {99: 1.0}}, "there is no square 99 on 8×8"),
        ({"arrows": [(0, 64)]}, "an arrow goes from square to square"),
    ],
)
def test_show_refuses_what_is_no_share_or_not_on_the_board(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        show(Position(), **arguments)  # type: ignore[arg-type]


def test_a_drawing_is_text_svg_and_a_file(tmp_path: Path) -> None:
    drawing = show(GAME.position)
    assert drawing._repr_html_() == drawing._repr_svg_() == drawing.svg == to_svg(GAME.position.diagram())
    assert Position.from_text(str(drawing)) == GAME.position
    drawing.save(tmp_path / "board.svg")
    assert (tmp_path / "board.svg").read_text(encoding="utf-8") == drawing.svg
    with pytest.raises(ValueError, match=r"its file ends with \.svg, not '\.png'"):
        drawing.save(tmp_path / "board.png")


@pytest.mark.parametrize(
    ("is_terminal", "no_color", "expected"),
    [(True, None, True), (True, "", True), (True, "1", False), (False, None, False)],
)
def test_color_is_for_terminals_whose_user_wants_it(
    is_terminal: bool, no_color: str | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert shows_color() is expected


def test_labels_of_svg_are_of_one_height() -> None:
    texts = elements(to_svg(Diagram(8, labels={0: "8", 1: "+0.88"})), "text")
    labels = [text for text in texts if text.text in ("8", "+0.88") and text.get("font-weight")]
    assert len(labels) == 2
    assert labels[0].get("font-size") == labels[1].get("font-size")
