"""Moves a simulated board's sensors: the part of the board that is not a file."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from powerlab.boards.registry import find_board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.faults.base import Bench
from powerlab.boards.simulator.faults.follower import Follower
from powerlab.boards.simulator.ledger import Ledger
from powerlab.boards.simulator.load import LoadNow, load_now
from powerlab.boards.simulator.parts.base import Moment
from powerlab.boards.simulator.parts.registry import parts_of
from powerlab.boards.simulator.physics import BoardState, PowerModel, components_w, rails_w
from powerlab.boards.simulator.reboot import reboot, reboot_requested
from powerlab.boards.simulator.state import Settings, read_settings
from powerlab.boards.simulator.warmth import Warmth
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

TICK_S = 0.01
_TICKS_A_LOOK = 5

_Physics = tuple[BoardState, dict[str, float], dict[str, float]]


class Simulator:
    """A running simulated board: :meth:`tick` tells every part the present moment."""

    def __init__(self, sysroot: Sysroot, seed: int = 0) -> None:
        """Open the tree's files.

        Raises:
            PowerlabError: the directory is not a simulated board.
            OSError: a file is missing or cannot be written.
            ValueError: a setting holds something no kernel would have taken.
        """
        marker = layout.read_marker(sysroot)
        board = find_board(marker["board"])
        self._sysroot = sysroot
        self._simulation = layout.simulation_of(board.name)
        self._model = PowerModel.from_document(self._simulation)
        self._noise = random.Random(seed)  # noqa: S311 - ripple, not a secret
        self._settings = read_settings(sysroot, self._simulation)
        self._faults: frozenset[str] = frozenset()
        self._ledger = Ledger(sysroot, self._simulation, board)
        self._warmth = Warmth(self._simulation)
        self._caps: dict[str, float] = {}
        self._known: tuple[tuple[LoadNow, Settings], _Physics] | None = None
        self._ticks = 0
        self._parts = parts_of(board, self._simulation, layout.variant_of(marker["jetpack"]))
        for part in self._parts:
            part.open(sysroot)
        bench = Bench(sysroot=sysroot, board=board, simulation=self._simulation, parts=tuple(self._parts))
        self._follower = Follower(bench)

    def tick(self, now_ns: int) -> Mapping[str, float]:
        """Move every part to ``now_ns`` (CLOCK_MONOTONIC) and return the true power of each rail in W."""
        load = load_now(self._sysroot)
        looked = self._ticks % _TICKS_A_LOOK == 0 and self._look()
        if looked:
            self._follower.follow(self._faults)
        self._ticks += 1
        state, components, rails = self._physics(load)
        passed_s = self._ledger.add(now_ns, rails)
        self._warmth.follow(sum(components.values()), passed_s)
        moment = Moment(
            now_ns=now_ns,
            passed_s=passed_s,
            rails_w=rails,
            components_w=components,
            energy_j=self._ledger.energy_j,
            state=state,
            settings=self._settings,
            gpu_load=load.gpu,
            looked=looked,
            warmth_c=self._warmth.celsius,
            noise=self._noise,
            faults=self._faults,
        )
        for part in self._parts:
            part.tick(moment)
        self._follower.tick(moment)
        self._share_caps()
        return rails

    def _physics(self, load: LoadNow) -> _Physics:
        """Return state, components and rails; they are worked out anew only when load or settings changed."""
        if self._known is None or self._known[0] != (load, self._settings):
            state = replace(self._settings.state(load.threads, load.gpu), activity=load.activity)
            components = components_w(self._model, state)
            rails = rails_w(self._simulation["rails"], components)
            self._known = ((load, self._settings), (state, components, rails))
        return self._known[1]

    def _look(self) -> bool:
        """Read what somebody may have set; return whether that worked. A board that was asked to reboots first."""
        if reboot_requested(self._sysroot):
            reboot(self._sysroot)
        try:
            self._settings = read_settings(self._sysroot, self._simulation)
            self._faults = frozenset(self._sysroot.read(layout.FAULTS_FILE).split())
            self._warmth.room_c = int(layout.first_line(self._sysroot.path(layout.ROOM_FILE))) / 1000
        except (OSError, ValueError):
            return False  # somebody is writing that file just now: the board keeps its settings until the next look
        return True

    def _share_caps(self) -> None:
        """Leave the least that any part allows of each clock where the settings and the workers find it."""
        caps: dict[str, float] = {}
        for part in self._parts:
            for name, share in part.caps().items():
                caps[name] = round(min(share, caps.get(name, 1.0)), 3)
        if caps != self._caps:
            self._caps = caps
            text = "\n".join(f"{name} {share:.3f}" for name, share in sorted(caps.items()))
            layout.rewrite(self._sysroot.path(layout.CAPS_FILE), text)

    def close(self) -> None:
        """Put faults right and let go of the files; the sensors keep their last values, as a stopped clock does."""
        self._follower.close()
        for part in self._parts:
            part.close()
        self._ledger.close()


def run(directory: str | Path, going_on: Callable[[], bool], ready: Callable[[], None]) -> None:
    """Move the sensors of the tree in ``directory`` every 10 ms while ``going_on()``; call ``ready`` after the first.

    It also ends when the tree is removed: there is no board any more.

    Raises:
        PowerlabError: the directory is not a simulated board, or a damaged one.
    """
    sysroot = Sysroot(Path(directory))
    layout.read_marker(sysroot)
    try:
        with closing(Simulator(sysroot)) as simulator:
            simulator.tick(time.monotonic_ns())
            ready()
            while going_on():
                time.sleep(TICK_S)
                simulator.tick(time.monotonic_ns())
    except (OSError, ValueError) as error:
        if sysroot.simulated:
            raise PowerlabError(
                f"the simulated board in {directory} is damaged ({error}); write a new one with"
                " `powerlab boards simulate NAME DIR`."
            ) from None
