"""A table on stdout: drawn with rich on a terminal, elsewhere as lines that can be read and searched."""

import sys
from collections.abc import Sequence
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

Figures: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]  # a header, and rows below it


def print_figures(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints `rows` under `header`; the first column is flush left, the others, figures, flush right."""
    if sys.stdout.isatty():
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))  # rules and frames would not fit 80 columns
        for number, name in enumerate(header):
            table.add_column(name, justify="right" if number else "left", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        console = Console(markup=False, highlight=False)
        unbounded = console.options.update(width=10_000)
        console.width = max(console.width, console.measure(table, options=unbounded).maximum)  # cut nothing off
        console.print(table)
        return
    print(table_text(header, rows))


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns `rows` under `header` as lines of text, laid out likewise."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join([first.ljust(widths[0]), *map(str.rjust, figures, widths[1:])]).rstrip()
        for first, *figures in (header, *rows)
    )


def signed(score: float) -> str:
    """Returns a score with its sign, which nothing has none of."""
    return f"{score:+g}" if score else "0"
