"""The boards the kill test works on: their trees, changes by hand, reboots, and the modes to be killed in."""

from __future__ import annotations

import os
from pathlib import Path

from kill_steps import warm_run

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import create_tree
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode
from powerlab.modes.controller import ModeController
from powerlab.sysroot import Sysroot

BOOT_ID = "proc/sys/kernel/random/boot_id"
NVPMODEL = "usr/sbin/nvpmodel"
CLOCKS = "jetson-clocks"
_OUTLIVES_A_BOOT = ("var/", "etc/")
_MEETING_PLACES = ("run/lock/", "run/powerlab/helper.")

Content = dict[str, bytes | None]


def board_names() -> list[str]:
    """Every board that can be simulated."""
    return [name for name in BOARDS if name != "generic"]


def content(tree: Path) -> Content:
    """Every file of a tree and what it holds, every directory as None; not the locks, which mean nothing when free.

    Of what stands for sysfs the first line: it has no more, where a plain file may keep the rest of a longer text.
    """
    found: Content = {}
    for directory, names, files in os.walk(tree):
        inside = os.path.relpath(directory, tree)
        found.update({f"{inside}/{name}/".removeprefix("./"): None for name in names if inside != "run"})
        for name in files:
            path = f"{inside}/{name}".removeprefix("./")
            if not path.startswith(_MEETING_PLACES):
                with open(f"{directory}/{name}", "rb") as file:
                    text = file.read()
                found[path] = text.partition(b"\n")[0] + b"\n" if path.startswith("sys/") else text
    return found


def different(one: Content, other: Content) -> list[str]:
    """The paths that are not the same in both."""
    return sorted(path for path in one.keys() | other.keys() if one.get(path, b"absent") != other.get(path, b"absent"))


def make_as(tree: Path, wanted: Content) -> None:
    """Bring a tree to a content, file by file where it differs."""
    now = content(tree)
    changed = different(wanted, now)
    for path in (path for path in reversed(changed) if path not in wanted):
        (tree / path).rmdir() if path.endswith("/") else (tree / path).unlink()
    for path in (path for path in changed if path in wanted):
        if (text := wanted[path]) is None:
            (tree / path).mkdir()
        else:
            (tree / path).write_bytes(text)


def change_by_hand(tree: Path) -> None:
    """Choose settings no mode would choose, so that going back to a mode's own is not enough."""
    for policy in (tree / "sys/devices/system/cpu/cpufreq").glob("policy*"):
        low, high = (int((policy / f"cpuinfo_{end}_freq").read_text()) for end in ("min", "max"))
        table = policy / "scaling_available_frequencies"
        words = table.read_text().split() if table.is_file() else [low, low + 1, high - 1, high]
        clocks = [int(word) for word in words]
        (policy / "scaling_min_freq").write_text(f"{clocks[min(1, len(clocks) - 1)]}\n")
        (policy / "scaling_max_freq").write_text(f"{clocks[max(-2, -len(clocks))]}\n")
        governors = (policy / "scaling_available_governors").read_text().split()
        (policy / "scaling_governor").write_text(f"{governors[len(governors) // 2]}\n")


def reboot(tree: Path, at_boot: Content, boot: int) -> None:
    """Leave of a tree what outlives a boot, and let the board's own service set the mode that was left."""
    kept = {path: text for path, text in content(tree).items() if path.startswith(_OUTLIVES_A_BOOT)}
    others = {path: text for path, text in at_boot.items() if not path.startswith(_OUTLIVES_A_BOOT)}
    make_as(tree, {**others, **kept, BOOT_ID: f"boot-{boot:031d}\n".encode()})
    status = tree / "var/lib/nvpmodel/status"
    if (tree / NVPMODEL).is_file():
        warm_run([str(tree / NVPMODEL), "-m", str(int(status.read_text().partition(":")[2]))])


def new_board(name: str, tree: Path) -> Sysroot:
    """Write a board's tree, without a simulator process: nothing moves but what is tested."""
    create_tree(name, tree)
    return Sysroot(tree)


def modes_to_try(sysroot: Sysroot, state_dir: Path) -> list[str]:
    """A few modes of every knob, and sets of parts of several knobs."""
    controller = ModeController(sysroot, state_dir)
    by_kind: dict[str, list[PowerMode]] = {}
    for mode in controller.modes():
        if mode.settings and not mode.requires_reboot:
            by_table = mode.origin is ModeOrigin.VENDOR and "=" not in mode.name and mode.name != CLOCKS
            kind = "vendor" if by_table else mode.name.partition("=")[0]
            by_kind.setdefault(kind, []).append(mode)
    middle = {kind: modes[len(modes) // 2].name for kind, modes in by_kind.items()}
    parts = [name for kind, name in middle.items() if kind not in {"vendor", CLOCKS}]
    joined = ["+".join(parts[1:5]), "+".join(parts[:3])]
    if "vendor" in middle:
        joined.insert(0, f"{middle['vendor']}+{parts[1]}")
    return [
        *middle.values(),
        *(name for name in dict.fromkeys(joined) if "+" in name and _is_possible(controller, name)),
    ]


def is_taken(sysroot: Sysroot, state_dir: Path, name: str) -> bool:
    """Say whether the device takes a mode: Intel's fastest governor for example leaves no energy preference to set."""
    try:
        with ModeController(sysroot, state_dir).applied(name):
            return True
    except PowerlabError:
        return False


def _is_possible(controller: ModeController, name: str) -> bool:
    try:
        return controller.find(name) is not None
    except PowerlabError:
        return False
