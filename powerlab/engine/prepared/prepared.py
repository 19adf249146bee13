"""A model lowered for one machine: everything a plan is built from, and nothing of the process that lowered it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct

from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.engine.codegen import chosen_algorithms, lower
from powerlab.engine.codegen.convolutions.choosing import Chooser
from powerlab.engine.codegen.convolutions.late_residuals import with_late_residuals
from powerlab.engine.codegen.quantized.byte_products import with_byte_products
from powerlab.engine.codegen.quantized.faster_floats import with_faster_floats
from powerlab.engine.codegen.weights import Made
from powerlab.engine.codegen.work import StepWork, step_work
from powerlab.engine.ir.graph import Graph
from powerlab.engine.program.program import Program
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier


class Prepared(Struct, frozen=True, kw_only=True):
    """A program, and what callers see of the model.

    Attributes:
        name: of the model.
        inputs: name -> shape of every input, of the whole batch.
        outputs: name -> shape of every output, of the whole batch.
        computed: name -> numpy type of every input and output as the engine computes it.
        outside: those of them that the model has in another type.
        program: of one slice.
        work: what each step has to do.
    """

    name: str
    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    computed: Mapping[str, str]
    outside: Mapping[str, str]
    program: Program
    work: tuple[StepWork, ...]


@contextmanager
def memory_errors(name: str) -> Iterator[None]:
    """Let what the native core refuses, and a lack of memory, be sentences about the model of this name."""
    try:
        yield
    except RuntimeError as error:
        raise PowerlabError(str(error)) from error
    except MemoryError as error:
        raise TooLargeError(
            f"the model {name!r} does not fit into memory with inputs of this size; use a smaller batch."
        ) from error


def _for_tier(graph: Graph, tier: Tier) -> Graph:
    """Return a graph with what a tier computes faster on floats, or on bytes, done so, and sums where they are free."""
    return with_late_residuals(with_byte_products(with_faster_floats(graph, tier), tier))


def prepare(
    graph: Graph,
    tier: Tier,
    threads: int,
    chooser: Chooser | None = None,
    part: Graph | None = None,
    *,
    made: Made | None = None,
    machine: Machine | None = None,
) -> Prepared:
    """Return an optimised graph, lowered.

    Args:
        graph: the whole graph.
        tier: the kernels to use.
        threads: of one slice.
        chooser: chooses by what was tuned here; None: the cost model does.
        part: the graph of one slice, which gets the algorithms of the whole; None where there are no slices.
        made: weights made for other models; None: all are made now.
        machine: what to choose for, with the same tier and threads; None: this one, which is looked at now.

    Raises:
        NeedsRunError: a kernel needs a value before a run that only a run gives.
        PowerlabError: the engine cannot compute what the graph holds, or it does not fit into memory.
    """
    with memory_errors(graph.name):
        graph, part = _for_tier(graph, tier), part and _for_tier(part, tier)
        algorithms = {} if part is None else chosen_algorithms(graph, tier, threads, chooser)
        program = lower(part or graph, tier, threads, chooser, algorithms, made=made, machine=machine)
    return Prepared(
        name=graph.name,
        inputs={info.name: info.shape for info in graph.inputs},
        outputs={info.name: info.shape for info in graph.outputs},
        computed={info.name: info.dtype.str for info in (*graph.inputs, *graph.outputs)},
        outside={name: dtype.str for name, dtype in graph.outside.items()},
        program=program,
        work=step_work(part or graph, program.steps),
    )
