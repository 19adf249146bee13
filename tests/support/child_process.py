"""Child processes of tests."""

from __future__ import annotations

import subprocess
from types import TracebackType
from typing import Any


class ChildProcess(subprocess.Popen[Any]):
    """A process that is killed if the ``with`` block fails; otherwise a failed assertion would wait for its end."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)
