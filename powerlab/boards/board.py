"""The description of a kind of board. A board is data: one TOML file in ``powerlab/boards/data``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from powerlab.domain.power import TotalFormula


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One power monitor chip of a board.

    Attributes:
        address: ``bus-address`` as the I2C drivers name it, for example ``1-0040``.
        channels: the rails' names in channel order; an empty name is a channel the board leaves unused.
        shunt_uohm: the shunt resistors in µΩ, with the chip's 40 µV step the step of a current; None where unknown.
    """

    address: str
    channels: tuple[str, ...]
    shunt_uohm: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorMode:
    """One published power mode of a board, as its nvpmodel table states it.

    Attributes:
        id: the number ``nvpmodel -m`` takes; numbers need not be dense.
        name: for example ``MODE_15W``.
        cores: cores that are online.
        cpu_khz: cap of the CPU clocks in kHz; -1 is no cap.
        gpu_hz: cap of the GPU clock in Hz; -1 is no cap.
        emc_hz: cap of the memory clock in Hz; 0 is no cap.
        requires_reboot: the board only takes the mode at its next boot.
        online: the cores that are online, as the kernel lists them (``0,3-5``); empty is the first ``cores``.
        cluster_khz: caps of each cluster in kHz, where the clusters differ; ``cpu_khz`` is the highest of them then.
        jetpacks: the JetPacks whose table holds the mode; empty is all.
    """

    id: int
    name: str
    cores: int
    cpu_khz: int
    gpu_hz: int
    emc_hz: int
    requires_reboot: bool = False
    online: str = ""
    cluster_khz: tuple[int, ...] = ()
    jetpacks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A kind of board.

    Attributes:
        name: unique, for example ``jetson-agx-xavier``.
        title: as the vendor names it.
        compatible: device-tree ``compatible`` strings that identify it.
        models: device-tree ``model`` strings that identify it, for boards whose ``compatible`` is shared.
        signs: for machines without a device tree: patterns of files and the regular expression that the whole text of
            one of them matches. All must be there.
        core_count: CPU cores of the board; None where variants differ or nothing is known.
        total: which rails, added up, are the board's power; None where nothing is known. A rail's name may end in
            ``*``, for boards with a rail for each core.
        chips: its power monitor chips.
        vendor_modes: its published power modes, where powerlab has them.
        notes: what a user of this board should know, in words.
        jetpacks: the JetPacks that run on it, of those powerlab knows; the first is what the simulator takes unasked.
        simulatable: whether the simulator can stand in for it.
    """

    name: str
    title: str
    compatible: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    signs: Mapping[str, str] = field(default_factory=dict)
    core_count: int | None = None
    total: TotalFormula | None = None
    chips: tuple[Chip, ...] = ()
    vendor_modes: tuple[VendorMode, ...] = ()
    jetpacks: tuple[int, ...] = ()
    notes: str = ""
    simulatable: bool = False
