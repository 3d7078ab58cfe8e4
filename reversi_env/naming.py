"""What people type: what to say when it means nothing."""

import difflib
from collections.abc import Iterable, Sequence


class UsageError(ValueError):
    """Something typed that means nothing: a name that nothing has, or a value that its option does not take."""


class UnknownNameError(UsageError):
    """A name that nothing has; the sentence shows the near misses, or else all names."""

    def __init__(self, kind: str, name: str, known: Iterable[str], advice: str = "") -> None:
        names = sorted(set(known))
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names) or 'none'}"
        self._parts = kind, name, tuple(names), advice
        super().__init__(f"unknown {kind} {name!r}; {hint}" + (f"; {advice}" if advice else ""))

    def __reduce__(self) -> tuple[object, ...]:
        return UnknownNameError, self._parts  # an environment in another process hands its errors on


def one_of(kind: str, name: str, known: Sequence[str]) -> str:
    """Returns `name` where it is one of those known; raises UnknownNameError where it is not."""
    if name not in known:
        raise UnknownNameError(kind, str(name), known)
    return name
