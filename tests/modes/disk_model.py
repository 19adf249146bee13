"""A disk that may lose its power: which states it can be in after it, given what was written and what was forced."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Moment:
    """What is certain to be on the disk, and what may be: names and contents reach it in any order until forced.

    Attributes:
        names: the directory as programs see it: file name to the number of its content.
        forced_names: the directory as it certainly is on the disk.
        contents: by number, what was written.
        forced_contents: by number, what certainly is on the disk; nothing where it was never forced.
        before: the word for what came last.
    """

    names: Mapping[str, int] = field(default_factory=dict)
    forced_names: Mapping[str, int] = field(default_factory=dict)
    contents: Mapping[int, bytes] = field(default_factory=dict)
    forced_contents: Mapping[int, bytes] = field(default_factory=dict)
    before: str = "nothing"

    def after_a_power_cut(self) -> Iterator[dict[str, bytes]]:
        """Every state a file system may come up with.

        Old names or new ones, and of each content that was not forced nothing, a half or the whole.
        """
        for names in (self.forced_names, self.names):
            loose = [number for number in names.values() if self.contents[number] != self.forced_contents.get(number)]
            for part in (0.0, 0.5, 1.0) if loose else (1.0,):
                yield {
                    name: self.contents[number][: int(len(self.contents[number]) * part)]
                    if number in loose
                    else self.contents[number]
                    for name, number in names.items()
                }


class Disk:
    """Watches one directory; ``moments`` are its states, one after each call that changed it."""

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        self.moments = [Moment()]
        self._open: dict[int, int] = {}
        self._numbers = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Follow what this process does to the directory."""
        real = {name: getattr(os, name) for name in ("open", "write", "fsync", "replace", "unlink", "close")}

        def opened(path: Any, flags: int, *more: Any, **options: Any) -> int:
            handle: int = real["open"](path, flags, *more, **options)
            if str(path) == self.directory:
                self._open[handle] = 0
            elif self._is_mine(path) and flags & os.O_CREAT:
                self._numbers += 1
                self._open[handle] = self._numbers
                now = self.moments[-1]
                names = {**now.names, Path(path).name: self._numbers}
                self._next("create", names=names, contents={**now.contents, self._numbers: b""})
            return handle

        def write(handle: int, data: bytes) -> int:
            length: int = real["write"](handle, data)
            if number := self._open.get(handle):
                contents = self.moments[-1].contents
                self._next("write", contents={**contents, number: contents[number] + data[:length]})
            return length

        def fsync(handle: int) -> None:
            real["fsync"](handle)
            now = self.moments[-1]
            number = self._open.get(handle)
            if number == 0:
                self._next("force the directory", forced_names=now.names)
            elif number:
                self._next("force the file", forced_contents={**now.forced_contents, number: now.contents[number]})

        def close(handle: int) -> None:
            self._open.pop(handle, None)
            real["close"](handle)

        def rename(source: Any, target: Any) -> None:
            real["replace"](source, target)
            if self._is_mine(target):
                names = dict(self.moments[-1].names)
                names[Path(target).name] = names.pop(Path(source).name)
                self._next("rename", names=names)

        def unlink(path: Any, **options: Any) -> None:
            real["unlink"](path, **options)
            if self._is_mine(path):
                names = {name: n for name, n in self.moments[-1].names.items() if name != Path(path).name}
                self._next("unlink", names=names)

        with patch.multiple(os, open=opened, write=write, fsync=fsync, replace=rename, unlink=unlink, close=close):
            yield

    def put_back(self, files: Files) -> None:
        """Bring the real directory to a state."""
        directory = Path(self.directory)
        directory.mkdir(parents=True, exist_ok=True)
        for path in directory.iterdir():
            path.unlink()
        for name, data in files.items():
            (directory / name).write_bytes(data)

    def _is_mine(self, path: Any) -> bool:
        return os.path.dirname(str(path)) == self.directory

    def _next(self, before: str, **changed: Any) -> None:
        self.moments.append(replace(self.moments[-1], before=before, **changed))
