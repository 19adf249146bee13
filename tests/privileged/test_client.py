from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.modes.io.files import can_write, read_value, write_value
from powerlab.privileged import client, protocol
from powerlab.privileged.client import NoHelperError
from powerlab.privileged.protocol import SOCKET, Done, Failed, Refused, Reply, encode, send
from powerlab.privileged.reading import is_denied, open_denied, read_anyway
from powerlab.sysroot import Sysroot

FILE = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"


@contextmanager
def answering(tree: Sysroot, answer: Callable[[socket.socket], None]) -> Iterator[list[bytes]]:
    """A helper that takes one request and answers as a test wants it; yields what it was asked."""
    place = tree.path(SOCKET)
    place.parent.mkdir(parents=True, exist_ok=True)
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        listener.settimeout(20)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                asked.append(connection.recv(2**16))
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield asked
        finally:
            thread.join()
            place.unlink()


def replying(reply: Reply, descriptor: int | None = None) -> Callable[[socket.socket], None]:
    return lambda connection: send(connection, reply, descriptor)


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_without_a_helper_nothing_is_asked(tree: Sysroot) -> None:
    assert not client.is_there(tree)
    assert not client.may_write(tree, FILE)
    assert not client.may_run(tree, "/usr/sbin/nvpmodel")
    assert not client.may_set(tree, "nvml_limit")
    with pytest.raises(NoHelperError, match="start powerlab-helper"):
        client.write_file(tree, FILE, "performance")


def test_a_socket_that_nobody_listens_on_is_no_helper(tree: Sysroot) -> None:
    tree.path(SOCKET).parent.mkdir()
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(tree.path(SOCKET)))
    assert client.is_there(tree)
    assert not client.may_write(tree, FILE)
    with pytest.raises(NoHelperError, match="cannot be reached"):
        client.write_file(tree, FILE, "performance")


def test_a_socket_may_lie_deeper_than_an_address_is_long(tree: Sysroot, tmp_path: Path) -> None:
    deep = Sysroot(tmp_path / ("d" * 100))
    deep.base.mkdir()
    tree.path(SOCKET).parent.mkdir()
    deep.path("/run").symlink_to(tree.path("/run"))
    with answering(tree, replying(Done("yes"))):
        assert client.run_program(deep, "/usr/sbin/nvpmodel", ("-q",)) == "yes"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (replying(Refused("not on its list.")), "not on its list"),
        (lambda connection: None, "gave no answer"),
        (lambda connection: connection.sendall(encode(Done("x"))[:-1]), "gave no answer"),
        (lambda connection: connection.sendall(b"\0\0\0\2{}"), "answered no sense"),
        (lambda connection: connection.sendall(b"\xff" * 8), "gave no answer"),
    ],
)
def test_whatever_is_answered_is_one_sentence(
    tree: Sysroot, answer: Callable[[socket.socket], None], says: str
) -> None:
    with answering(tree, answer), pytest.raises(PowerlabError, match=says):
        client.write_file(tree, FILE, "performance")


def test_the_device_s_refusal_is_the_error_it_would_have_been(tree: Sysroot) -> None:
    with answering(tree, replying(Failed(errno.EBUSY))), pytest.raises(OSError, match="busy") as refused:
        client.write_file(tree, FILE, "performance")
    assert refused.value.errno == errno.EBUSY


def test_an_open_file_that_was_not_sent_is_told(tree: Sysroot) -> None:
    with answering(tree, replying(Done())), pytest.raises(PowerlabError, match="sent no file"):
        client.open_file(tree, FILE)


def test_a_descriptor_beside_a_refusal_is_not_kept(tree: Sysroot) -> None:
    before = descriptors()
    with answering(tree, replying(Refused("no."), 0)), pytest.raises(PowerlabError, match="no"):
        client.open_file(tree, FILE)
    assert descriptors() == before


def test_the_helper_never_asks_itself(tree: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(client._own, "helper", False)
    tree.path(SOCKET).parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree.path(SOCKET)))
        assert client.is_there(tree)
        client.be_the_helper()
        assert not client.is_there(tree)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_value_that_this_process_may_not_write_is_written_by_the_helper(
    tree: Sysroot, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A sandbox shows /sys read-only, which is another error than a file's mode."""
    real_open = os.open

    def refusing(path: object, flags: int, *more: int, **options: int) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY and str(path).endswith("scaling_governor"):
            raise OSError(number, os.strerror(number))
        return real_open(path, flags, *more, **options)  # type: ignore[arg-type]

    with answering(tree, replying(Done())) as asked:
        monkeypatch.setattr(os, "open", refusing)
        write_value(tree, FILE, "performance")
    assert b'"type":"write"' in asked[0]
    with pytest.raises(PowerlabError, match="does not take 'performance'"):
        write_value(tree, FILE, "performance")


def test_another_error_is_the_device_s_and_nobody_is_asked(tree: Sysroot) -> None:
    tree.path(FILE).unlink()
    with answering(tree, replying(Done())) as asked:
        with pytest.raises(PowerlabError, match="No such file"):
            write_value(tree, FILE, "performance")
        assert asked == []
        assert client.may_run(tree, "/usr/sbin/nvpmodel"), "so that it is asked once"


def test_a_refusal_reads_as_the_helper_wrote_it(tree: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: object, flags: int, *more: int, **options: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with answering(tree, replying(Refused("the device's range is 1 to 2."))):
        real = os.open
        patched = lambda path, flags, *more, **options: (  # noqa: E731
            denied(path, flags) if flags & os.O_ACCMODE != os.O_RDONLY else real(path, flags, *more, **options)
        )
        monkeypatch.setattr(os, "open", patched)
        with pytest.raises(PowerlabError, match="range is 1 to 2"):
            write_value(tree, FILE, "performance")


def test_what_can_be_read_directly_is(tree: Sysroot) -> None:
    assert read_anyway(tree, FILE) == ("powersave", False)
    assert read_value(tree, FILE) == "powersave"
    assert not is_denied(tree, FILE)
    assert not is_denied(tree, "/no/such/file")
    assert can_write(tree, FILE)


def test_a_file_the_helper_does_not_open_is_a_denied_one(tree: Sysroot) -> None:
    with answering(tree, replying(Refused("that is not on its list."))), pytest.raises(PermissionError, match="list"):
        open_denied(tree, FILE)
    with pytest.raises(PermissionError, match="no privileged helper"):
        open_denied(tree, FILE)


def test_a_helper_that_hangs_is_waited_for_once(tree: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device has a hundred files, and a minute and a half for each would look like a hang of powerlab's own."""
    monkeypatch.setitem(client._patience_s, "now", 0.01)
    monkeypatch.setattr(client, "_SHORT_TIMEOUT_S", 0.02)
    waits = []
    real_receive = protocol.receive

    def receive(connection: socket.socket, timeout_s: float) -> tuple[bytes, int | None]:
        waits.append(timeout_s)
        return real_receive(connection, timeout_s)

    monkeypatch.setattr(client, "receive", receive)
    place = tree.path(SOCKET)
    place.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(place))
        silent.listen()
        with pytest.raises(PowerlabError, match=r"no answer within 0.01 s; `journalctl"):
            client.write_file(tree, FILE, "powersave")
        assert not client.may_write(tree, FILE)
    place.unlink()
    with answering(tree, lambda connection: send(connection, Done())):
        client.write_file(tree, FILE, "powersave")
    assert waits == [0.01, 0.02, 0.02]
    assert client._patience_s["now"] == client._TIMEOUT_S, "once it answers it is waited for again"


def test_a_full_queue_is_waited_for(tree: Sysroot) -> None:
    """More who ask at once than the helper's queue holds: the kernel turns the next one away at once."""
    place = tree.path(SOCKET)
    place.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as others:
        listener.bind(str(place))
        listener.listen(0)
        waiting = others.enter_context(socket.socket(socket.AF_UNIX))
        waiting.connect(str(place))

        def serve() -> None:
            listener.accept()[0].close()
            connection, _ = listener.accept()
            with connection:
                connection.recv(2**16)
                send(connection, Done())

        thread = threading.Timer(0.1, serve)
        thread.start()
        client.write_file(tree, FILE, "powersave")
        thread.join()


def test_a_queue_that_stays_full_is_told(tree: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(client._patience_s, "now", 0.05)
    place = tree.path(SOCKET)
    place.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waiting:
        listener.bind(str(place))
        listener.listen(0)
        waiting.connect(str(place))
        with pytest.raises(PowerlabError, match=r"no answer within 0.05 s"):
            client.write_file(tree, FILE, "powersave")
