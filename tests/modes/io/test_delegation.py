"""Settings that the privileged helper makes as a whole, asked for by a process that is not root."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.modes.io import delegation
from powerlab.modes.io.delegation import may_set, set_by_helper
from powerlab.modes.knobs.cpu_quota import cgroup_v1, cgroup_v2
from powerlab.modes.knobs.cpu_quota import knob as cpu_quota
from powerlab.modes.knobs.cpu_quota.knob import CpuQuota
from powerlab.modes.knobs.jetson_clocks.knob import JetsonClocks
from powerlab.privileged import client
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

PINNED = Setting(knob="jetson_clocks", target="pinned", value="yes")
QUOTA = Setting(knob="cpu_quota", target="cpu.max", value="150000 100000")


@pytest.fixture
def asked(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Makes this process an ordinary user's on a real device with a helper; notes what the helper is asked for."""
    noted: list[tuple[str, str, str]] = []
    board.path(SIMULATION_MARKER).unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(client, "may_set", lambda sysroot, knob: True)
    monkeypatch.setattr(
        client, "make_setting", lambda sysroot, knob, target, value, guard=None: noted.append((knob, target, value))
    )
    for module in (cgroup_v1, cgroup_v2, cpu_quota):
        monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    return noted


def test_who_may_not_has_the_helper_do_it(board: Sysroot, asked: list[tuple[str, str, str]]) -> None:
    assert may_set(board, "jetson_clocks")
    JetsonClocks().write(board, PINNED)
    CpuQuota().write(board, QUOTA)
    assert asked == [("jetson_clocks", "pinned", "yes"), ("cpu_quota", "cpu.max", "150000 100000")]
    assert JetsonClocks().probe(board).availability == CpuQuota().probe(board).availability == "available"
    assert not board.path("/run/powerlab/jetson_clocks.store").exists(), "nothing is done twice"


def test_who_may_asks_nobody(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "make_setting", lambda *arguments: pytest.fail("it was asked"))
    assert not set_by_helper(board, PINNED), "a simulated board needs no root"
    board.path(SIMULATION_MARKER).unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert not set_by_helper(board, PINNED)
    assert may_set(board, "jetson_clocks")


def test_without_a_helper_it_is_denied(
    board: Sysroot, asked: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "may_set", lambda sysroot, knob: False)
    assert not may_set(board, "jetson_clocks")
    assert not set_by_helper(board, PINNED)
    assert JetsonClocks().probe(board).availability == CpuQuota().probe(board).availability == "denied"


def test_what_the_device_refuses_the_helper_is_told_in_words(
    board: Sysroot, asked: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(client, "make_setting", refuse)
    with pytest.raises(
        PowerlabError, match=r"cpu_quota cpu\.max does not take 150000 100000 \(Device or resource busy\)"
    ):
        CpuQuota().write(board, QUOTA)


def test_the_lock_goes_with_the_question(
    board: Sysroot, asked: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    guards: list[Callable[..., object] | int | None] = []
    monkeypatch.setattr(delegation, "held_lock", lambda sysroot: 42)
    monkeypatch.setattr(client, "make_setting", lambda sysroot, knob, target, value, guard: guards.append(guard))
    set_by_helper(board, PINNED)
    assert guards == [42], "so that the device stays locked when this process dies meanwhile"
