"""``powerlab agent``: the daemon, delegated to ``powerlab_agent``."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    from powerlab_agent.arguments import add_arguments

    add_arguments(subparsers.add_parser("agent", help="measure this device for a server"))


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab_agent.main import run as run_agent

    return run_agent(args)
