"""Machines without a device tree are known by files that only they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.boards import registry
from powerlab.boards.board import Board
from powerlab.sysroot import Sysroot

CHIP = "/sys/class/hwmon/hwmon*/name"
PRODUCT = "/sys/class/dmi/id/product_name"
SERVER = Board(name="a-server", title="A server", signs={CHIP: "good_hwmon", PRODUCT: "Model (1|2)"})


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sysroot:
    monkeypatch.setattr(registry, "BOARDS", {"generic": registry.BOARDS["generic"], SERVER.name: SERVER})
    for path, text in {
        "sys/class/hwmon/hwmon0/name": "acpitz",
        "sys/class/hwmon/hwmon7/name": "good_hwmon\n",
        "sys/class/dmi/id/product_name": "Model 2\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return Sysroot(tmp_path)


def test_all_signs_together_are_a_board(machine: Sysroot) -> None:
    assert registry.detect(machine) == SERVER


@pytest.mark.parametrize("text", ["Model 3", "A Model 2", "Model 2 and more", ""])
def test_one_sign_that_differs_is_enough_not_to_be_it(machine: Sysroot, text: str) -> None:
    machine.path(PRODUCT).write_text(text)
    assert registry.detect(machine).name == "generic"


def test_a_sign_that_cannot_be_read_is_none(machine: Sysroot) -> None:
    machine.path(PRODUCT).unlink()
    assert registry.detect(machine).name == "generic"
    machine.path(PRODUCT).mkdir()
    assert registry.detect(machine).name == "generic"


def test_a_board_without_signs_is_never_found_by_them(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BOARDS, "a-board", Board(name="a-board", title="A board"))
    machine.path(PRODUCT).unlink()
    assert registry.detect(machine).name == "generic"
