"""The pacer of work on a simulated board's first graphics processor."""

from __future__ import annotations

from powerlab.boards.simulator.cards import first_card, inference_s
from powerlab.boards.simulator.pacing import SimulatedPacer
from powerlab.boards.simulator.physics import Work
from powerlab.boards.simulator.state import Settings
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot


class SimulatedGpuPacer(SimulatedPacer):
    """Waits as long as inferences take on the card; the thread that hands it its work sleeps meanwhile."""

    def __init__(self, sysroot: Sysroot, threads: int) -> None:
        """Find the card.

        Raises:
            PowerlabError: the simulator has no graphics processor that computes on this board.
        """
        super().__init__(sysroot, threads)
        card = first_card(self._simulation)
        if card is None:
            self.close()
            raise PowerlabError(
                "the simulator of this board has no graphics processor that computes; choose --processor cpu, or a"
                " board whose name ends in -workstation (`powerlab boards`)."
            )
        self._card = card
        self.processor_name = card.name

    def _inference_s(self, settings: Settings, work: Work) -> float:
        if settings.busy_gpu is None:
            raise PowerlabError("the board's simulator is not running; start it with `powerlab boards simulate --run`.")
        return inference_s(self._card, settings.busy_gpu, work)

    def _publish(self, *, busy: bool) -> None:
        self._load.publish(0, self._activity, gpu=float(busy))
