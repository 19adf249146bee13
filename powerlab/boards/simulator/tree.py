"""Writes the files of a simulated board."""

from __future__ import annotations

from pathlib import Path

from powerlab.domain.errors import PowerlabError


def create_tree(board_name: str, directory: str | Path, jetpack: int = 4) -> None:
    """Write the root directory of a simulated board; the same arguments give the same files.

    Args:
        board_name: a board of ``powerlab boards`` that can be simulated.
        directory: a directory that does not exist yet or is empty.
        jetpack: 4 writes the INA3221 files of the iio driver, 5 those of the hwmon driver.

    Raises:
        PowerlabError: the board cannot be simulated, or the directory holds files.
    """
    raise PowerlabError(f"{board_name} (JetPack {jetpack}) cannot be written to {directory} yet.")
