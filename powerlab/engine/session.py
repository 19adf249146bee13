"""A model, ready to run: the engine's public face."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.batch_axis import check_images_apart
from powerlab.engine.codegen.work import StepWork
from powerlab.engine.devices import GPU, check_device, check_gpu_choices
from powerlab.engine.ir.graph import Graph, NeedsRunError
from powerlab.engine.planned import PlannedGraph, Planning
from powerlab.engine.prepared.cache import Cache, configured_cache, through_cache
from powerlab.engine.prepared.prepared import Prepared, prepare
from powerlab.engine.program.choice import Choice
from powerlab.engine.runtime.collection import uncollected
from powerlab.engine.runtime.plan import thread_pool
from powerlab.engine.runtime.slices import check_slices, doubled_shapes, slice_shapes
from powerlab.engine.staged.model import StagedModel
from powerlab.engine.target.cpus import usable_cpus
from powerlab.engine.target.machine import this_machine
from powerlab.engine.target.tiers import IN_16_BITS, Tier, tier_for
from powerlab.engine.tuning.kept import Tunings, has_tunings, read_tunings, this_place

if TYPE_CHECKING:
    from powerlab.engine.gpu.model import GpuModel

SPIN_US = 200
"""How long an engine thread that has nothing to do spins before it sleeps, in microseconds."""

MOST_THREADS = 1024
MOST_SPIN_US = 1_000_000
"""A second of spinning; more than that is no waiting for the next step of a model."""


def check_threads(threads: int) -> None:
    """Raise PowerlabError where ``threads`` is no number of threads."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise PowerlabError(f"threads must be an integer from 1 to {MOST_THREADS}, not {threads!r}.")


class Session:
    """A model loaded, optimised and planned for one shape of inputs, with threads of its own.

    Runs from several threads take turns. A session belongs to the process that made it.

    Args:
        model: the path of an ONNX file, or the name of a model of the zoo.
        threads: threads that compute, the caller of :meth:`run` being one; the engine starts no others. None:
            as many as this process has processors, by its affinity mask and the quota of its control group. Where there
            are fewer processors, waiting threads sleep at once: one that spins would hold up those it waits for.
        shapes: input name -> shape, where another one is wanted than the model says, or than the inputs of a run have.
        spin_us: how long a thread that has nothing to do spins before it sleeps, in microseconds.
        tuned: whether to choose by what ``powerlab engine tune`` found here, where it did.
        slices: parts the batch (the first axis of every input) is cut into, which run at the same time on
            ``threads`` / ``slices`` threads each, with the same weights. Results are the same bits as without; on a GPU
            those of batches of a slice's size.
        queues: of the GPU, over which the slices are spread; with one they are recorded side by side in it.
        batch_size: size of the first axis of every input not in ``shapes``; None: as the model says.
        cached: whether to look in the cache of prepared models, where ``POWERLAB_CACHE`` asks for one.
        precision: ``fp32``; ``int8``, quantized by the calibration that is kept of the model, or where there is none,
            by one with seeded random inputs; ``int8w``, ``int4w``, ``fp16w``: weights rounded to that, and
            computed with in float32. On a GPU ``fp32``, ``int8``, or ``fp16``: numbers and weights stored in 16 bits.
        device: ``cpu``, or ``gpu``: the GPU that Vulkan's loader knows (:mod:`powerlab.engine.gpu`), where threads
            are no choice and nothing is left to the processor: what is not supported there is refused.

    Where the model leaves a shape open, or a value that only a run gives decides one, or a Loop has many rounds, it is
    planned in stages when it runs, once for each set of shapes and deciding values (:mod:`powerlab.engine.staged`).

    Attributes:
        tier: the instruction set in use, such as ``avx512``; ``vulkan`` on a GPU.
        threads: threads that compute.
        slices: parts the batch is cut into; steps, work and choices are those of one.

    Raises:
        PowerlabError: the model cannot be read or holds what the engine cannot compute.
    """

    @uncollected()
    def __init__(
        self,
        model: str | Path | Graph,
        threads: int | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        spin_us: int = SPIN_US,
        tuned: bool = True,
        *,
        slices: int = 1,
        queues: int = 1,
        batch_size: int | None = None,
        cached: bool = True,
        precision: str = "fp32",
        device: str = "cpu",
    ) -> None:
        asked = _Asked(model, shapes, batch_size, precision)
        self._model: PlannedGraph | StagedModel | GpuModel
        if check_device(device) == GPU:
            check_gpu_choices(threads, precision)
            check_slices(slices, slices)
            self.tier, self.threads, self.slices = "vulkan", 1, slices
            self._model = _on_gpu(asked, slices, queues, tuned=tuned)
            return
        if queues != 1:
            raise PowerlabError(f"the cpu has no queues; leave out queues={queues!r}, or ask for the device gpu.")
        usable = usable_cpus()
        threads = usable if threads is None else threads
        check_threads(threads)
        if isinstance(spin_us, bool) or not isinstance(spin_us, int) or not 0 <= spin_us <= MOST_SPIN_US:
            raise PowerlabError(f"spin_us must be an integer from 0 to {MOST_SPIN_US}, not {spin_us!r}.")
        check_slices(slices, threads)
        tier = tier_for(precision)
        self.tier, self.threads, self.slices = tier.name, threads, slices
        planning = Planning(
            tier=tier,
            threads=threads,
            spin_us=spin_us if threads <= usable else 0,
            tunings=_tunings(tier) if tuned and precision not in IN_16_BITS else None,
            slices=slices,
        )
        cache = configured_cache() if cached and not isinstance(model, Graph) else None
        self._model = _planned(asked, planning, cache)

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every input; a size of -1 is open."""
        return dict(self._model.inputs)

    @property
    def outputs(self) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every output; where only a run tells, those of the latest one, -1 before it."""
        return dict(self._model.outputs)

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """Return name -> numpy type of every input and output, as the model says.

        What is float16 or float64 is converted, for the engine computes in float32. Outputs whose shapes only a run
        tells are there after one.
        """
        return dict(self._model.dtypes)

    @property
    def work(self) -> tuple[StepWork, ...]:
        """Return what each step of the plan has to do, in the order of :meth:`steps`; of one slice."""
        return self._whole().work

    @property
    def choices(self) -> tuple[Choice | None, ...]:
        """Return what was chosen for each step; None where there was no choice."""
        return self._whole().choices

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run the model once, with the interpreter lock released.

        Args:
            inputs: input name -> array of the shape in :attr:`inputs` and the type in :attr:`dtypes`.

        Returns:
            Output name -> a new array of the type in :attr:`dtypes`.

        Raises:
            PowerlabError: an input is missing, unknown, or has another shape or type; or the model cannot compute with
                what it holds, as with an index outside a table.
        """
        return self._model.run(inputs)

    def profile(self, inputs: Mapping[str, NDArray[Any]]) -> list[tuple[str, str, int]]:
        """Run the model once and return kernel, node and duration in nanoseconds of every step, in order."""
        return self._model.timed(inputs)[1]

    def steps(self) -> list[tuple[str, str]]:
        """Return kernel and node of every step of the plan, in the order they run.

        Where only a run tells the shapes, they are those of the latest profile.
        """
        return self._model.steps()

    def repeat(self, inputs: Mapping[str, NDArray[Any]], first: int, last: int, times: int) -> int:
        """Run the steps ``first`` to ``last - 1`` of the plan, all of them ``times`` times over.

        They read what earlier steps left in the arena: run those once before. A step repeated by itself finds its
        operands unchanged, but in caches where the steps between two runs would have replaced them.

        Returns:
            how long that took, in nanoseconds.

        Raises:
            PowerlabError: an input is missing, unknown, or has another shape or type.
            ValueError: the plan has no such steps.
        """
        return self._whole().repeat(inputs, first, last, times)

    def poison(self) -> None:
        """Overwrite all intermediate memory with not-a-number; results of the next run must be the same."""
        self._model.poison()

    def _whole(self) -> PlannedGraph | GpuModel:
        """Return the plan of the whole model.

        Raises:
            PowerlabError: there is none, because only a run tells its shapes.
        """
        if not isinstance(self._model, StagedModel):
            return self._model
        raise PowerlabError(
            "only a run tells the shapes of this model, or how long loops are, so there is no plan of it to look at."
        )


class _Asked(Struct, frozen=True):
    """The model a session was asked for: the arguments of the same names."""

    model: str | Path | Graph
    shapes: Mapping[str, tuple[int, ...]] | None
    batch_size: int | None
    precision: str

    def with_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> _Asked:
        """Return the same model for inputs of other shapes."""
        return _Asked(self.model, shapes, None, self.precision)


def _planned(asked: _Asked, planning: Planning, cache: Cache | None) -> PlannedGraph | StagedModel:
    """Return the model, planned as a whole where its shapes can be told before a run."""
    pool = thread_pool(planning.threads, planning.spin_us) if planning.slices == 1 else None
    model = asked.model
    try:
        return PlannedGraph(_prepared(asked, planning, cache), planning, pool)
    except NeedsRunError as error:
        if isinstance(model, Graph):
            raise
        if planning.slices > 1:
            raise PowerlabError(f"{error} A batch is cut into slices before a run, so leave the slices out.") from None
        if asked.precision != "fp32":
            raise PowerlabError(f"{error} Only then can it be run in {asked.precision}.") from None
    from powerlab.engine.frontend.load import load_open

    return StagedModel(load_open(model, asked.shapes, asked.batch_size), planning, pool)


def _on_gpu(asked: _Asked, slices: int, queues: int, *, tuned: bool) -> GpuModel:
    """Return the model on a GPU."""
    from powerlab.engine.gpu.device import check_queues, this_target
    from powerlab.engine.gpu.model import GpuModel
    from powerlab.engine.gpu.tuning.kept import by_tuning

    check_queues(queues, slices)
    half = asked.precision == "fp16"
    asked = replace(asked, precision="fp32") if half else asked
    choose = by_tuning(this_target()) if tuned else None
    try:
        graph = _optimised(asked, for_cores=False)
        if slices > 1:
            graph = _part(asked, graph, slices, for_cores=False)
        return GpuModel(graph, half=half, choose=choose, slices=slices, queues=queues)
    except NeedsRunError as error:
        raise PowerlabError(f"{error} On a GPU all shapes must be known before a run; use the device cpu.") from None


def _prepared(asked: _Asked, planning: Planning, cache: Cache | None) -> Prepared:
    """Return the model, lowered for this machine: by the process that did so first, where there is a cache."""
    model = asked.model

    def make() -> Prepared:
        graph = _optimised(asked, unrolled=planning.slices > 1 or asked.precision != "fp32")
        part = None if planning.slices == 1 else _part(asked, graph, planning.slices)
        return prepare(graph, planning.tier, planning.slice_threads, planning.chooser, part)

    # What a calibration that may change decides is not looked for in a cache.
    if cache is None or isinstance(model, Graph) or asked.precision != "fp32":
        return make()
    from powerlab.engine.prepared.key import is_whole, model_digest, prepared_key

    def key() -> str | None:
        digest = model_digest(model, cache.folder, planning.threads)
        machine = this_machine(planning.tier, planning.slice_threads)
        wanted = (asked.shapes or {}, asked.batch_size, planning.slices)
        return None if digest is None else prepared_key(digest, wanted, machine, planning.tunings)

    return through_cache(cache, key, planning.threads, make, lambda: is_whole(model))


def _part(asked: _Asked, whole: Graph, slices: int, *, for_cores: bool = True) -> Graph:
    """Return the optimised graph for one slice of the batch that ``whole`` takes."""
    if isinstance(asked.model, Graph):
        raise PowerlabError("a graph has its batch size already; give a model's name or path to cut it into slices.")
    part = _optimised(asked.with_shapes(slice_shapes(whole, slices)), for_cores=for_cores)
    check_images_apart(whole, _optimised(asked.with_shapes(doubled_shapes(whole)), for_cores=for_cores))
    return part


def _tunings(tier: Tier) -> Tunings | None:
    """Return what was tuned here; None where nothing was."""
    return read_tunings(this_place(tier)) if has_tunings() else None


def _optimised(asked: _Asked, *, for_cores: bool = True, unrolled: bool = True) -> Graph:
    """Return the graph to lower; a graph given as such counts as optimised."""
    model = asked.model
    if isinstance(model, Graph):
        if asked.shapes or asked.batch_size is not None:
            raise PowerlabError("a graph has its shapes already; give shapes with a model's name or path only.")
        if asked.precision != "fp32":
            raise PowerlabError("a graph has its precision already; give one with a model's name or path only.")
        return model
    from powerlab.engine.frontend.load import load_graph
    from powerlab.engine.passes import optimise
    from powerlab.engine.precomputed import precompute

    graph = precompute(load_graph(model, asked.shapes, asked.batch_size, unrolled=unrolled))
    if asked.precision != "fp32":
        from powerlab.engine.quantization.precisions import in_precision

        graph = in_precision(graph, model, asked.precision)
    return optimise(graph, for_cores=for_cores, in_16_bits=asked.precision in IN_16_BITS)
