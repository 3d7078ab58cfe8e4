"""What is said on stderr of records that are left out."""

import sys

from reversi_env.records.record import RecordError

SHOWN = 10  # in full


class Faults:
    """The faults so far; the first are printed as they come."""

    def __init__(self) -> None:
        self.number = 0

    def add(self, error: RecordError) -> None:
        self.number += 1
        if self.number <= SHOWN:
            print(error, file=sys.stderr)

    def print_number(self) -> None:
        if self.number:
            print(f"{self.number} left out", file=sys.stderr)
