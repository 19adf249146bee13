"""The boards powerlab knows: every TOML file beside this module, in ``data``, is one board."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import resources
from typing import Any

from powerlab.boards.board import Board, Chip, VendorMode
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import TotalFormula
from powerlab.sysroot import Sysroot

GENERIC_NAME = "generic"


@cache
def board_document(name: str) -> Mapping[str, Any]:
    """Return the whole TOML document of a board, with what only the simulator reads.

    Raises:
        PowerlabError: there is no such board.
    """
    path = resources.files("powerlab.boards") / "data" / f"{name}.toml"
    if "/" in name or not path.is_file():
        close = meant(name, list(BOARDS))
        raise PowerlabError(
            f"there is no board named {name!r}{close}; `powerlab boards` lists the names powerlab knows."
        )
    return tomllib.loads(path.read_text(encoding="utf-8"))


def parse_board(name: str, document: Mapping[str, Any]) -> Board:
    """Turn a board's TOML document into a :class:`Board`.

    Raises:
        TypeError: a table holds a key that does not exist, or lacks one that must.
    """
    fields = {key: value for key, value in document.items() if key != "simulation"}
    total = fields.pop("total", None)
    return Board(
        name=name,
        compatible=tuple(fields.pop("compatible", ())),
        models=tuple(fields.pop("models", ())),
        signs=fields.pop("detect", {}),
        total=TotalFormula(rails=tuple(total.pop("rails")), **total) if (total := dict(total or {})) else None,
        chips=tuple(Chip(**{**chip, "channels": tuple(chip["channels"])}) for chip in fields.pop("chips", ())),
        vendor_modes=tuple(_vendor_mode(mode) for mode in fields.pop("vendor_modes", ())),
        jetpacks=tuple(fields.pop("jetpacks", ())),
        simulatable="simulation" in document,
        **fields,
    )


def _vendor_mode(table: Mapping[str, Any]) -> VendorMode:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return VendorMode(**fields)


class _Boards(Mapping[str, Board]):
    """Boards that are read when they are asked for: parsing all of them takes a tenth of a second."""

    @cached_property
    def _names(self) -> tuple[str, ...]:
        files = (resources.files("powerlab.boards") / "data").iterdir()
        return tuple(sorted(entry.name.removesuffix(".toml") for entry in files if entry.name.endswith(".toml")))

    def __getitem__(self, name: str) -> Board:
        if name not in self._names:
            raise KeyError(name)
        return _board(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@cache
def _board(name: str) -> Board:
    return parse_board(name, board_document(name))


BOARDS: Mapping[str, Board] = _Boards()
"""Every board by its name; ``generic`` stands for a host powerlab has no description of."""


def find_board(name: str) -> Board:
    """Return the board of that name.

    Raises:
        PowerlabError: there is no such board.
    """
    board_document(name)
    return BOARDS[name]


def _device_tree_strings(sysroot: Sysroot, node: str) -> tuple[str, ...]:
    """Return the NUL-separated strings of a device-tree property; none where the machine has no device tree."""
    try:
        text = sysroot.read(f"/proc/device-tree/{node}")
    except OSError:
        return ()
    return tuple(part for part in (part.strip() for part in text.split("\0")) if part)


def detect(sysroot: Sysroot) -> Board:
    """Return the board behind a sysroot, ``generic`` where it is none that powerlab knows.

    The device's ``compatible`` strings are tried in their own order, which is from the most special to the most
    general (Devicetree Specification, 2.3.1), then its ``model``, then the signs of boards that have no device tree.
    """
    for compatible in _device_tree_strings(sysroot, "compatible"):
        for board in BOARDS.values():
            if compatible in board.compatible:
                return board
    for model in _device_tree_strings(sysroot, "model"):
        for board in BOARDS.values():
            if model in board.models:
                return board
    for board in BOARDS.values():
        if board.signs and all(_shows(sysroot, pattern, text) for pattern, text in board.signs.items()):
            return board
    return BOARDS[GENERIC_NAME]


def _shows(sysroot: Sysroot, pattern: str, text: str) -> bool:
    """Say whether one of the files that match a pattern holds the text."""
    for path in sysroot.glob(pattern):
        try:
            if re.fullmatch(text, sysroot.read(path)):
                return True
        except OSError:
            continue  # a sensor that cannot be read now is no sign
    return False
