"""A terminal that closes, or a service manager that has waited long enough, while ``powerlab modes`` is at work."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable

import pytest

from powerlab.cli import EXIT_INTERRUPTED, main
from powerlab.domain.mode import Setting
from powerlab.modes.settings import Board
from powerlab.sysroot import Sysroot

Content = Callable[[Sysroot], dict[str, str]]
ENDS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("end", ENDS)
def test_half_a_mode_is_not_left(
    board: Sysroot, content_of: Content, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    before = content_of(board)
    write = Board.write

    def cut_short(self: Board, settings: Iterable[Setting]) -> None:
        write(self, list(settings)[:1])
        signal.raise_signal(end)

    monkeypatch.setattr(Board, "write", cut_short)
    assert main(["modes", "set", "governor=powersave", "--sysroot", str(board.base)]) == EXIT_INTERRUPTED
    after = content_of(board)
    assert {path: text for path, text in after.items() if not path.startswith("var/lib/powerlab")} == before
    assert not [path for path in after if path.endswith(".json") and path.startswith("var/lib/powerlab")]


@pytest.mark.parametrize("end", ENDS)
def test_a_way_back_is_finished(
    board: Sysroot, content_of: Content, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    before = content_of(board)
    assert main(["modes", "set", "governor=powersave", "--sysroot", str(board.base)]) == 0
    restore = Board.restore

    def pressed(self: Board, previous: tuple[Setting, ...], touched: frozenset[tuple[str, str]]) -> object:
        signal.raise_signal(end)
        return restore(self, previous, touched)

    monkeypatch.setattr(Board, "restore", pressed)
    assert main(["modes", "restore", "--sysroot", str(board.base)]) == EXIT_INTERRUPTED
    assert content_of(board) == before
