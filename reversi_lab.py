"""The command `reversi`, also `python -m reversi_lab`: sees to it that our packages are ours, then hands over.

`agents`, `configs` and `experiments` are names under which other distributions install packages too. Where one of those
comes first on the path, imports fail in odd ways; so start-up looks before it imports.
"""

import importlib.util
import sys
from pathlib import Path

PACKAGES = ("agents", "configs", "experiments", "reversi_env")
HERE = Path(__file__).resolve().parent


def main() -> int:
    """Runs the command line in `sys.argv` and returns its exit code."""
    if complaint := _complaint():
        print(f"reversi: {complaint}", file=sys.stderr)
        return 1
    try:
        from experiments.cli import main as run  # only now is it known to be ours

        return run(sys.argv[1:])
    except KeyboardInterrupt:  # before the command line can say so itself
        print("reversi: interrupted", file=sys.stderr)
        return 130


def _complaint() -> str | None:
    """Returns what is wrong with the packages on the path, in a sentence, or None."""
    for name in PACKAGES:
        found = _folder(name)
        if found is None:
            return f"the package {name!r} is missing beside {Path(__file__).name} in {HERE}; install Reversi Lab anew."
        if found != HERE / name:
            return (
                f"the package {name!r} is {found}, not {HERE / name}: another distribution uses this name too. "
                "Install Reversi Lab in a virtual environment of its own: python3 -m venv .venv"
            )
    return None


def _folder(name: str) -> Path | None:
    """Returns where `import name` would look: a package's folder, or a module's file; None where there is nothing."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""]
    return Path(places[0]).resolve()


if __name__ == "__main__":
    sys.exit(main())
