"""Caches of boards whose kernel does not state them: known by what /proc/cpuinfo says of the cores."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.engine.target.arm_cores import arm_cores, arm_features, known_cores
from powerlab.engine.target.caches import ASSUMED, CACHES_VARIABLE, FILE_NAME, find_caches
from powerlab.sysroot import Sysroot

KIB, MIB = 1 << 10, 1 << 20


def processor(number: int, implementer: str, part: str) -> str:
    return (
        f"processor\t: {number}\nBogoMIPS\t: 62.50\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32\n"
        f"CPU implementer\t: {implementer}\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: {part}\n"
        f"CPU revision\t: 1\n"
    )


def board(base: Path, *cores: tuple[str, str]) -> Sysroot:
    (base / "proc").mkdir()
    (base / "proc/cpuinfo").write_text("\n".join(processor(number, *core) for number, core in enumerate(cores)))
    return Sysroot(base)


A57, DENVER, CARMEL = ("0x41", "0xd07"), ("0x4e", "0x003"), ("0x4e", "0x004")
A53, A78AE, N1, X_GENE = ("0x41", "0xd03"), ("0x41", "0xd42"), ("0x41", "0xd0c"), ("0x50", "0x000")


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv(CACHES_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("core", "count", "name", "sizes"),
    [
        (A57, 4, "Cortex-A57", (32 * KIB, 512 * KIB, 0)),  # Jetson Nano
        (CARMEL, 8, "Carmel", (64 * KIB, MIB, 4 * MIB)),  # Jetson AGX Xavier
        (A78AE, 12, "Cortex-A78AE", (64 * KIB, 256 * KIB, 2 * MIB)),  # Jetson AGX Orin
        (N1, 80, "Neoverse N1", (64 * KIB, MIB, 0)),  # Ampere Altra
        (("0x41", "0xd4f"), 72, "Neoverse V2", (64 * KIB, MIB, 0)),  # Grace
        (("0x41", "0xd49"), 8, "Neoverse N2", (64 * KIB, 512 * KIB, 0)),
        (X_GENE, 8, "X-Gene", (32 * KIB, 128 * KIB, 8 * MIB)),
    ],
)
def test_a_board_is_known_by_its_cores(tmp_path, core, count, name, sizes):
    found = find_caches(board(tmp_path, *[core] * count))
    assert ((found.l1_bytes, found.l2_bytes, found.l3_bytes), found.origin) == (sizes, name)


def test_of_clusters_that_differ_the_least_counts(tmp_path):
    """As on Jetson TX2, whose Denver cores come first."""
    found = find_caches(board(tmp_path, DENVER, DENVER, A57, A57, A57, A57))
    assert (found.l1_bytes, found.l2_bytes, found.origin) == (32 * KIB, 512 * KIB, "Cortex-A57, Denver 2")


def test_sysfs_is_believed_before_the_table(tmp_path):
    root = board(tmp_path, CARMEL)
    for index, (level, size) in enumerate([("1", "16K"), ("2", "96K")]):
        folder = tmp_path / f"sys/devices/system/cpu/cpu0/cache/index{index}"
        folder.mkdir(parents=True)
        for file, text in {"level": level, "type": "Unified", "size": size, "shared_cpu_list": "0"}.items():
            (folder / file).write_text(text)
    assert (find_caches(root).l2_bytes, find_caches(root).origin) == (96 * KIB, "sysfs")


def test_a_file_outweighs_the_table(tmp_path):
    root = board(tmp_path, A57)
    path = root.path("/var/lib/powerlab") / FILE_NAME
    path.parent.mkdir(parents=True)
    path.write_text("l2_bytes = 1048576\n")
    found = find_caches(root)
    assert (found.l1_bytes, found.l2_bytes) == (32 * KIB, MIB)


def test_ways_that_nobody_published_are_assumed(tmp_path):
    assert known_cores()[0x4E, 0x004].l1_ways == 0
    assert find_caches(board(tmp_path, CARMEL)).l1_ways == ASSUMED.l1_ways


def test_a_core_of_no_known_design_says_nothing(tmp_path):
    root = board(tmp_path, ("0x41", "0xfff"), A53)
    assert {number: core.name for number, core in arm_cores(root).items()} == {1: "Cortex-A53"}
    assert find_caches(root).origin == "Cortex-A53"


@pytest.mark.parametrize(
    "cpuinfo",
    [
        "",
        "processor : 0\nvendor_id : GenuineIntel\n",
        "processor : 0\nCPU implementer : 0x41\n",
        "processor : x\nCPU implementer : 0x41\nCPU part : 0xd07\n",
        "CPU implementer : 0x41\nCPU part : 0xd07\n",
        "processor : 0\nCPU implementer : 0x41\nCPU part : d07 and more\n",
    ],
)
def test_a_file_without_names_of_cores_says_nothing(tmp_path, cpuinfo):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(cpuinfo)
    assert arm_cores(Sysroot(tmp_path)) == {}
    assert find_caches(Sysroot(tmp_path)).origin in {"sysconf", "assumed"}


def test_extensions_that_all_cores_have_are_told(tmp_path):
    old, new = processor(0, *A53), processor(1, *A78AE).replace("asimd", "asimd fphp asimdhp asimddp")
    (tmp_path / "proc").mkdir()
    for text, expected in [(new, ("fp16", "dotprod")), (f"{old}\n{new}", ()), ("", ()), ("processor : 0\n", ())]:
        (tmp_path / "proc/cpuinfo").write_text(text)
        assert arm_features(Sysroot(tmp_path)) == expected


def test_a_machine_without_the_file_says_nothing(tmp_path):
    assert arm_cores(Sysroot(tmp_path)) == {}
    assert arm_features(Sysroot(tmp_path)) == ()


@given(st.text())
def test_no_text_does_harm(tmp_path_factory, text):
    base = tmp_path_factory.mktemp("root")
    (base / "proc").mkdir()
    (base / "proc/cpuinfo").write_text(text, encoding="utf-8", errors="replace")
    arm_cores(Sysroot(base))
    arm_features(Sysroot(base))


@pytest.mark.parametrize("core", known_cores().values(), ids=lambda core: core.name)
def test_the_table_makes_sense(core):
    assert core.source
    assert 0 < core.implementer < 1 << 8
    assert 0 <= core.part < 1 << 12
    assert 16 <= core.l1_kib <= 128
    assert core.l1_ways in {0, 2, 4, 8}
    assert core.l1_kib < core.l2_kib // core.l2_cores
    assert core.l3_kib == 0 or core.l3_kib >= core.l2_kib


def test_no_two_entries_are_the_same_core():
    names = [core.name for core in known_cores().values()]
    assert len(set(names)) == len(names) >= 12
