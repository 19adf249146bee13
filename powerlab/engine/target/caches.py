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
    return _least([caches for number in _own_cores(root) if (caches := _of_core(root, number)) is not None], "sysfs")


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


def _of_core(root: Sysroot, number: int) -> Caches | None:
    folders: dict[int, str] = {}
    sizes: dict[int, int] = {}
    for index in count():  # looking for all names that match takes longer than to read what they hold
        folder = f"/sys/devices/system/cpu/cpu{number}/cache/index{index}"
        try:
            if root.read(f"{folder}/type") == "Instruction":
                continue
        except OSError:
            break
        try:
            level = int(root.read(f"{folder}/level"))
            sizes[level] = parse_size(root.read(f"{folder}/size"))
        except (OSError, ValueError):
            continue  # what sysfs does not say of a cache, others say
        folders[level] = folder
        if folders.keys() >= {1, 2, 3}:
            break
    if 1 not in sizes or 2 not in sizes:
        return None
    first, second = folders[1], folders[2]
    cores = max(1, _sharers(root, second) // _sharers(root, first))  # threads of a core share its first level
    ways = _number(root, f"{first}/ways_of_associativity", int) or ASSUMED.l1_ways
    return Caches(l1_bytes=sizes[1], l1_ways=ways, l2_bytes=sizes[2] // cores, l3_bytes=sizes.get(3, 0), origin="sysfs")


def _sharers(root: Sysroot, folder: str) -> int:
    return max(1, _number(root, f"{folder}/shared_cpu_list", count_cores))


def _number(root: Sysroot, path: str, number_of: Callable[[str], int]) -> int:
    """Return what a file says; 0 where it says nothing."""
    try:
        return number_of(root.read(path))
    except (OSError, ValueError):
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
