"""``powerlab agent``: runs ``powerlab_agent``."""

from __future__ import annotations

import argparse

from powerlab_agent import arguments

DESCRIPTION = EPILOG = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    arguments.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab_agent.main import run as run_agent

    return run_agent(args)
