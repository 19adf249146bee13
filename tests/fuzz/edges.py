"""Which ways through the engine's Python an input takes: pairs of lines run one after the other, in each function."""

from __future__ import annotations

import sys
from pathlib import Path

import powerlab.engine

_ENGINE = str(Path(powerlab.engine.__file__).parent)


class Edges:
    """Collects edges while it is entered; those seen in any run before are in ``known``."""

    def __init__(self):
        self.known = set()
        self._now = set()

    def __enter__(self):
        self._now = set()
        sys.settrace(self._called)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def add(self, feature):
        """Add what is no pair of lines, but tells inputs apart as well: a kernel, a sentence."""
        self._now.add(feature)

    def found(self):
        """Return what the last run had, in whole."""
        return frozenset(self._now)

    def keep_new(self):
        """Return how many edges of the last run are new; they are known from now on."""
        new = self._now - self.known
        self.known |= new
        return len(new)

    def _called(self, frame, event, _):
        code, now = frame.f_code, self._now
        if not code.co_filename.startswith(_ENGINE):
            return None
        before = 0

        def line(frame, event, _):
            nonlocal before
            if event == "line":
                now.add((code, before, frame.f_lineno))
                before = frame.f_lineno
            return line

        return line
