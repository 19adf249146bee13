from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import PowerMode, Setting
from powerlab.domain.power import Availability
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.permissions import FilePermission, Permission, ProgramPermission, SettingPermission
from powerlab.privileged.protocol import (
    Done,
    Failed,
    MakeSetting,
    May,
    OpenFile,
    ReadRegister,
    Refused,
    Request,
    RunProgram,
    WriteFile,
)
from powerlab.sysroot import Sysroot
from powerlab_helper.actions import Actions
from powerlab_helper.allowlist import Allowed

POLICY = "/sys/devices/system/cpu/cpufreq/policy0"
TEXTS = st.text(max_size=40)


class Thing:
    """A knob with one grant of each kind."""

    name = "thing"
    meaning = "a thing"
    forms: tuple[Form, ...] = ()
    permissions: tuple[Permission, ...] = (
        FilePermission(path=rf"{POLICY}/scaling_governor", values="[a-z]{1,20}"),
        FilePermission(
            path=rf"{POLICY}/scaling_(min|max)_freq",
            values="-?[0-9]{1,9}",
            between=("cpuinfo_min_freq", "cpuinfo_max_freq"),
        ),
        FilePermission(path="/sys/fs/cgroup/powerlab/cgroup[.]procs", values="[0-9]{1,9}"),
        ProgramPermission(program="/usr/sbin/tool", arguments=("-m", "[0-9]")),
        ProgramPermission(program="/usr/sbin/tool", arguments=("--store", "/.*")),
        SettingPermission(target="lock", values="on|off"),
    )

    def __init__(self) -> None:
        self.written: list[Setting] = []

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        return KnobProbe(knob=self.name, availability=Availability.AVAILABLE, detail="")

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        return ()

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        return None

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        return ()

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        if setting.value == "off":
            raise PowerlabError("the thing cannot be switched off.")
        self.written.append(setting)

    def survives_reboot(self, setting: Setting) -> bool:
        return False


@pytest.fixture
def thing() -> Thing:
    return Thing()


@pytest.fixture
def actions(tree: Sysroot, thing: Thing) -> Actions:
    return Actions(tree, Allowed(knobs=[thing]))


def refusal(actions: Actions, request: Request) -> str:
    reply, descriptor = actions.carry_out(request, os.getuid())
    assert isinstance(reply, Refused), reply
    assert descriptor is None
    return reply.sentence


def test_a_listed_value_is_written(actions: Actions) -> None:
    assert actions.carry_out(WriteFile(f"{POLICY}/scaling_governor", "performance"), 0).reply == Done()
    assert actions.sysroot.read(f"{POLICY}/scaling_governor") == "performance"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("/etc/secret", "x", "to '/etc/secret': that is not on its list"),
        (f"{POLICY}/scaling_governor", "Rm -rf", "'Rm -rf' to"),
        (f"{POLICY}/scaling_governor", "", "'' to"),
        (f"{POLICY}/scaling_max_freq", "3600001", "the device's range is 800000 to 3600000"),
        (f"{POLICY}/scaling_max_freq", "-1", "the device's range is 800000 to 3600000"),
    ],
)
def test_what_is_not_listed_is_not_written(actions: Actions, path: str, value: str, says: str) -> None:
    assert says in refusal(actions, WriteFile(path, value))
    assert actions.sysroot.read("/etc/secret") == "not for agents"
    assert actions.sysroot.read(f"{POLICY}/scaling_governor") == "powersave"
    assert actions.sysroot.read(f"{POLICY}/scaling_max_freq") == "3600000"


@pytest.mark.parametrize("value", ["800000", "3600000"])
def test_the_ends_of_a_range_are_inside(actions: Actions, value: str) -> None:
    assert actions.carry_out(WriteFile(f"{POLICY}/scaling_max_freq", value), 0).reply == Done()
    assert actions.sysroot.read(f"{POLICY}/scaling_max_freq") == value


def test_a_range_that_cannot_be_read_admits_nothing(actions: Actions) -> None:
    actions.sysroot.path(f"{POLICY}/cpuinfo_max_freq").write_text("fast\n")
    assert "cannot be read" in refusal(actions, WriteFile(f"{POLICY}/scaling_max_freq", "900000"))
    actions.sysroot.path(f"{POLICY}/cpuinfo_max_freq").unlink()
    assert "cannot be read" in refusal(actions, WriteFile(f"{POLICY}/scaling_max_freq", "900000"))


def test_the_device_s_own_refusal_comes_back_as_its_number(actions: Actions) -> None:
    actions.sysroot.path(f"{POLICY}/scaling_governor").unlink()
    assert actions.carry_out(WriteFile(f"{POLICY}/scaling_governor", "performance"), 0).reply == Failed(errno.ENOENT)


def test_a_sensor_comes_as_an_open_file_that_cannot_be_written(actions: Actions) -> None:
    reply, descriptor = actions.carry_out(OpenFile("/sys/class/powercap/intel-rapl:0/energy_uj"), 0)
    assert reply == Done()
    assert descriptor is not None
    assert os.pread(descriptor, 100, 0) == b"123456789\n"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(descriptor, b"0")
    os.close(descriptor)


def test_a_knob_s_own_file_may_be_opened_too(actions: Actions) -> None:
    """Some lie in debugfs, where nobody but root can read what they are to be put back to."""
    _, descriptor = actions.carry_out(OpenFile(f"{POLICY}/scaling_governor"), 0)
    assert descriptor is not None
    os.close(descriptor)
    assert "does not open '/etc/secret'" in refusal(actions, OpenFile("/etc/secret"))


def tool(actions: Actions, text: str) -> None:
    program = actions.sysroot.path("/usr/sbin/tool")
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable} -IS\n{text}")
    program.chmod(0o755)


def test_a_listed_program_runs_and_what_it_prints_comes_back(actions: Actions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD_LOOKALIKE", "x")
    tool(actions, "import os, sys\nprint(sys.argv[1:], sorted(os.environ), sys.stdin.read())\nsys.exit(3)\n")
    reply = actions.carry_out(RunProgram("/usr/sbin/tool", ("-m", "2")), 0).reply
    assert reply == Done("['-m', '2'] ['LC_ALL', 'PATH'] \n")


def test_what_a_program_prints_is_cut_to_what_a_message_holds(actions: Actions) -> None:
    tool(actions, "print('\\0' * 1_000_000, 'the end', sep='')")
    reply = actions.carry_out(RunProgram("/usr/sbin/tool", ("-m", "2")), 0).reply
    assert isinstance(reply, Done)
    assert len(reply.text) == 8000
    assert reply.text.endswith("the end\n")


def test_other_programs_and_arguments_are_not_run(actions: Actions) -> None:
    tool(actions, "open('/proc/self/cwd/ran', 'w')")
    for program, arguments in [
        ("/usr/sbin/tool", ("-m", "22")),
        ("/usr/sbin/tool", ("-m",)),
        ("/usr/sbin/tool", ("-m", "2\n")),
        ("/usr/sbin/../sbin/tool", ("-m", "2")),
        ("/bin/sh", ("-c", "true")),
    ]:
        assert "does not run" in refusal(actions, RunProgram(program, arguments))
    assert "not a plain path" in refusal(actions, RunProgram("/usr/sbin/tool", ("--store", "/run/../etc/x")))


def test_a_program_is_given_no_file_that_others_can_write(actions: Actions) -> None:
    tool(actions, "import sys; print(sys.argv[2])")
    store = actions.sysroot.path("/run/powerlab/store")
    store.parent.mkdir()
    assert actions.carry_out(RunProgram("/usr/sbin/tool", ("--store", "/run/powerlab/store")), 0).reply == Done(
        f"{store}\n"
    )
    store.parent.chmod(0o777)
    assert "others than root can write" in refusal(
        actions, RunProgram("/usr/sbin/tool", ("--store", "/run/powerlab/store"))
    )


def test_a_program_that_is_not_there_is_told_by_its_number(actions: Actions) -> None:
    assert actions.carry_out(RunProgram("/usr/sbin/tool", ("-m", "2")), 0).reply == Failed(errno.ENOENT)


def test_a_listed_setting_is_made_by_the_knob(actions: Actions, thing: Thing) -> None:
    assert actions.carry_out(MakeSetting("thing", "lock", "on"), 0).reply == Done()
    assert thing.written == [Setting(knob="thing", target="lock", value="on")]
    assert refusal(actions, MakeSetting("thing", "lock", "off")) == "the thing cannot be switched off."
    for request in (MakeSetting("thing", "lock", "ajar"), MakeSetting("other", "lock", "on")):
        assert "not on its list" in refusal(actions, request)


def test_a_listed_register_is_read(actions: Actions) -> None:
    device = actions.sysroot.path("/dev/cpu/3/msr")
    device.parent.mkdir(parents=True)
    device.write_bytes(bytes(0x64F) + (0x12345678_9ABCDEF0).to_bytes(8, "little"))
    assert actions.carry_out(ReadRegister(3, 0x64F), 0).reply == Done(str(0x12345678_9ABCDEF0))
    assert actions.carry_out(ReadRegister(4, 0x64F), 0).reply == Failed(errno.ENOENT)
    for request in (ReadRegister(3, 0xC0000082), ReadRegister(-1, 0x64F), ReadRegister(10**9, 0x64F)):
        assert "not on its list" in refusal(actions, request)


def test_a_user_may_move_own_processes_into_the_group_and_no_others(actions: Actions) -> None:
    members = actions.sysroot.path("/sys/fs/cgroup/powerlab/cgroup.procs")
    members.parent.mkdir(parents=True)
    members.write_text("")
    actions.sysroot.path("/proc/4711").mkdir(parents=True)
    request = WriteFile("/sys/fs/cgroup/powerlab/cgroup.procs", "4711")
    reply = actions.carry_out(request, os.getuid() + 1).reply
    assert isinstance(reply, Refused)
    assert "another user's" in reply.sentence
    assert actions.carry_out(request, os.getuid()).reply == Done()
    assert actions.carry_out(WriteFile(request.path, "4712"), os.getuid() + 1).reply == Failed(errno.ENOENT)


def test_a_question_is_answered_without_doing_anything(actions: Actions, thing: Thing) -> None:
    tool(actions, "raise SystemExit")
    for question in (
        May("write", f"{POLICY}/scaling_governor"),
        May("run", "/usr/sbin/tool"),
        May("set", "thing"),
    ):
        assert actions.carry_out(question, 0).reply == Done()
    for question in (May("write", "/etc/secret"), May("run", "/bin/sh"), May("set", "cpufreq")):
        assert "the privileged helper" in refusal(actions, question)
    actions.sysroot.path(f"{POLICY}/scaling_governor").unlink()
    assert actions.carry_out(May("write", f"{POLICY}/scaling_governor"), 0).reply == Failed(errno.ENOENT)
    assert thing.written == []


@given(
    st.one_of(
        st.builds(WriteFile, TEXTS | st.just(f"{POLICY}/scaling_max_freq"), TEXTS),
        st.builds(OpenFile, TEXTS),
        st.builds(RunProgram, TEXTS, st.lists(TEXTS, max_size=3).map(tuple)),
        st.builds(MakeSetting, TEXTS, TEXTS, TEXTS),
        st.builds(ReadRegister, st.integers(), st.integers()),
    )
)
def test_nothing_a_request_may_hold_makes_the_helper_fail(request: Request) -> None:
    reply, descriptor = Actions(Sysroot(Path("/nonexistent")), Allowed(knobs=[Thing()])).carry_out(request, 1)
    assert isinstance(reply, Refused | Failed)
    assert descriptor is None
