"""What a figure or a run depends on beside its configuration: machine, versions, commit."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
LIBRARIES = ("numpy", "numba", "torch", "gymnasium")


def provenance() -> dict[str, str]:
    """Returns processor, cores, versions and the commit, by name."""
    return {
        "CPU": _cpu_name(),
        "cores": str(os.cpu_count()),
        "Python": platform.python_version(),
        **{name: metadata.version(name) for name in LIBRARIES},
        "commit": commit() or "unknown",
    }


def commit() -> str | None:
    """Returns the commit that runs, with "+" where files differ from it; None outside a checkout of ours."""
    if not (SOURCE / ".git").exists():  # git itself would look further up, and find somebody else's
        return None
    git = ["git", "-C", str(SOURCE)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
        changes = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.strip() + ("+" if changes.strip() else "")


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []  # no Linux
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
