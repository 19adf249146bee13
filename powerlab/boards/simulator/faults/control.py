"""Sets and clears the faults of a simulated board: a list of names in its tree, which its simulator follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.faults.registry import FAULTS
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot


def possible(simulation: Mapping[str, Any], name: str) -> bool:
    """Say whether a board with that ``[simulation]`` table can have a fault."""
    needs = FAULTS[name].needs
    return not needs or any(table in simulation for table in needs)


def faults_of(board_name: str) -> tuple[str, ...]:
    """Return the names of the faults a board can have."""
    simulation = layout.simulation_of(board_name)
    return tuple(name for name in FAULTS if possible(simulation, name))


def check(board_name: str, names: Iterable[str]) -> None:
    """Refuse what is no fault, or none of that board.

    Raises:
        PowerlabError: with the names that can be given.
    """
    offered = faults_of(board_name)
    for name in names:
        if name not in FAULTS:
            raise PowerlabError(f"there is no fault {name!r}; choose one of: {', '.join(offered)}.")
        if name not in offered:
            raise PowerlabError(
                f"{board_name} cannot have the fault {name}: it has no {FAULTS[name].lacks}; choose one of: "
                f"{', '.join(offered)}."
            )


def active(sysroot: Sysroot) -> tuple[str, ...]:
    """Return the faults in force.

    Raises:
        PowerlabError: the directory is not a simulated board.
    """
    layout.read_marker(sysroot)
    return tuple(_read(sysroot))


def set_fault(sysroot: Sysroot, name: str) -> None:
    """Let a fault be in force; the simulator, where it runs, sees it within a tenth of a second.

    Raises:
        PowerlabError: the directory is not a simulated board, or its board cannot have the fault.
    """
    check(layout.read_marker(sysroot)["board"], [name])
    _write(sysroot, [*(other for other in _read(sysroot) if other != name), name])


def clear_fault(sysroot: Sysroot, name: str) -> None:
    """Let a fault be in force no more; one that is not does nothing.

    Raises:
        PowerlabError: the directory is not a simulated board, or its board cannot have the fault.
    """
    check(layout.read_marker(sysroot)["board"], [name])
    _write(sysroot, [other for other in _read(sysroot) if other != name])


def _read(sysroot: Sysroot) -> list[str]:
    try:
        return sysroot.read(layout.FAULTS_FILE).split()
    except OSError as error:
        raise _unusable(sysroot, error) from None


def _write(sysroot: Sysroot, names: Iterable[str]) -> None:
    try:
        layout.rewrite(sysroot.path(layout.FAULTS_FILE), "\n".join(names))
    except OSError as error:
        raise _unusable(sysroot, error) from None


def _unusable(sysroot: Sysroot, error: OSError) -> PowerlabError:
    return PowerlabError(
        f"the faults of the simulated board in {sysroot.base} cannot be read or written ({error.strerror}); write a"
        " new board with `powerlab boards simulate NAME DIR`."
    )
