"""A user without rights sets modes and measures through the helper, as the agent does."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Availability, SourceProbe
from powerlab.modes.controller import ModeController
from powerlab.modes.io.files import can_write, read_value, write_value
from powerlab.modes.undo.lock import device_lock
from powerlab.power.sampling.recorder import Recorder
from powerlab.power.sources.rapl import Rapl
from powerlab.privileged.reading import read_denied_register
from powerlab.sysroot import Sysroot

NOBODY = 65534
POLICY = "/sys/devices/system/cpu/cpufreq/policy0"
COUNTER = "/sys/class/powercap/intel-rapl:0/energy_uj"
Helper = subprocess.Popen[str]
Serving = Callable[[int], AbstractContextManager[Helper]]
AsNobody = Callable[[Callable[[], object]], str]


@pytest.fixture
def state(tree: Sysroot) -> Path:
    """A directory every user can write."""
    path = tree.path("/state")
    path.mkdir()
    path.chmod(0o777)
    return path


def set_governor(tree: Sysroot, state: Path) -> tuple[str, str]:
    with ModeController(tree, state).applied("governor=performance"):
        inside = read_value(tree, f"{POLICY}/scaling_governor")
    return inside, read_value(tree, f"{POLICY}/scaling_governor")


def test_without_a_helper_the_refusal_says_what_to_start(tree: Sysroot, state: Path, as_nobody: AsNobody) -> None:
    said = as_nobody(lambda: write_value(tree, f"{POLICY}/scaling_governor", "performance"))
    assert said.startswith("PowerlabError")
    assert "run powerlab as root, or start powerlab-helper" in said
    assert "PermissionError" in as_nobody(lambda: read_value(tree, COUNTER))
    assert as_nobody(lambda: can_write(tree, f"{POLICY}/scaling_governor")) == "False"


def test_a_mode_is_set_and_taken_back_through_the_helper(
    tree: Sysroot, state: Path, serving: Serving, as_nobody: AsNobody
) -> None:
    with serving(NOBODY):
        assert as_nobody(lambda: set_governor(tree, state)) == "('performance', 'powersave')"
    assert list(state.rglob("journal.json")) == []


def test_a_value_outside_of_the_device_s_range_is_refused_with_the_range(
    tree: Sysroot, serving: Serving, as_nobody: AsNobody
) -> None:
    with serving(NOBODY):
        said = as_nobody(lambda: write_value(tree, f"{POLICY}/scaling_max_freq", "9999999"))
    assert "the device's range is 800000 to 3600000" in said


def test_a_file_on_no_list_stays_as_it_is(tree: Sysroot, serving: Serving, as_nobody: AsNobody) -> None:
    with serving(NOBODY):
        said = as_nobody(lambda: write_value(tree, "/etc/secret", "mine now"))
    assert "not on its list" in said
    assert tree.read("/etc/secret") == "not for agents"


def test_rails_that_root_alone_may_read_are_there_through_the_helper(
    tree: Sysroot, serving: Serving, as_nobody: AsNobody
) -> None:
    def probed() -> str:
        probe: SourceProbe = Rapl().probe(tree)
        return f"{probe.availability.value}: {probe.detail}"

    assert as_nobody(probed).strip("'").startswith(f"{Availability.DENIED.value}: found package-0")
    with serving(NOBODY):
        assert as_nobody(probed) == "'available: 1 rail can be read, package-0 through the privileged helper'"


def test_the_sampler_reads_what_the_helper_opened(tree: Sysroot, serving: Serving, as_nobody: AsNobody) -> None:
    def values() -> set[float]:
        with Recorder(tree, ["rapl:package-0"], period_s=0.001) as recorder:
            while recorder.rounds < 3:
                threading.Event().wait(0.001)
            (trace,) = recorder.stop()
        return set(trace.value.tolist())

    with serving(NOBODY):
        assert as_nobody(values) == "{123.456789}", "the counter of this tree does not move"
    assert "no readable rail" in as_nobody(values)


def test_a_register_is_read_for_who_may_not(tree: Sysroot, serving: Serving, as_nobody: AsNobody) -> None:
    device = tree.path("/dev/cpu/0/msr")
    device.parent.mkdir(parents=True)
    device.write_bytes(bytes(0x64F) + (0x0000_0002).to_bytes(8, "little"))
    device.chmod(0o600)
    assert as_nobody(lambda: read_denied_register(tree, 0, 0x64F)).startswith("PermissionError")
    with serving(NOBODY):
        assert as_nobody(lambda: read_denied_register(tree, 0, 0x64F)) == "2"
        assert as_nobody(lambda: read_denied_register(tree, 0, 0x10)).startswith("PermissionError")


def test_root_and_the_agent_meet_at_one_lock(tree: Sysroot, state: Path, serving: Serving, as_nobody: AsNobody) -> None:
    """Whatever umask made the file: a sweep as root and one as the agent are never both at it."""
    with device_lock(tree, state):
        assert "is setting power modes" in as_nobody(lambda: set_governor(tree, state))
    with serving(NOBODY):
        assert as_nobody(lambda: set_governor(tree, state)) == "('performance', 'powersave')"


def test_a_lock_that_cannot_be_opened_is_no_lock_that_is_free(tree: Sysroot, state: Path, as_nobody: AsNobody) -> None:
    path = tree.path("/run/lock/powerlab-modes.lock")
    path.write_text("")
    path.chmod(0o600)

    def hold() -> None:
        with device_lock(tree, state):
            raise AssertionError("two at once")

    said = as_nobody(hold)
    assert said.startswith(PowerlabError.__name__)
    assert "belongs to another user" in said
