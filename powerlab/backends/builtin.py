"""powerlab's own engine, as one of the engines under test."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from powerlab.backends.base import LoadOptions
from powerlab.backends.offers import check_precision
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.engine import Session
from powerlab.engine.devices import GPU, GPU_PRECISIONS
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.quantization.precisions import PRECISIONS
from powerlab.engine.session import SPIN_US
from powerlab.engine.target.tiers import choose_tier, missing_numbers

CUTS_BATCHES = True


class BuiltinBackend:
    """A model in the built-in engine; fulfils :class:`powerlab.backends.base.Backend`."""

    def __init__(self, session: Session, processor_name: str = "") -> None:
        self._session = session
        self.processor_name = processor_name

    def inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return the seeded inputs."""
        return synthetic_inputs(self._session.inputs, seed, self._session.dtypes)

    def run(self, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run one inference."""
        return self._session.run(inputs)


def load(options: LoadOptions) -> BuiltinBackend:
    """Load a model with every input's first dimension set to the batch size.

    Raises:
        PowerlabError: the model cannot be read, holds an unsupported operator, has no batch dimension to set, or mixes
            the images that slices would compute apart; or the engine has no such precision.
    """
    if options.processor is Processor.GPU:
        return _load_on_gpu(options)
    if options.precision not in PRECISIONS:
        tier = choose_tier()
        check_precision("builtin", options, [one for one in PRECISIONS if not missing_numbers(tier, one)])
    session = Session(
        options.model,
        options.threads,
        spin_us=SPIN_US if options.spin_us is None else options.spin_us,
        slices=options.slices,
        batch_size=options.batch_size,
        precision=options.precision,
        cached=False,  # as other engines: mapped weights would be read in the first runs, and count as shared memory
    )
    if any(size < 0 for shape in session.inputs.values() for size in shape):
        load_graph(options.model, batch_size=options.batch_size)  # says which size is open and how to give it
    return BuiltinBackend(session)


def _load_on_gpu(options: LoadOptions) -> BuiltinBackend:
    """Load a model onto the chosen GPU; the thread that hands it its work sleeps until it is done."""
    from powerlab.engine.gpu.device import chosen_name

    check_precision("builtin", options, GPU_PRECISIONS)
    if options.spin_us is not None:
        raise PowerlabError("on a gpu no thread of the engine 'builtin' spins: ask for no --spin-us.")
    session = Session(
        options.model,
        slices=options.slices,
        queues=options.queues,
        batch_size=options.batch_size,
        precision=options.precision,
        device=GPU,
    )
    return BuiltinBackend(session, chosen_name())
