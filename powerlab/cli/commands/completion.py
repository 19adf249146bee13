"""``powerlab completion``: let a shell complete commands, options and identifiers."""

from __future__ import annotations

import argparse

from powerlab.domain.errors import PowerlabError

DESCRIPTION = """\
Print a script that lets a shell complete commands, options, models, boards, metrics, and the sweeps and runs that this
machine has measured. Write it again after an update.
"""

EPILOG = """\
exit status: 0 success; 2 invalid request

examples:
  powerlab completion bash > ~/.local/share/bash-completion/completions/powerlab
  powerlab completion zsh > ~/.zfunc/_powerlab    with `fpath+=~/.zfunc` before compinit in ~/.zshrc
  powerlab completion fish > ~/.config/fish/completions/powerlab.fish
"""
_SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("shell", metavar="SHELL", nargs="?", choices=_SHELLS, help=", ".join(_SHELLS))
    parser.add_argument("--stored", choices=("sweeps", "runs", "baselines"), help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.stored is not None:
        from powerlab.cli.completion.stored import stored_words

        for word in stored_words(args.stored):
            print(word)
        return 0
    if args.shell is None:
        raise PowerlabError(f"SHELL is missing; choose from: {', '.join(_SHELLS)}.")
    from powerlab.cli import parser
    from powerlab.cli.completion.shells import SHELLS
    from powerlab.cli.completion.table import places

    print(SHELLS[args.shell](places(parser())), end="")
    return 0
