"""`rgb_array` from the smallest picture to the largest: every mark is seen, and no letter is cut off."""

import numpy as np
import pytest

from reversi_env.drawing import style
from reversi_env.drawing.diagram import Diagram
from reversi_env.drawing.rgb import to_rgb
from reversi_env.geometry import SIZES

LEAST_UNIT = 8  # pixels a square, under which a board is refused
PICTURES = [(size, pixels) for size in SIZES for pixels in (LEAST_UNIT * (size + 1), 131, 200, 512, 997)]


def unit_of(size: int, pixels: int) -> int:
    """Returns how many pixels wide a square is: an even number, so that its middle is whole too."""
    return pixels // (size + 1) // 2 * 2


def cut(image: np.ndarray, size: int, row: int, column: int) -> np.ndarray:
    """Returns the pixels of a square without its lines; rows and columns −1 and `size` are the frame beside it."""
    unit = unit_of(size, len(image))
    felt = (len(image) - unit * (size + 1)) // 2 + unit // 2
    line = 1 + unit // 50

    def span(index: int) -> slice:
        if index == -1:
            return slice(0, felt - line)
        if index == size:
            return slice(felt + size * unit + line, None)
        return slice(felt + index * unit + line, felt + (index + 1) * unit - line)

    return image[span(row), span(column)]


def distance(pixels: np.ndarray, color: str) -> np.ndarray:
    """Returns how far pixels [..., 3] are from a color "#rrggbb"."""
    return np.abs(pixels.astype(int) - list(bytes.fromhex(color[1:]))).sum(axis=-1)


@pytest.mark.parametrize(("size", "pixels"), PICTURES)
def test_every_mark_is_seen(size: int, pixels: int) -> None:
    image = to_rgb(Diagram(size, black=(0,), white=(1,), dots=(2, size * size - 1), last_move=0), pixels)
    for square, mark, ground in (
        (0, style.LAST_MOVE, style.BLACK_DISC),
        (1, style.WHITE_DISC, style.FELT),
        (2, style.DOT, style.FELT),
        (size * size - 1, style.DOT, style.FELT),
    ):
        found = cut(image, size, square // size, square % size)
        middle = slice(len(found) // 2 - 1, len(found) // 2 + 1)
        assert (distance(found[middle, middle], mark) < distance(found[middle, middle], ground)).all()


@pytest.mark.parametrize(("size", "pixels"), PICTURES)
def test_coordinates_stand_whole_in_the_frame_where_it_has_room(size: int, pixels: int) -> None:
    image = to_rgb(Diagram(size), pixels)
    has_room = unit_of(size, pixels) >= (18 if size == 10 else 14)
    sides = (
        [(-1, index) for index in range(size)],
        [(size, index) for index in range(size)],
        [(index, -1) for index in range(size)],
        [(index, size) for index in range(size)],
    )
    for places in sides:
        letters = [cut(image, size, row, column) for row, column in places]
        assert all(distance(letter, style.FRAME).any() == has_room for letter in letters)
        assert len({letter.tobytes() for letter in letters}) == (size if has_room else 1)
    for row in (-1, size):
        for column in (-1, size):
            assert not distance(cut(image, size, row, column), style.FRAME).any()


@pytest.mark.parametrize("pixels", [200, 333, 512, 2000])
def test_labels_are_of_one_height_and_stay_in_their_squares(pixels: int) -> None:
    labels = {0: "8", 9: "+0.8", 18: "-0.8", 63: "8"}
    empty, labeled = to_rgb(Diagram(8), pixels), to_rgb(Diagram(8, labels=labels), pixels)
    written = (empty != labeled).any(axis=2)
    insides = [cut(written, 8, square // 8, square % 8) for square in labels]
    assert sum(inside.sum() for inside in insides) == written.sum()
    assert len({np.ptp(np.flatnonzero(inside.any(axis=1))) for inside in insides}) == 1


def test_a_label_that_does_not_fit_is_left_out() -> None:
    np.testing.assert_array_equal(to_rgb(Diagram(8, labels={9: "+0.88"}), 100), to_rgb(Diagram(8), 100))


def test_each_letter_looks_like_no_other() -> None:
    letters = "0123456789abcdefghij%+-.?"
    assert len({to_rgb(Diagram(4, labels={5: letter}), 200).tobytes() for letter in letters}) == len(letters)
