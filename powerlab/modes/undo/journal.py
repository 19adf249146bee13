"""The journal of mode changes: the previous settings, on disk before anything is changed.

One file holds one change. It is written beside its place, forced to disk, renamed into place, and the directory forced
to disk; only then a knob is turned. So at any moment there is either no journal, and nothing was changed, or a whole
one, and everything can be undone. Half a journal can only lie under the temporary name, where nobody looks. A journal
that is damaged all the same (a failing disk) is recognised by its checksum, set aside, and reported: nothing is ever
written to a device from a text that is not the one powerlab wrote.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.sysroot import Sysroot

_VERSION = 1
_OLD_LIMITS = re.compile(r"(?P<low>[0-9]{1,9})-(?P<high>[0-9]{1,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change.

    Attributes:
        mode: name of the mode that was asked for.
        boot_id: the kernel's id of the boot it was made in; empty where the kernel tells none.
        pid: the process that made it.
        previous: every setting of every knob before the change, in the order in which to write them back.
        target: the settings of the mode.
    """

    mode: str
    boot_id: str
    pid: int
    previous: tuple[Setting, ...]
    target: tuple[Setting, ...]


def boot_id(sysroot: Sysroot) -> str:
    """Return the id of the running boot (kernel, admin-guide/sysctl/kernel), empty where there is none."""
    try:
        return sysroot.read("/proc/sys/kernel/random/boot_id")
    except OSError:
        return ""


def place_of(sysroot: Sysroot, state_dir: Path) -> Path:
    """Return the directory for the journals of one device: simulated boards never share one with the machine."""
    if sysroot.base == Path("/"):
        return state_dir / "modes" / "host"
    return state_dir / "modes" / hashlib.sha256(str(sysroot.base.resolve()).encode()).hexdigest()[:12]


class Journal:
    """A place for one :class:`Entry`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self._path

    def write(self, entry: Entry) -> None:
        """Put an entry on disk; when this returns it survives a power cut.

        Raises:
            PowerlabError: the directory cannot be written.
        """
        temporary = self._path.with_suffix(".tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            try:
                _write_all(handle, _encode(entry))
                os.fsync(handle)
            finally:
                os.close(handle)
            os.replace(temporary, self._path)
            self._sync_directory()
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()  # half a journal takes room on a full disk, and nobody would ever look at it
            raise PowerlabError(
                f"the mode journal cannot be written to {self._path.parent} ({error.strerror}), so no mode is set;"
                " make room there, or give a writable place with --state-dir."
            ) from None

    def read(self) -> Entry | None:
        """Return the entry, or None where there is none.

        Raises:
            PowerlabError: the file cannot be read, or is damaged and was set aside.
        """
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PowerlabError(
                f"the mode journal {self._path} cannot be read ({error.strerror}); run as the user who wrote it."
            ) from None
        try:
            return _decode(text)
        except (ValueError, KeyError, TypeError):
            if _is_of_newer_version(text):
                raise PowerlabError(
                    f"the mode journal {self._path} was written by a newer powerlab; run `powerlab modes restore` "
                    "with that version,"
                    " or set the device by hand and remove the file."
                ) from None
            aside = self._path.with_suffix(".damaged")
            with self._told("is damaged and cannot be set aside"):
                os.replace(self._path, aside)
                self._sync_directory()
            raise PowerlabError(
                f"the mode journal was damaged and is set aside as {aside}, so a change could not be undone;"
                " look at the device's settings with `powerlab modes`, and set them by hand."
            ) from None

    def remove(self) -> None:
        """Forget the entry; when this returns a power cut does not bring it back.

        Raises:
            PowerlabError: the directory cannot be written.
        """
        with self._told("cannot be removed"):
            self._path.unlink(missing_ok=True)
            self._sync_directory()

    def move_to(self, other: Journal) -> None:
        """Make this entry the other journal's, in one step.

        Raises:
            PowerlabError: the directory cannot be written.
        """
        with self._told("cannot be renamed"):
            os.replace(self._path, other._path)
            self._sync_directory()

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PowerlabError(
                f"the mode journal {self._path} {what} ({error.strerror}); make its directory writable, then run"
                " `powerlab modes restore`."
            ) from None

    def _sync_directory(self) -> None:
        handle = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _encode(entry: Entry) -> bytes:
    body = json.dumps(asdict(entry), sort_keys=True)
    digest = hashlib.sha256(body.encode()).hexdigest()
    return json.dumps({"version": _VERSION, "sha256": digest, "entry": body}, indent=1).encode() + b"\n"


def _decode(text: bytes) -> Entry:
    outer = json.loads(text)
    if outer["version"] != _VERSION or hashlib.sha256(outer["entry"].encode()).hexdigest() != outer["sha256"]:
        raise ValueError("not what was written")
    fields: Mapping[str, Any] = json.loads(outer["entry"])
    settings = {key: _settings(fields[key]) for key in ("previous", "target")}
    return Entry(**{**fields, **settings})


def _is_of_newer_version(text: bytes) -> bool:
    """Say whether a text is whole, and a later version's: nothing is known of it, and it is no damage."""
    try:
        outer = json.loads(text)
        whole = hashlib.sha256(outer["entry"].encode()).hexdigest() == outer["sha256"]
        return whole and isinstance(outer["version"], int) and outer["version"] > _VERSION
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _settings(recorded: Iterable[Mapping[str, str]]) -> tuple[Setting, ...]:
    """Return settings under the names they have now; the first release kept both limits of a CPU clock as one."""
    settings: list[Setting] = []
    for setting in (Setting(**fields) for fields in recorded):
        policy, _, part = setting.target.rpartition(".")
        limits = _OLD_LIMITS.fullmatch(setting.value)
        if setting.knob == "cpufreq" and part == "range_khz" and limits:
            settings.append(Setting(knob=setting.knob, target=f"{policy}.max_khz", value=limits["high"]))
            settings.append(Setting(knob=setting.knob, target=f"{policy}.min_khz", value=limits["low"]))
        else:
            settings.append(setting)
    return tuple(settings)
