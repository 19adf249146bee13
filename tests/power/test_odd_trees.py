"""Trees no kernel made: whatever lies where a sensor or a knob is looked for, probing says so and raises nothing.

Sources and knobs meet trees in containers, of other kernels, half unplugged or made by other tools. Here files are
missing, empty, binary, too large, unreadable or directories, and links lead nowhere, to themselves or to the root.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from powerlab.boards.registry import BOARDS, detect
from powerlab.boards.simulator import create_tree
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Availability
from powerlab.modes.registry import KNOBS
from powerlab.power.base import PolledChannel
from powerlab.power.registry import SOURCES, probe_all
from powerlab.power.total import choose_total
from powerlab.sysroot import Sysroot

LARGE = {"ampere-altra", "nvidia-grace", "intel-xeon"}
"""Servers with hundreds of equal files teach nothing more here."""
SIMULATED = sorted(name for name, board in BOARDS.items() if board.simulatable and name not in LARGE)
DIVERSE = ("apm-xgene", "gpu-workstation", "jetson-agx-orin", "jetson-agx-xavier", "laptop")
"""One of each kind."""
TEXTS = (
    b"",
    b"\n",
    b"\0\0\0\0",
    b"\xff\xfe\x80garbage\x00\x01",
    b"-1",
    b"0",
    b"9" * 400,
    b"18446744073709551616",
    b"1e400",
    b"nan",
    b"N/A\n",
    b"[always] madvise never",
    b"1 2 3 4 5 6 7",
    b"0-",
    b"4-2,,9-",
    b"0-99999999999",
    b"max",
    b"a\nb\nc\n",
    "²³½ ١٢٣\n".encode(),
    b" " * 4096,
    b"1" * 4096,
)


@dataclass(frozen=True, slots=True)
class Damage:
    """One way in which a path can be odd."""

    name: str
    do: Callable[[Path, random.Random], None]


def _clear(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def _missing(path: Path, chance: random.Random) -> None:
    _clear(path)


def _text(path: Path, chance: random.Random) -> None:
    _clear(path)
    path.write_bytes(chance.choice(TEXTS))


def _directory(path: Path, chance: random.Random) -> None:
    _clear(path)
    path.mkdir()


def _dangling(path: Path, chance: random.Random) -> None:
    _clear(path)
    path.symlink_to("nowhere/at/all")


def _circular(path: Path, chance: random.Random) -> None:
    _clear(path)
    path.symlink_to(path.name)


def _to_above(path: Path, chance: random.Random) -> None:
    _clear(path)
    path.symlink_to("../..")


def _file_for_directory(path: Path, chance: random.Random) -> None:
    parent = path.parent
    _clear(parent)
    parent.write_bytes(chance.choice(TEXTS))


DAMAGES = tuple(
    Damage(function.__name__.strip("_"), function)
    for function in (_missing, _text, _text, _text, _directory, _dangling, _circular, _to_above, _file_for_directory)
)


def inhabited(base: Path) -> list[Path]:
    """The files and links that sources and knobs look at, in a fixed order."""
    found = []
    for directory, names, files in os.walk(base):
        found += [Path(directory, name) for name in files]
        found += [Path(directory, name) for name in names if Path(directory, name).is_symlink()]
    return sorted(path for path in found if path.parent != base and base / "simulation" not in path.parents)


def check_everything(sysroot: Sysroot) -> None:
    """Ask every source and every knob; nothing but PowerlabError may come out, and that where it is allowed."""
    board = detect(sysroot)
    for source in SOURCES:
        probe = source.probe(sysroot)
        assert probe.source == source.name
        assert probe.detail
        assert bool(probe.rails) <= (probe.availability is Availability.AVAILABLE)
        assert len({rail.key for rail in probe.rails}) == len(probe.rails)
        for rail in probe.rails:
            assert min(rail.resolution, rail.relative_error, rail.update_period_s, rail.offset) >= 0
        for channel in source.channels(sysroot):
            if isinstance(channel, PolledChannel) and channel.session is None:
                with suppress(OSError):
                    channel.read()
    choose_total(probe_all(sysroot), board)
    for knob in KNOBS:
        answer = knob.probe(sysroot)
        assert answer.knob == knob.name
        assert answer.detail
        for ask in (knob.modes, knob.read):
            with suppress(PowerlabError):
                ask(sysroot)
        for name in ("cores=1", "cpu-max=1000000kHz", "governor=performance", "no-such-mode", ""):
            with suppress(PowerlabError):
                knob.parse(sysroot, name)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One untouched tree of each board."""
    directory = tmp_path_factory.mktemp("originals")
    for name in SIMULATED:
        create_tree(name, directory / name)
    return {name: directory / name for name in SIMULATED}


@pytest.mark.campaign
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(SIMULATED),
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.02, 0.1, 0.5, 1.0]),
)
def test_damaged_boards_are_probed_without_a_word_of_python(
    originals: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, name: str, seed: int, share: float
) -> None:
    base = tmp_path_factory.mktemp("damaged") / "board"
    shutil.copytree(originals[name], base, symlinks=True)
    chance = random.Random(seed)
    for path in inhabited(base):
        if chance.random() < share:
            with suppress(OSError):  # an earlier damage took the directory away
                chance.choice(DAMAGES).do(path, chance)
    check_everything(Sysroot(base))
    _clear(base)


@pytest.mark.parametrize("damage", DAMAGES[:2] + DAMAGES[4:], ids=lambda damage: damage.name)
@pytest.mark.parametrize("name", DIVERSE)
def test_every_file_damaged_in_one_way(originals: dict[str, Path], tmp_path: Path, name: str, damage: Damage) -> None:
    base = tmp_path / "board"
    shutil.copytree(originals[name], base, symlinks=True)
    chance = random.Random(name)
    for path in inhabited(base):
        with suppress(OSError):
            damage.do(path, chance)
    check_everything(Sysroot(base))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:12]))
def test_every_file_holds_the_same_nonsense(originals: dict[str, Path], tmp_path: Path, text: bytes) -> None:
    for name in ("laptop", "jetson-agx-orin"):
        base = tmp_path / name
        shutil.copytree(originals[name], base, symlinks=True)
        for path in inhabited(base):
            if path.is_file() and not path.is_symlink():
                path.write_bytes(text)
        check_everything(Sysroot(base))


@pytest.mark.parametrize("name", DIVERSE)
@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_nothing_at_all_can_be_read(
    originals: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str, error: OSError
) -> None:
    """Root reads everything, so the refusal is made here."""

    def read(self: Sysroot, path: str) -> str:
        raise error

    monkeypatch.setattr(Sysroot, "read", read)
    check_everything(Sysroot(originals[name]))


@pytest.mark.parametrize("name", DIVERSE)
def test_nothing_can_even_be_looked_at(originals: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As in a container whose security module hides what lies in /sys."""
    sysroot, honest = Sysroot(originals[name]), Path.stat

    def stat(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if sysroot.path("/sys/class") in self.parents:
            raise PermissionError(13, "Permission denied", str(self))
        return honest(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", stat)
    check_everything(sysroot)


def test_an_empty_root_a_missing_one_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for base in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        check_everything(Sysroot(base))


@pytest.mark.parametrize("name", SIMULATED)
def test_undamaged_trees_pass_the_same_questions(originals: dict[str, Path], name: str) -> None:
    check_everything(Sysroot(originals[name]))
