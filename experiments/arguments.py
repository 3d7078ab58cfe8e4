"""The arguments of a verb: words such as agents, and settings, which are the fields of a dataclass.

A setting is an option, `--opening-plies 6`, or stands behind `--` as an override, `-- opening_plies=6`, the way Hydra
writes them. Words never pass through Hydra's parser, which rejects the `=` and `,` of `alphabeta:depth=5,exact=10`.
"""

import argparse
from collections.abc import Sequence
from dataclasses import field, fields
from typing import Any, NoReturn, TypeVar

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from reversi_env.naming import UnknownNameError
from reversi_env.naming import UsageError as UsageError  # every verb raises it

S = TypeVar("S")


def setting(default: Any, explanation: str) -> Any:
    """Returns a dataclass field that explains itself in a verb's help."""
    return field(default=default, metadata={"help": explanation})


def parse(verb: str, words: str, settings: type[S], explanation: str, arguments: Sequence[str]) -> tuple[list[str], S]:
    """Returns the words and the settings of a command line; `words` and `explanation` are shown in the help.

    Raises UnknownNameError for an option or key that `settings` has not, UsageError for a value that it does not take.
    `--help` prints the help and raises SystemExit.
    """
    keys = [entry.name for entry in fields(settings)]  # type: ignore[arg-type]  # S is a dataclass
    before, after = _around_dashes(list(arguments))
    given = vars(_parser(verb, words, settings, explanation).parse_intermixed_args(before))
    words_given = given.pop("words")
    for override in after:
        key, equals, value = override.partition("=")
        if not equals:
            raise UsageError(f"behind -- stand overrides such as {keys[0]}=VALUE, found {override!r}")
        if key not in keys:
            raise UnknownNameError("key", key, keys)
        given[key] = value
    config = OmegaConf.structured(settings)
    for key, value in given.items():
        try:
            OmegaConf.update(config, key, value)
            OmegaConf.select(config, key, throw_on_missing=True)  # "???" and "${...}" mean something to OmegaConf
        except OmegaConfBaseException as error:
            raise UsageError(f"{key}: {str(error).splitlines()[0]}") from None
    try:
        return words_given, OmegaConf.to_object(config)  # type: ignore[return-value]  # the dataclass behind the config
    except ValueError as error:  # of the dataclass's own checks
        raise UsageError(str(error)) from None


def _around_dashes(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def _parser(verb: str, words: str, settings: type[Any], explanation: str) -> "_Parser":
    parser = _Parser(
        prog=f"reversi {verb}",
        usage=f"reversi {verb} {words} [OPTION ...] [-- KEY=VALUE ...]",
        description=explanation,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument("words", nargs="*", default=[], help=argparse.SUPPRESS)
    for entry in fields(settings):
        option = f"--{entry.name.replace('_', '-')}"
        if entry.type is bool:
            parser.add_argument(option, action="store_true", help=entry.metadata["help"])
        else:
            default = "" if entry.default is None else f" (default: {entry.default})"
            parser.add_argument(option, metavar=entry.name.upper(), help=entry.metadata["help"] + default)
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of leaving the process, and knows near misses."""

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = self.parse_known_intermixed_args(args, namespace)
        for word in unknown:
            raise UnknownNameError("option", word.partition("=")[0], self._option_string_actions)
        return found

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)
