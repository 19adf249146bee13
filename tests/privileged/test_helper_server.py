from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from child_process import ChildProcess
from powerlab.domain.errors import PowerlabError
from powerlab.modes.undo import lock
from powerlab.modes.undo.lock import device_lock
from powerlab.privileged import client
from powerlab.privileged.protocol import SOCKET, OpenFile, Refused, decode_reply, encode, receive
from powerlab.sysroot import Sysroot
from powerlab_helper.main import main

POLICY = "/sys/devices/system/cpu/cpufreq/policy0"
COUNTER = "/sys/class/powercap/intel-rapl:0/energy_uj"
Helper = subprocess.Popen[str]
Serving = Callable[[int], AbstractContextManager[Helper]]


def connected(tree: Sysroot) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(tree.path(SOCKET)))
    return connection


def ended(helper: Helper, number: signal.Signals = signal.SIGTERM) -> str:
    """Stop a helper and return what it logged."""
    assert helper.stderr is not None
    helper.send_signal(number)
    log = helper.stderr.read()
    assert helper.wait() == 0
    return log


def test_it_does_what_is_asked_and_logs_it(tree: Sysroot, helper: Helper) -> None:
    client.write_file(tree, f"{POLICY}/scaling_governor", "performance")
    assert tree.read(f"{POLICY}/scaling_governor") == "performance"
    descriptor = client.open_file(tree, COUNTER)
    assert os.read(descriptor, 100) == b"123456789\n"
    os.close(descriptor)
    with pytest.raises(PowerlabError, match="not on its list"):
        client.write_file(tree, "/etc/secret", "x")
    log = ended(helper)
    who = f"user {os.getuid()}, process {os.getpid()}: "
    assert f"{who}WriteFile(path='{POLICY}/scaling_governor', value='performance') -> Done(text='')" in log
    assert f"{who}OpenFile(path='{COUNTER}') -> Done" in log
    assert f"{who}WriteFile(path='/etc/secret', value='x') -> Refused" in log


def test_a_device_that_refuses_is_told_in_its_own_words(tree: Sysroot, helper: Helper) -> None:
    with pytest.raises(FileNotFoundError, match="No such file"):
        client.open_file(tree, "/sys/class/hwmon/hwmon0/power1_input")


def test_the_socket_is_for_one_group_and_goes_with_the_helper(tree: Sysroot, helper: Helper) -> None:
    assert tree.path(SOCKET).stat().st_mode & 0o777 == 0o660
    assert ended(helper, signal.SIGINT) == ""
    assert not tree.path(SOCKET).exists()
    assert not client.is_there(tree)


def test_nonsense_is_logged_and_the_next_one_is_served(tree: Sysroot, helper: Helper) -> None:
    for data in (b"", b"GET / HTTP/1.1\r\n\r\n", struct.pack(">I", 3) + b"[1]", encode(OpenFile("/a"))[:-1]):
        with connected(tree) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(100) == b""
    with connected(tree) as connection:
        connection.sendall(encode(OpenFile(COUNTER)))  # and does not wait for the reply
    assert client.may_write(tree, f"{POLICY}/scaling_governor")
    assert ended(helper).count("a connection was given up") >= 4


def test_it_serves_one_after_the_other(tree: Sysroot, helper: Helper) -> None:
    """Who came first and says nothing keeps the next one waiting, and is served once it speaks."""
    with connected(tree) as first, connected(tree) as second:
        second.sendall(encode(OpenFile("/b")))
        first.sendall(encode(OpenFile("/a")))
        answers = [decode_reply(receive(connection, 20)[0]) for connection in (first, second)]
    assert [answer for answer in answers if not isinstance(answer, Refused)] == []


def test_another_user_is_refused_whatever_is_asked(
    tree: Sysroot, serving: Serving, as_nobody: Callable[[Callable[[], object]], str]
) -> None:
    with serving(12345) as helper:
        tree.path(SOCKET).chmod(0o666)  # so that it is the helper that refuses, and not the socket's mode
        said = as_nobody(lambda: client.open_file(tree, COUNTER))
        assert "does not serve user 65534; it serves user 0 and user 12345" in said
        tree.path(SOCKET).chmod(0o660)
        assert "NoHelperError" in as_nobody(lambda: client.open_file(tree, COUNTER))
        assert "refused user 65534" in ended(helper)


def test_a_second_helper_waits_until_the_first_has_ended(tree: Sysroot, helper: Helper) -> None:
    command = [sys.executable, "-m", "powerlab_helper.main", "--user", "0", "--sysroot", str(tree.base)]
    with ChildProcess(command, stderr=subprocess.PIPE, text=True) as second:
        assert second.stderr is not None
        assert client.may_write(tree, f"{POLICY}/scaling_governor"), "the first one still serves"
        helper.kill()
        helper.wait()
        assert "serving user 0" in second.stderr.readline()
        assert client.may_write(tree, f"{POLICY}/scaling_governor")
        second.terminate()


def test_a_program_s_caller_may_die_and_the_device_stays_locked(
    tree: Sysroot, tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller's lock travels with the request; the helper's program keeps it when both of them are killed."""
    go = tree.path("/go")
    os.mkfifo(go)
    program = tree.path("/usr/sbin/nvpmodel")
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\nread line < {go}\n")
    program.chmod(0o755)
    code = f"""
from pathlib import Path
from powerlab.modes.undo.lock import device_lock, held_lock
from powerlab.privileged import client
from powerlab.sysroot import Sysroot
tree = Sysroot(Path({str(tree.base)!r}))
with device_lock(tree, Path({str(tmp_path)!r})):
    client.run_program(tree, "/usr/sbin/nvpmodel", ("-m", "1"), held_lock(tree))
"""
    with serving(os.getuid()) as helper:
        caller = subprocess.Popen([sys.executable, "-c", code])
        gate = os.open(go, os.O_WRONLY)  # returns once the program reads
        for process in (caller, helper):
            process.kill()
            process.wait()
        with monkeypatch.context() as patch:
            patch.setattr(lock, "_ORPHAN_WAIT_S", 0.05)
            with pytest.raises(PowerlabError, match="is setting power modes"), device_lock(tree, tmp_path):
                pytest.fail("the program still runs")
        os.close(gate)
    with device_lock(tree, tmp_path):
        pass


def test_it_listens_on_the_socket_that_systemd_passes(tree: Sysroot, tmp_path: Path) -> None:
    place = tree.path(SOCKET)
    place.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        program = f"""
import os, sys
os.dup2({listener.fileno()}, 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="helper")
from powerlab_helper.main import main
sys.exit(main(["--user", "{os.getuid()}", "--sysroot", {str(tree.base)!r}]))
"""
        command = [sys.executable, "-c", program]
        with ChildProcess(command, pass_fds=[listener.fileno()], stderr=subprocess.PIPE, text=True) as passed:
            # Before it is ready: the connection waits in the socket, as it does while systemd starts the service.
            assert client.may_write(tree, f"{POLICY}/scaling_governor")
            passed.terminate()
            assert passed.wait() == 0
    assert place.is_socket(), "it is systemd's to remove"


def test_two_passed_sockets_are_one_too_many(tree: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    from powerlab_helper.listening_socket import listening

    environment = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2"}
    with pytest.raises(PowerlabError, match="systemd passed 2"), listening(tree.path(SOCKET), 0, environment):
        pytest.fail("which one?")
    assert environment == {}


def test_variables_meant_for_another_process_are_not_taken(tree: Sysroot) -> None:
    from powerlab_helper.listening_socket import listening

    tree.path(SOCKET).parent.mkdir()
    environment = {"LISTEN_PID": "1", "LISTEN_FDS": "1"}
    with listening(tree.path(SOCKET), os.getgid(), environment) as listener:
        assert listener.getsockname().endswith("helper.sock")
    assert environment == {}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--user", "no-such-user-here"], "useradd --system no-such-user-here"),
        (["--user", "0", "--sysroot", "/no/such/place"], "is not a directory"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(arguments) == 2
    assert says in capsys.readouterr().err


def test_the_lock_file_is_made_for_every_user(tree: Sysroot, helper: Helper) -> None:
    assert tree.path("/run/lock/powerlab-modes.lock").stat().st_mode & 0o777 == 0o666


def test_a_stranger_s_long_words_do_not_fill_the_log(tree: Sysroot, helper: Helper) -> None:
    with pytest.raises(PowerlabError, match="not on its list"):
        client.write_file(tree, "/sys/" + "x" * 50_000, "\x1b[31m\nINFO forged")
    log = ended(helper)
    assert "WriteFile(path='/sys/xxx" in log
    assert max(map(len, log.splitlines())) < 1500
    assert "\x1b" not in log
