"""Every simulated Jetson under every JetPack shows the files, rails, modes and knobs of the real one."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from jetsons import CPU_RAIL, IDS, JETPACKS, JETSONS, RAILS
from powerlab.boards.registry import BOARDS, detect, find_board
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.clusters import clusters_of
from powerlab.boards.simulator.physics import PowerModel, Work, components_w, inference_s, rails_w
from powerlab.boards.simulator.start import modes_of
from powerlab.boards.simulator.state import read_settings
from powerlab.domain.power import Availability
from powerlab.domain.quantity import Provenance
from powerlab.modes.knobs.nvpmodel.conf import parse_conf
from powerlab.power.registry import probe_all
from powerlab.power.sources.ina3221 import Ina3221
from powerlab.power.total import choose_total
from powerlab.sysroot import Sysroot

CPU = "/sys/devices/system/cpu"
EVERY = pytest.mark.parametrize(("name", "jetpack"), JETSONS, ids=IDS)


@pytest.fixture
def tree(name: str, jetpack: int, tmp_path: Path) -> Sysroot:
    create_tree(name, tmp_path / "tree", jetpack)
    return Sysroot(tmp_path / "tree")


def everything(root: Path) -> dict[str, tuple[int, str]]:
    """Every path of a tree with its kind and permissions, and its text or where it leads."""
    found = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        text = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else ""
        found[str(path.relative_to(root))] = (stat.S_IFMT(mode) | stat.S_IMODE(mode), text)
    return found


def set_mode(tree: Sysroot, number: int) -> None:
    subprocess.run([tree.path("/usr/sbin/nvpmodel"), "-m", str(number)], stdin=subprocess.DEVNULL, check=True)


def test_every_jetson_can_be_simulated_under_the_jetpacks_it_has() -> None:
    assert {name: set(BOARDS[name].jetpacks) for name in BOARDS if name.startswith("jetson-")} == JETPACKS


@EVERY
def test_the_same_call_gives_the_same_tree(name: str, jetpack: int, tree: Sysroot, tmp_path: Path) -> None:
    create_tree(name, tmp_path / "again", jetpack)
    assert everything(tree.base) == everything(tmp_path / "again")


@EVERY
def test_the_tree_is_that_board_and_no_link_leads_out_of_it(name: str, jetpack: int, tree: Sysroot) -> None:
    assert detect(tree).name == name
    assert layout.read_marker(tree) == {"board": name, "jetpack": jetpack}
    kernel = {4: "4.9.", 5: "5.10.", 6: "5.15."}[jetpack]
    assert tree.read("/proc/sys/kernel/osrelease").startswith(kernel)
    links = [path for path in tree.base.rglob("*") if path.is_symlink()]
    assert all(path.resolve(strict=True).is_relative_to(tree.base) for path in links)


@EVERY
def test_the_probe_finds_exactly_the_boards_rails(name: str, jetpack: int, tree: Sysroot) -> None:
    probe = Ina3221().probe(tree)
    assert probe.availability is Availability.AVAILABLE
    assert {rail.name for rail in probe.rails} == RAILS[name]
    assert {rail.provenance for rail in probe.rails} == {Provenance.SIMULATED}
    assert all(rail.resolution > 0 for rail in probe.rails)


@EVERY
def test_the_total_is_the_boards_own(name: str, jetpack: int, tree: Sysroot) -> None:
    total = choose_total(probe_all(tree), find_board(name))
    assert total is not None
    assert total == find_board(name).total
    assert not total.proposed


@EVERY
def test_each_jetpack_has_its_drivers_files(name: str, jetpack: int, tree: Sysroot) -> None:
    iio = tree.glob("/sys/bus/i2c/drivers/ina3221x/*/iio:device*/name")
    hwmon = tree.glob("/sys/bus/i2c/drivers/ina3221/*/hwmon/hwmon*/name")
    chips = len(find_board(name).chips)
    assert (len(iio), len(hwmon)) == ((chips, 0) if jetpack == 4 else (0, chips))
    if jetpack == 4:
        assert len(tree.glob("/sys/bus/iio/devices/iio:device*")) == chips
        return
    for chip in (path.rpartition("/")[0] for path in hwmon):
        for number in (1, 2, 3):
            label = tree.read(f"{chip}/in{number}_label")
            assert tree.read(f"{chip}/in{number}_enable") == str(int(label != "NC"))
            assert int(tree.read(f"{chip}/shunt{number}_resistor")) > 0
        assert int(tree.read(f"{chip}/update_interval")) > 0
        assert tree.path(f"{chip}/device").resolve().name in {chip.address for chip in find_board(name).chips}


def test_channels_the_agx_orin_leaves_unused_read_0_and_are_no_rails(tmp_path: Path) -> None:
    create_tree("jetson-agx-orin", tmp_path / "tree", 5)
    tree = Sysroot(tmp_path / "tree")
    (chip,) = tree.glob("/sys/bus/i2c/drivers/ina3221/1-0041/hwmon/hwmon*")
    assert [tree.read(f"{chip}/in{number}_label") for number in (1, 2, 3)] == ["NC", "VDDQ_VDD2_1V8AO", "NC"]
    assert tree.read(f"{chip}/curr1_input") == "0"


@EVERY
def test_sensors_that_nothing_moves_say_what_an_idle_board_draws(name: str, jetpack: int, tree: Sysroot) -> None:
    simulation = layout.simulation_of(name)
    model = PowerModel.from_document(simulation)
    idle_w = rails_w(simulation["rails"], components_w(model, read_settings(tree, simulation).state(0)))
    for channel in Ina3221().channels(tree):
        reading_w = channel.scale
        for path in channel.paths:
            reading_w *= int(tree.read(path))
        assert reading_w == pytest.approx(idle_w[channel.rail.name], abs=channel.rail.resolution / 2 + 0.001)


@EVERY
def test_nvpmodels_table_is_the_published_one(name: str, jetpack: int, tree: Sysroot) -> None:
    modes = modes_of(find_board(name), jetpack)
    conf = parse_conf(tree.read("/etc/nvpmodel.conf"))
    assert [(model.id, model.name) for model in conf.models] == [(mode.id, mode.name) for mode in modes]
    assert conf.default_id in {mode.id for mode in modes}
    for parameter in conf.parameters.values():
        assert all(tree.path(path).is_file() for path in parameter.paths.values())


@EVERY
def test_every_live_mode_is_set_as_published_and_back(name: str, jetpack: int, tree: Sysroot) -> None:
    simulation = layout.simulation_of(name)
    start = everything(tree.base)
    first = int(tree.read("/var/lib/nvpmodel/status").partition(":")[2])
    tables = {cluster.name: cluster.freqs_khz for cluster in clusters_of(simulation)}
    for mode in modes_of(find_board(name), jetpack):
        if mode.requires_reboot:
            continue
        set_mode(tree, mode.id)
        settings = read_settings(tree, simulation)
        assert len(settings.online_cores) == mode.cores
        fastest = max(policy.busy_khz for policy in settings.policies if policy.online_cores)
        clocks = [clock for table in tables.values() for clock in table if mode.cpu_khz < 0 or clock <= mode.cpu_khz]
        assert fastest == max(clocks)
        assert settings.emc_hz == (mode.emc_hz or simulation["emc"]["max_hz"])
    set_mode(tree, first)
    assert everything(tree.base) == start


@EVERY
def test_a_board_starts_in_the_mode_it_says_it_is_in(name: str, jetpack: int, tree: Sysroot) -> None:
    """Setting the mode the board is in already changes nothing."""
    before = everything(tree.base)
    set_mode(tree, int(tree.read("/var/lib/nvpmodel/status").partition(":")[2]))
    assert everything(tree.base) == before


@EVERY
def test_a_mode_that_needs_a_reboot_is_refused(name: str, jetpack: int, tree: Sysroot) -> None:
    for mode in modes_of(find_board(name), jetpack):
        if mode.requires_reboot:
            done = subprocess.run(
                [tree.path("/usr/sbin/nvpmodel"), "-m", str(mode.id)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode != 0
            assert "Reboot required" in done.stdout


@EVERY
def test_slower_clocks_are_slower_and_draw_less_on_the_cpus_rail(name: str, jetpack: int, tree: Sysroot) -> None:
    simulation = layout.simulation_of(name)
    model = PowerModel.from_document(simulation)

    def run(threads: int) -> tuple[float, float]:
        state = read_settings(tree, simulation).state(threads)
        rate = 1 / inference_s(model, state, Work(1e9, 1e8))
        return rate, rails_w(simulation["rails"], components_w(model, state))[CPU_RAIL[name]]

    policies = tree.glob(f"{CPU}/cpufreq/policy*")
    tops_khz = {path: int(tree.read(f"{path}/scaling_max_freq")) for path in policies}
    results = [run(2)]
    for share in (0.8, 0.5, 0.2):
        for path, top_khz in tops_khz.items():
            for end in ("min", "max"):
                tree.path(f"{path}/scaling_{end}_freq").write_text(f"{int(top_khz * share)}\n")
        results.append(run(2))
    rates, watts = zip(*results, strict=True)
    assert list(rates) == sorted(rates, reverse=True)
    assert list(watts) == sorted(watts, reverse=True)
    assert len(set(rates)) == len(set(watts)) == 4


def test_a_bigger_mode_can_be_slower_for_a_cpu() -> None:
    """The Orin Nano's 25W mode caps the CPU lower than its 15W mode does: published so, and kept so."""
    modes = {mode.name: mode for mode in modes_of(find_board("jetson-orin-nano"), 6)}
    assert modes["25W"].cpu_khz < modes["15W"].cpu_khz
    assert modes["25W"].gpu_hz > modes["15W"].gpu_hz
