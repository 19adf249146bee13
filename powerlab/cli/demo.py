"""Placeholder until its owner writes it."""

from __future__ import annotations

import argparse

from powerlab.domain.errors import PowerlabError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    subparsers.add_parser("demo")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    raise PowerlabError(f"{args.command} is not built yet.")
