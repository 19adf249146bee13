"""ONNX's own node cases, run on the built-in engine: each passes, is answered wrongly, or is refused with a sentence.

Source: https://github.com/onnx/onnx/tree/main/onnx/backend/test/case/node, which ship in the onnx package. A case is a
network of one operator, with inputs and the answer that the standard publishes. Most are there twice: as they are, and
"expanded" into the simpler operators by which the standard defines the operator; both count for the operator.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import defs, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.onnx_reader.build import OLDEST_OPSET

FLOAT32 = "tensor(float)"
_SPECTRA = {"DFT", "STFT"}
_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Type → the step after 1."""


class Outcome(StrEnum):
    """What became of a case."""

    PASSED = "passed"
    REFUSED = "refused"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Case:
    """A network of one operator with inputs and the published answer.

    Attributes:
        operator: the operator that the case is about; ``domain.Operator`` where it is none of ONNX's own domain.
        opset: the version of the operators.
        is_float32: whether every tensor that the standard lets be float32 is float32.
        inputs: values in the order of the model's inputs; arrays, or what else the standard knows (lists, None).
        rtol: relative tolerance that the standard grants; ``atol`` the absolute one.
    """

    name: str
    operator: str
    opset: int
    is_float32: bool
    model: onnx.ModelProto
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    rtol: float
    atol: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a case, and in the engine's words why it was not passed."""

    case: Case
    outcome: Outcome
    reason: str = ""


def load_cases() -> list[Case]:
    """Return all node cases of the onnx package, sorted by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnx computes some of its cases with overflow and division by zero
        loaded = {case.name: case for case in load_model_tests(kind="node")}
    return [_case(case, loaded[re.sub("_expanded.*", "", name)]) for name, case in sorted(loaded.items())]


def _case(case: TestCase, plain: TestCase) -> Case:
    """Return a case of the package; ``plain`` is the one that it expands, or itself."""
    if case.model is None or plain.model is None or not case.data_sets:
        raise ValueError(f"the onnx package's case {case.name} has no model or no data")
    node = plain.model.graph.node[0]
    opset = next((one.version for one in plain.model.opset_import if one.domain == node.domain), 0)
    inputs, outputs = case.data_sets[0]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)  # the package hands the same model to whoever asks next
    for one in model.opset_import:
        one.version = _read_opset(node, opset) if one.domain == node.domain else one.version
    return Case(
        name=case.name,
        operator=f"{node.domain}.{node.op_type}" if node.domain else node.op_type,
        opset=opset,
        is_float32=_is_float32(node, opset, model.graph),
        model=model,
        inputs=tuple(_array(value) for value in inputs),
        outputs=tuple(_array(value) for value in outputs),
        rtol=case.rtol,
        atol=case.atol,
    )


def _read_opset(node: onnx.NodeProto, opset: int) -> int:
    """Return the version of the operators as which a model can be read, where its own is older than the engine reads.

    An operator that has not changed until the oldest version that is read is the same in both.
    """
    if opset >= OLDEST_OPSET or node.domain:
        return opset
    now, then = (defs.get_schema(node.op_type, version, node.domain).since_version for version in (OLDEST_OPSET, opset))
    return OLDEST_OPSET if now == then else opset


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def engine_array(value: Any) -> Any:
    """Return a value as a session takes and gives it: types that numpy lacks are held in float32, int8 or uint8."""
    if not isinstance(value, np.ndarray) or value.dtype.type.__module__ == "numpy":
        return value
    name = value.dtype.name
    held = np.int8 if name.startswith("int") else np.uint8 if name.startswith("uint") else np.float32
    return value.astype(held)


def _is_float32(node: onnx.NodeProto, opset: int, graph: onnx.GraphProto) -> bool:
    """Say whether every tensor of a case is float32 where the operator's schema allows that."""
    types = {info.name: info.type for info in (*graph.input, *graph.output)}
    schema = defs.get_schema(node.op_type, opset, node.domain)
    for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs)):
        for index, name in enumerate(names):
            formal = formals[min(index, len(formals) - 1)]  # the last may stand for many
            if name not in types or FLOAT32 not in formal.types:
                continue
            if types[name].tensor_type.elem_type != onnx.TensorProto.FLOAT:
                return False
    return all(info.WhichOneof("value") == "tensor_type" for info in types.values())


def run_cases(cases: Sequence[Case], folder: Path) -> Iterator[Verdict]:
    """Run cases one after the other; their models are written into ``folder``."""
    return (run_case(case, folder / "case.onnx") for case in cases)


def run_case(case: Case, path: Path) -> Verdict:
    """Run a case with all its inputs fed; its model is written to ``path``."""
    data, inputs = frozen(case, frozenset())
    path.write_bytes(data)
    try:
        found = Session(path, threads=1).run({name: engine_array(value) for name, value in inputs.items()})
    except PowerlabError as error:
        return Verdict(case, Outcome.REFUSED, str(error))
    except Exception as error:  # a crash of the engine is a wrong answer, and the page shall say so
        return Verdict(case, Outcome.WRONG, f"{type(error).__name__}: {error}")
    try:
        compare(case, found)
    except AssertionError as error:
        return Verdict(case, Outcome.WRONG, str(error).strip())
    return Verdict(case, Outcome.PASSED)


def frozen(case: Case, constant: frozenset[int]) -> tuple[bytes, dict[str, Any]]:
    """Return the case's model with some inputs as constants, and the other inputs by name."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = max(model.ir_version, 4)  # from then on a constant need not be an input too
    infos = list(model.graph.input)
    left = {}
    for index, (info, value) in enumerate(zip(infos, case.inputs, strict=False)):
        if index in constant:
            model.graph.initializer.append(numpy_helper.from_array(value, info.name))
            model.graph.input.remove(info)
        else:
            left[info.name] = value
    return model.SerializeToString(), left


def compare(case: Case, found: dict[str, Any]) -> None:
    """Raise AssertionError, which says where, unless ``found`` (by output name) is the published answer."""
    for info, published in zip(case.model.graph.output, case.outputs, strict=True):
        expected = engine_array(published)
        answer = found[info.name]
        if (answer.shape, answer.dtype) != (expected.shape, expected.dtype):
            raise AssertionError(f"{answer.dtype} {answer.shape} in place of {expected.dtype} {expected.shape}")
        # Sums of many rounded numbers: where the right answer is 0, the published one is what rounding left.
        left = 2.0**-24 * float(np.max(np.abs(expected), initial=0)) if case.operator in _SPECTRA else 0.0
        # In 16 bits the published answer was rounded at every step, the engine's once: two units in the last place.
        rounding = 2 * _EPSILON.get(published.dtype.name, 0.0)
        np.testing.assert_allclose(answer, expected, rtol=max(case.rtol, rounding), atol=max(case.atol, left))
