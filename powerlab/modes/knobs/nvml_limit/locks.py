"""Record of the clocks that powerlab locked on NVIDIA cards: NVML can lock them, but not report locks.

So powerlab keeps a record of its own, one small file a card below ``/run``, which like the locks ends with the boot. It
is written before the lock is made and removed after it is undone: a process killed in between leaves a record, never a
lock without one. A lock also ends when the driver is loaded anew; the card's energy counter, which then starts again at
0, gives that away. What other programs lock (``nvidia-smi -lgc``) cannot be seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

RECORD_DIRECTORY = "/run/powerlab"
UNLOCKED = "unlocked"

_READABLE = 0o644
_DRAFT = ".new"
"""The same for every process: the lock of the device is held while a mode is set."""
_RECORD = re.compile(r"(?P<low>[0-9]{1,6})-(?P<high>[0-9]{1,6}) (?P<energy_mj>[0-9]{1,20})")


@dataclass(frozen=True, slots=True)
class Record:
    """Clocks in MHz between which a card was locked, and what its energy counter stood at, in mJ (0 without one)."""

    low_mhz: int
    high_mhz: int
    energy_mj: int

    @property
    def clocks(self) -> str:
        """The value of the setting: ``1200-1200``."""
        return f"{self.low_mhz}-{self.high_mhz}"

    def holds(self, energy_mj: int) -> bool:
        """Tell whether the driver is still the one that was told, by what the card's energy counter says now."""
        return energy_mj >= self.energy_mj


def parse_record(text: str) -> Record:
    """Read a record.

    Raises:
        ValueError: it is none.
    """
    match = _RECORD.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a record of locked clocks: {text.strip()[:40]!r}")
    return Record(int(match["low"]), int(match["high"]), int(match["energy_mj"]))


def _path(key: str) -> str:
    return f"{RECORD_DIRECTORY}/locked-clocks-{re.sub('[^A-Za-z0-9-]', '_', key)[:80]}"


def memory_key(uuid: str) -> str:
    """Return the key of the record of a card's memory clock; that of its processor's clock is its UUID."""
    return f"memory-{uuid}"


def read_record(sysroot: Sysroot, key: str) -> Record | None:
    """Return the record of a card, None where there is none.

    Raises:
        PowerlabError: it is damaged.
    """
    try:
        return parse_record(sysroot.read(_path(key)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise PowerlabError(
            f"{_path(key)} cannot be used ({error}); remove it, and unlock the clocks with `sudo nvidia-smi -rgc -rmc`."
        ) from None


def locked_clocks(sysroot: Sysroot, key: str, energy_mj: int) -> str:
    """Return the clocks that powerlab has locked a card to, as ``low-high`` in MHz, else ``unlocked``.

    Raises:
        PowerlabError: the record is damaged.
    """
    record = read_record(sysroot, key)
    return UNLOCKED if record is None or not record.holds(energy_mj) else record.clocks


def note_lock(sysroot: Sysroot, key: str, record: Record) -> None:
    """Write down that a card is about to be locked.

    Raises:
        PowerlabError: the record cannot be written; then nothing may be locked, for nobody would know.
    """
    path = sysroot.path(_path(key))
    draft = path.with_name(path.name + _DRAFT)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(f"{record.clocks} {record.energy_mj}\n", encoding="utf-8")
        # The privileged helper writes with a strict umask what the agent's user must read.
        draft.chmod(_READABLE)
        draft.replace(path)
    except OSError as error:
        raise PowerlabError(
            f"no clocks are locked, because {path.parent} cannot be written ({error.strerror}); run powerlab as root."
        ) from None


def forget_lock(sysroot: Sysroot, key: str) -> None:
    """Remove the record of a card that is unlocked, and what a process killed over it left.

    Raises:
        PowerlabError: it cannot be removed.
    """
    try:
        path = sysroot.path(_path(key))
        path.with_name(path.name + _DRAFT).unlink(missing_ok=True)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise PowerlabError(f"{_path(key)} cannot be removed ({error.strerror}); run powerlab as root.") from None
