"""The caches of a core, as the kernel states them or as a file says where the kernel is wrong, as in virtual machines.

Who says so, the first that does: the file that ``POWERLAB_CACHES`` names; ``engine-caches.toml`` in the state
directory; sysfs; the table of Arm cores; ``sysconf``; an assumption. A file states any of ``l1_bytes``, ``l1_ways``,
``l2_bytes`` and ``l3_bytes``, and leaves the rest to those after it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.target.arm_cores import ArmCore, arm_cores
from powerlab.state_dir import state_dir
from powerlab.sysroot import Sysroot

CACHES_VARIABLE = "POWERLAB_CACHES"
"""Environment variable that names a file with the sizes of the caches."""

FILE_NAME = "engine-caches.toml"
LINE_BYTES = 64

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST_BYTES = 1 << 40
_LEAST = {"l1_bytes": 1 << 10, "l1_ways": 1, "l2_bytes": 1 << 12, "l3_bytes": 0}


class Caches(Struct, frozen=True, kw_only=True):
    """What one core has of each cache.

    Attributes:
        l1_bytes: first level, data, of one core.
        l1_ways: its associativity.
        l2_bytes: second level; of one that cores share, one core's part.
        l3_bytes: third level, all of it; 0 where there is none.
        origin: who says so.
    """

    l1_bytes: int
    l1_ways: int
    l2_bytes: int
    l3_bytes: int
    origin: str


ASSUMED = Caches(l1_bytes=32 << 10, l1_ways=8, l2_bytes=512 << 10, l3_bytes=0, origin="assumed")


def find_caches(sysroot: Sysroot | None = None) -> Caches:
    """Return the caches of the core of this process that has the least.

    Args:
        sysroot: the machine; None: this one.

    Raises:
        PowerlabError: a file with cache sizes cannot be read or makes no sense.
    """
    root = sysroot or Sysroot()
    caches = _from_sysfs(root) or _from_names(root) or _from_sysconf() or ASSUMED
    configured = os.environ.get(CACHES_VARIABLE)
    path = Path(configured) if configured else state_dir(sysroot) / FILE_NAME
    if not configured and not path.exists():
        return caches
    stated = read_caches_file(path)
    return replace(caches, **stated, origin=str(path)) if stated else caches


def read_caches_file(path: Path) -> dict[str, int]:
    """Return what a file says of the caches, by the name of the attribute.

    Raises:
        PowerlabError: it cannot be read, or says what cannot be.
    """
    try:
        stated = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PowerlabError(
            f"the file of cache sizes {path} cannot be read ({error.strerror}); fix it, or unset {CACHES_VARIABLE}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PowerlabError(
            f"the file of cache sizes {path} is not valid TOML ({_one_line(error)}); fix it."
        ) from error
    return _checked(stated, path)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _checked(stated: Mapping[str, object], path: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, value in stated.items():
        if name not in _LEAST:
            known = ", ".join(_LEAST)
            raise PowerlabError(f"the file of cache sizes {path} says {name[:40]!r}, but it may say {known} only.")
        if isinstance(value, bool) or not isinstance(value, int) or not _LEAST[name] <= value <= _MOST_BYTES:
            raise PowerlabError(
                f"the file of cache sizes {path} says {name} = {str(value)[:40]}; give an integer of "
                f"{'ways' if name == 'l1_ways' else 'bytes'}, {_LEAST[name]} or more."
            )
        sizes[name] = value
    return sizes


def _from_sysfs(root: Sysroot) -> Caches | None:
    """Return the least of each cache over the cores this process may use; None where sysfs does not say."""
    found: list[Caches] = []
    known: dict[str, str] = {}
    for number in _own_cores(root):
        if known and all(_text(root, number, name) == text for name, text in known.items()):
            continue  # like the core before: of a hundred cores that is much quicker to see than to read all
        levels = _levels_of_core(root, number)
        known = {f"{level.place}/size": level.size for level in levels.values()}
        caches = _of_core(root, number, levels)
        if caches is not None:
            found.append(caches)
    return _least(found, "sysfs")


def _from_names(root: Sysroot) -> Caches | None:
    """Return the least of each cache over the cores this process may use whose design is known; None without any."""
    known = arm_cores(root)
    own = known.keys() if root.base != Path("/") else known.keys() & os.sched_getaffinity(0)
    cores = {known[number] for number in own}
    return _least([_of_design(core) for core in cores], ", ".join(sorted(core.name for core in cores)))


def _of_design(core: ArmCore) -> Caches:
    return Caches(
        l1_bytes=core.l1_kib << 10,
        l1_ways=core.l1_ways or ASSUMED.l1_ways,
        l2_bytes=(core.l2_kib << 10) // core.l2_cores,
        l3_bytes=core.l3_kib << 10,
        origin=core.name,
    )


def _least(found: Sequence[Caches], origin: str) -> Caches | None:
    if not found:
        return None
    sizes = (name for name in Caches.__struct_fields__ if name != "origin")
    return Caches(**{name: min(getattr(caches, name) for caches in found) for name in sizes}, origin=origin)


def _own_cores(root: Sysroot) -> Iterable[int]:
    if root.base == Path("/"):
        return sorted(os.sched_getaffinity(0))
    names = (path.rpartition("/cpu")[2] for path in root.glob("/sys/devices/system/cpu/cpu[0-9]*"))
    return sorted(int(name) for name in names if name.isdigit())


class _Level(Struct, frozen=True):
    """A level of the caches of a core: its folder in sysfs, and the text of its size."""

    place: str = "none"
    size: str = ""


def _levels_of_core(root: Sysroot, number: int) -> dict[int, _Level]:
    """Return the levels of a core that hold data, by their number; 0 is one whose number is not a number."""
    levels: dict[int, _Level] = {}
    for index in count():  # looking for all names that match takes longer than to read what they hold
        place = f"index{index}"
        kind = _text(root, number, f"{place}/type")
        if not kind:
            break
        level = _text(root, number, f"{place}/level") if kind != "Instruction" else ""
        if not level:
            continue
        levels[_number(level, int)] = _Level(place, _text(root, number, f"{place}/size"))
        if levels.keys() >= {1, 2, 3}:
            break
    return levels


def _of_core(root: Sysroot, number: int, levels: Mapping[int, _Level]) -> Caches | None:
    first, second, third = (levels.get(level, _Level()) for level in (1, 2, 3))
    l1_bytes, l2_bytes, l3_bytes = (_number(level.size, parse_size) for level in (first, second, third))
    if not l1_bytes or not l2_bytes:
        return None  # what sysfs does not say of a cache, others say
    ways = _number(_text(root, number, f"{first.place}/ways_of_associativity"), int)
    threads, sharers = (
        max(1, _number(_text(root, number, f"{level.place}/shared_cpu_list"), count_cores)) for level in (first, second)
    )
    cores = max(1, sharers // threads)  # threads of a core share its first level
    return Caches(
        l1_bytes=l1_bytes,
        l1_ways=ways or ASSUMED.l1_ways,
        l2_bytes=l2_bytes // cores,
        l3_bytes=l3_bytes,
        origin="sysfs",
    )


def _text(root: Sysroot, number: int, name: str) -> str:
    """Return what a file among the caches of a core says; empty where it says nothing."""
    try:
        return root.read(f"/sys/devices/system/cpu/cpu{number}/cache/{name}")
    except OSError:
        return ""


def _number(text: str, number_of: Callable[[str], int]) -> int:
    """Return the number that a text says; 0 where it says none."""
    try:
        return number_of(text)
    except ValueError:
        return 0


def parse_size(text: str) -> int:
    """Return the bytes of a size as sysfs writes it, such as ``48K``.

    Raises:
        ValueError: it is none, or not above 0.
    """
    digits, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    if not digits.isascii() or not digits.isdigit() or len(digits) > 9 or int(digits) == 0:
        raise ValueError(f"{text[:40]!r} is not a size of a cache")
    return int(digits) * unit


def count_cores(text: str) -> int:
    """Return how many cores a list such as ``0-3,8`` names.

    Raises:
        ValueError: it is none.
    """
    count = 0
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin, end = int(first), int(last if dash else first)
        count += max(0, end - begin + 1)
    return count


def _from_sysconf() -> Caches | None:
    first, second = _sysconf("SC_LEVEL1_DCACHE_SIZE"), _sysconf("SC_LEVEL2_CACHE_SIZE")
    if not first or not second:
        return None
    return Caches(
        l1_bytes=first,
        l1_ways=_sysconf("SC_LEVEL1_DCACHE_ASSOC") or ASSUMED.l1_ways,
        l2_bytes=second,
        l3_bytes=_sysconf("SC_LEVEL3_CACHE_SIZE"),
        origin="sysconf",
    )


def _sysconf(name: str) -> int:
    try:
        return max(0, os.sysconf(name))
    except (OSError, ValueError):
        return 0
