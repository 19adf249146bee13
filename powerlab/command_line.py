"""The argument parser of every command: help like a man page, and one sentence where a command line is wrong."""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn

from powerlab.domain.errors import PowerlabError

_MAX_WIDTH = 98
_EXIT_STATUS = "exit status: 0 success; 2 invalid request; a message on standard error says why and what to do"
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


class Parser(argparse.ArgumentParser):
    """Says the exit status where the epilog does not, and raises what argparse would print and exit with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", _HelpFormatter)
        super().__init__(*args, **kwargs)

    def format_help(self) -> str:
        """Return the help, which ends with the exit status unless the epilog says it."""
        if "exit status" not in (self.epilog or ""):
            self.epilog = "\n\n".join(filter(None, ((self.epilog or "").rstrip("\n"), _EXIT_STATUS)))
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises:
            PowerlabError: always.
        """
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
