"""Shapes of a model's inputs, as ``--input-shape`` takes them."""

from __future__ import annotations

import argparse

from powerlab.domain.errors import PowerlabError

Shapes = dict[str, tuple[int, ...]]


def add_shape_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--input-shape``."""
    parser.add_argument(
        "--input-shape",
        metavar="NAME=1x3x224x224",
        action="append",
        default=[],
        help="shape of an input that the model leaves open, or another batch size; may be repeated",
    )


def given_shapes(options: list[str]) -> Shapes:
    """Return name -> shape from options like ``x=1x3x224x224``.

    Raises:
        PowerlabError: an option is not of that form.
    """
    shapes: Shapes = {}
    for option in options:
        name, equals, sizes = option.rpartition("=")
        parts = sizes.split("x")
        if not equals or not name or not all(part.isascii() and part.isdigit() and int(part[:9]) for part in parts):
            raise PowerlabError(f"--input-shape {option!r} is not of the form NAME=1x3x224x224.")
        shapes[name] = tuple(map(int, parts))
    return shapes


def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape as ``--input-shape`` takes it: ``1x3x224x224``."""
    return "x".join(map(str, shape)) or "scalar"
