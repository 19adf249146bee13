"""Which pacer a worker needs: none of a real machine's, that of a simulated board's cores or of its graphics card."""

from __future__ import annotations

from powerlab.boards.simulator.gpu_pacing import SimulatedGpuPacer
from powerlab.boards.simulator.pacing import Pacer, SimulatedPacer
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot


def pacer(sysroot: Sysroot, threads: int, on_gpu: bool = False) -> Pacer:
    """Return what a worker wraps its inferences in, for ``threads`` threads on the (simulated) board, or its GPU.

    Raises:
        PowerlabError: the simulated board's tree is damaged, or it has no graphics processor that computes.
    """
    if not sysroot.simulated:
        return Pacer(threads)
    try:
        return (SimulatedGpuPacer if on_gpu else SimulatedPacer)(sysroot, threads)
    except (OSError, ValueError) as error:
        raise PowerlabError(
            f"the simulated board in {sysroot.base} is damaged ({error}); write a new one with"
            " `powerlab boards simulate NAME DIR`."
        ) from None
