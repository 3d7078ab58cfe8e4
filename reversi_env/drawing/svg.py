"""A diagram as SVG."""

from reversi_env.drawing.diagram import Diagram


def to_svg(diagram: Diagram) -> str:
    raise NotImplementedError
