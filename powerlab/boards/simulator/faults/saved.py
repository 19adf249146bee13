"""Files and links that a fault changes or takes away, kept so that they can be put back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from powerlab.boards.simulator import layout
from powerlab.sysroot import Sysroot

_LINK_PLACES = ("/sys/class", "/sys/bus")


class Saved:
    """What was there. What is not there is left so: another fault may have taken it."""

    def __init__(self, sysroot: Sysroot) -> None:
        """Keep nothing yet."""
        self._sysroot = sysroot
        self._texts: dict[Path, bytes] = {}
        self._links: dict[Path, str] = {}

    def rewrite(self, path: str, text: str) -> None:
        """Give a file another text."""
        file = self._sysroot.path(path)
        if file.is_file():
            self._texts.setdefault(file, file.read_bytes())
            layout.rewrite(file, text)

    def empty(self, path: str) -> None:
        """Leave nothing in a file; readers that have it open find nothing either."""
        file = self._sysroot.path(path)
        if file.is_file():
            self._texts.setdefault(file, file.read_bytes())
            os.truncate(file, 0)

    def remove(self, path: str) -> None:
        """Take a file away."""
        file = self._sysroot.path(path)
        if file.is_file():
            self._texts.setdefault(file, file.read_bytes())
            file.unlink()

    def remove_directory(self, path: str) -> None:
        """Take a directory away with all it holds and every link that leads into it."""
        directory = self._sysroot.path(path)
        if not directory.is_dir():
            return
        for file in directory.rglob("*"):
            if file.is_symlink():
                self._links[file] = os.readlink(file)
            elif file.is_file():
                self._texts.setdefault(file, file.read_bytes())
        for place in _LINK_PLACES:
            for link in self._sysroot.path(place).rglob("*"):
                if link.is_symlink() and _leads_into(link, directory):
                    self._links[link] = os.readlink(link)
                    link.unlink()
        shutil.rmtree(directory)

    def put_back(self) -> None:
        """Make everything as it was."""
        for file, text in self._texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)
        for link, target in self._links.items():
            if not link.is_symlink():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(target)
        self._texts, self._links = {}, {}


def _leads_into(link: Path, directory: Path) -> bool:
    return link.resolve().is_relative_to(directory.resolve())
