"""What the engine computes on: this machine's processor, or a GPU."""

from __future__ import annotations

from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor

CPU, GPU = Processor.CPU.value, Processor.GPU.value
DEVICES = (CPU, GPU)
GPU_PRECISIONS = ("fp32", "fp16", "int8")


def check_device(device: str) -> str:
    """Return the device.

    Raises:
        PowerlabError: there is no such one.
    """
    if device not in DEVICES:
        raise PowerlabError(f"device must be {' or '.join(DEVICES)}, not {device!r}.")
    return device


def check_gpu_threads(threads: int | None) -> None:
    """Raise PowerlabError where threads are chosen for a GPU."""
    if threads not in (None, 1):
        raise PowerlabError(f"a GPU has no threads to choose; leave out threads={threads}.")


def check_gpu_choices(threads: int | None, precision: str) -> None:
    """Raise PowerlabError where a GPU is asked for what there is on processors alone."""
    check_gpu_threads(threads)
    if precision not in GPU_PRECISIONS:
        raise PowerlabError(
            f"on a GPU the engine computes in {', '.join(GPU_PRECISIONS)} alone yet, not {precision}; use the cpu."
        )
