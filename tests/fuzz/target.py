"""What every input goes through: read, optimised, planned, run, and compared; at every step a refusal is a good end.

A finding is anything else that ends it: another exception than PowerlabError, a sentence of several lines, and above
all an answer that differs from a plain computation, from ONNX Runtime's, or from its own with other threads.
"""

from __future__ import annotations

import os
import re
import warnings

import numpy as np
import onnx
from engine_reference import OPERATORS, run_graph
from google.protobuf.message import DecodeError

from fuzz.comparison import Comparison, FindingError
from fuzz.judge import Judge
from fuzz.sandbox import NATIVE_VARIABLE
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.onnx_reader.build import parse
from powerlab.engine.ir.shapes import infer
from powerlab.engine.passes import optimise
from powerlab.engine.passes.fold.constants import fold_constants

MAX_FLOPS = 2 * 10**7
"""More takes too long to compute in numpy."""

MAX_ELEMENTS = 10**6
THREADS = (1, 3)

JUDGE = None if os.environ.get(NATIVE_VARIABLE) else Judge()
"""None under sanitizers, which slow ONNX Runtime down and find faults of its own."""


def attempt(data, folder=None):
    """Take ``data`` as far as it goes; return what happened: the sentence that refused it, or the kernels it ran."""
    try:
        loaded = parse(data, {}, None, folder).graph()
        graph = optimise(loaded)
        if sum(info.elements for info in graph.tensors.values()) > MAX_ELEMENTS:
            return ("too large",)
        sessions = [Session(graph, threads, spin_us=0, tuned=False) for threads in THREADS]
    except PowerlabError as error:
        return (_checked_sentence(str(error)),)
    if sum(step.flops + step.bytes_moved for step in sessions[0].work) > MAX_FLOPS:
        return ("too slow",)
    inputs = _inputs(sessions[0])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = sessions[0].run(inputs)
        except PowerlabError as error:  # an index outside a table, say
            return (_checked_sentence(str(error)),)
        _check_repeatable(sessions, inputs, found)
        compare = Comparison(sessions[0], inputs, found)
        if not {node.op_type for node in graph.nodes} - OPERATORS.keys() - {"Chain", "Reshape"}:
            compare(run_graph(graph, inputs), "the reference")
        compare(_folded(loaded, inputs), "what folding makes of it")
        known = _known_to_differ(loaded) or _declares_other_shapes(data, found)
        judged = JUDGE(data, inputs) if JUDGE and not known else None
        if judged is not None:
            compare(judged, "ONNX Runtime")
    return tuple(kernel for kernel, _ in sessions[0].steps())


_CHOOSE = ("ArgMax", "ArgMin", "Hardmax", "ReduceMax", "ReduceMin", "TopK")


def _known_to_differ(graph):
    """Say whether ONNX Runtime's answer is not the published one of ONNX's own cases.

    It resizes to aligned corners in its own way, copies where a resized crop is as large as the whole, counts
    MaxUnpool's places in the size that is given, reduces axes of no elements to none instead of one, loses high powers
    of an Lp norm, which are no floats, draws what Dropout drops from a generator of its own, chooses another number
    among computed ones where some are not numbers or nearly alike, turns floats below zero into integers without a
    sign in its own way, which ONNX leaves open, finds no place for indices of OneHot between two numbers, and takes
    coordinates of a grid that are far outside for some inside.
    """
    return any(
        node.attributes.get("coordinate_transformation_mode") in ("align_corners", "tf_crop_and_resize")
        or (node.op_type in ("Dropout", "MaxUnpool") and len(node.inputs) > 2)
        or (node.op_type.startswith("Reduce") and 0 in graph.shape(node.inputs[0]))
        or (node.op_type in ("GlobalLpPool", "LpPool") and node.attributes.get("p", 2) > 2)
        or (node.op_type in _CHOOSE and len(graph.nodes) > 1)
        or (node.op_type == "GridSample" and _is_far(graph.kept_constants.get(node.inputs[1])))
        or (node.op_type == "OneHot" and graph.tensors[node.inputs[0]].dtype.kind == "f")
        or (node.op_type in ("Cast", "CastLike") and graph.tensors[node.outputs[0]].dtype.kind == "u")
        for node in graph.nodes
    )


def _is_far(grid):
    """Say whether a grid that is known has coordinates that may overflow a 32-bit number once they are in pixels."""
    return grid is not None and not np.all(np.abs(grid) < 2**20)


def _declares_other_shapes(data, found):
    """Say whether the file declares an output in another shape than it has: ONNX Runtime may answer out of memory that
    nobody wrote then. Whatever is wrong in a part that only it reads, it refuses.
    """
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError:
        return True
    for info in model.graph.output:
        tensor = info.type.tensor_type
        sizes = [axis.dim_value if axis.HasField("dim_value") else None for axis in tensor.shape.dim]
        shape = found[info.name].shape
        if tensor.HasField("shape") and (
            len(sizes) != len(shape) or any(size not in (None, own) for size, own in zip(sizes, shape, strict=True))
        ):
            return True
    return False


def _inputs(session):
    generator = np.random.default_rng(0)
    made = {}
    for name, shape in session.inputs.items():
        dtype = session.dtypes[name]
        values = generator.standard_normal(shape) if dtype.kind == "f" else generator.integers(0, 4, shape)
        made[name] = values.astype(dtype)
    return made


def _folded(graph, inputs):
    """Return the outputs that constant folding can compute in numpy, where the inputs are constants."""
    constants = {**graph.kept_constants, **{n: v.astype(graph.tensors[n].dtype) for n, v in inputs.items()}}
    try:
        folded = fold_constants(infer(graph.name, graph.nodes, (), [info.name for info in graph.outputs], constants))
    except PowerlabError:  # some values are looked at only when they are known, as a divisor of integers
        return {}
    return {info.name: folded.constants[info.name] for info in graph.outputs if info.name in folded.constants}


def _checked_sentence(sentence):
    if "\n" in sentence or len(sentence) > 1500 or not sentence.endswith("."):
        raise FindingError(f"no sentence: {sentence[:500]!r}")
    return re.sub(r"'[^']*'|\d+", "", sentence)[:80]


def _check_repeatable(sessions, inputs, found):
    for session in sessions:
        session.poison()
        again = session.run(inputs)
        for name, values in found.items():
            if not np.array_equal(values, again[name], equal_nan=values.dtype.kind == "f"):
                raise FindingError(f"another answer in poisoned memory or with {session.threads} threads")
