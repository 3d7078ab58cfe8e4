"""The variant of transcripts, which alone do not say it, so that a user may."""

from collections.abc import Iterable

from experiments.arguments import UsageError
from reversi_env import Variant
from reversi_env.records.formats import format_of


def variant_of_transcripts(name: str | None, files: Iterable[str]) -> Variant | None:
    """Returns the variant that `--variant` names for the transcripts among the files; raises UsageError without any."""
    if name is None:
        return None
    if all(format_of(file).says_variant for file in files):
        raise UsageError("--variant is for transcripts; the other formats say theirs")
    return Variant.named(name)
