"""The argument parser of every command: help like a man page, and one sentence where a command line is wrong."""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, overload

from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError

_MAX_WIDTH = 98
_MANY = 12
"""More choices than these are not listed where a suggestion or the help says enough."""
_EXIT_STATUS = "exit status: 0 success; 2 invalid request; a message on standard error says why and what to do"
_N = TypeVar("_N")
_KINDS = {"int": "an integer", "float": "a number"}


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps paragraphs to the terminal, at most 98 columns; a block with indented lines stays as it is written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(_MAX_WIDTH, shutil.get_terminal_size().columns - 2))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = text.strip("\n").split("\n\n")
        return "\n\n".join(
            textwrap.indent(block if "\n " in block else textwrap.fill(block, width), indent) for block in blocks
        )


def grouped(groups: Mapping[str, Collection[str]]) -> type[argparse.HelpFormatter]:
    """Return a formatter that lists commands under the titles of their groups."""

    class Grouped(_HelpFormatter):
        def _format_action(self, action: argparse.Action) -> str:
            if not isinstance(action, argparse._SubParsersAction):
                return super()._format_action(action)
            lines = {line.dest: line for line in action._choices_actions}
            return "".join(
                f"{' ' * self._current_indent}{title}:\n{self._commands([lines[name] for name in names])}\n"
                for title, names in groups.items()
            )

        def add_argument(self, action: argparse.Action) -> None:
            """Leave room for the commands, which are indented below their titles."""
            deeper = isinstance(action, argparse._SubParsersAction)
            self._current_indent += self._indent_increment * deeper
            super().add_argument(action)
            self._current_indent -= self._indent_increment * deeper

        def _commands(self, lines: Sequence[argparse.Action]) -> str:
            self._indent()
            text = "".join(super(Grouped, self)._format_action(line) for line in lines)
            self._dedent()
            return text

    return Grouped


class Parser(argparse.ArgumentParser):
    """Says the exit status where the epilog does not, and raises what argparse would print and exit with.

    Whatever was misspelt, an option, a command or one of a few choices, gets a suggestion.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", _HelpFormatter)
        super().__init__(*args, **kwargs)
        # With this, `-3ms` is a value, which its option refuses in its own words, and not an option that nobody knows.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def format_help(self) -> str:
        """Return the help, which ends with the exit status unless the epilog says it."""
        if "exit status" not in (self.epilog or ""):
            self.epilog = "\n\n".join(filter(None, ((self.epilog or "").rstrip("\n"), _EXIT_STATUS)))
        return super().format_help()

    @overload  # type: ignore[override]
    def parse_known_args(
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> tuple[argparse.Namespace, list[str]]: ...
    @overload
    def parse_known_args(self, args: Sequence[str] | None, namespace: _N) -> tuple[_N, list[str]]: ...
    @overload
    def parse_known_args(self, *, namespace: _N) -> tuple[_N, list[str]]: ...
    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse, and refuse what is left over where its options are known: in the parser of the command itself."""
        found, left_over = super().parse_known_args(args, namespace)
        if left_over:
            word = left_over[0]
            if word.startswith("-") and word != "-":
                option = word.partition("=")[0]
                self.error(f"there is no option {option}{meant(option, list(self._option_string_actions))}")
            self.error(f"{word!r} is one word too many")
        return found, left_over

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = list(map(str, action.choices))
        close = meant(str(value), names)
        rest = f"{value!r}{close}" + ("" if close and len(names) > _MANY else f"; choose from: {', '.join(names)}")
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no {str(action.metavar).lower()} {rest}")
        raise argparse.ArgumentError(action, f"there is no choice {rest}")

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises:
            PowerlabError: always.
        """
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and message.endswith(f"required: {action.metavar}"):
                message = f"{action.metavar} is missing"
                if len(action.choices) <= _MANY:
                    message += f"; choose from: {', '.join(action.choices)}"
        for kind, wanted in _KINDS.items():
            message = re.sub(rf"invalid {kind} value: ('.*')", rf"\1 is not {wanted}", message, flags=re.DOTALL)
        raise PowerlabError(f"{message.rstrip('.')}; `{self.prog} --help` shows how it is called.")


def integer_in(least: int, most: int) -> Callable[[str], int]:
    """Return what parses an argument that is an integer from ``least`` to ``most``; argparse words the rest."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not an integer from {least} to {most}")
        return value

    return parse


def time_up_to(most: float, unit: str) -> Callable[[str], float]:
    """Return what parses an argument that is a time above 0 and not above ``most``; argparse words the rest."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a time above 0 and up to {most:.0f} {unit}")
        return value

    return parse
