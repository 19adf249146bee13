"""ONNX's own node cases: the engine gives the published answer or says what it lacks, never another answer.

Source: https://github.com/onnx/onnx/tree/main/onnx/backend/test/case/node, which ship in the onnx package.
"""

from __future__ import annotations

import warnings
from collections import Counter
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from engine_models import load_bytes
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.operators import OPERATORS
from powerlab.engine.passes.fold_constants import fold_constants

READ_AS_THEY_ARE = 66
READ_WITH_WEIGHTS = 44
FOLDED = 122
"""How many cases pass at least: an operator form that gets lost shows here."""


@pytest.fixture(scope="module")
def cases():
    """Return the cases that hold an ONNX operator the engine claims, with their first data set."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnx computes some of its cases with overflow and division by zero
        loaded = [case for case in load_model_tests(kind="node") if case.model is not None and case.data_sets]
    return [
        SimpleNamespace(name=case.name, model=case.model, inputs=inputs, outputs=outputs, rtol=case.rtol)
        for case in loaded
        for inputs, outputs in case.data_sets[:1]
        if {node.op_type for node in case.model.graph.node} & OPERATORS.keys()
    ]


def frozen(case, kept):
    """Return the case's model as bytes with every input but those in ``kept`` as a constant, and the inputs left."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = max(model.ir_version, 4)
    left = {}
    values = zip([info.name for info in case.model.graph.input], case.inputs, strict=False)
    for index, (name, value) in enumerate(values):
        if index in kept:
            left[name] = value
        elif isinstance(value, onnx.TensorProto):
            model.graph.initializer.append(value)
            model.graph.initializer[-1].name = name
        elif isinstance(value, np.ndarray | np.generic):
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    inputs = [info for info in model.graph.input if info.name in left]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    return model.SerializeToString(), left


def check(case, found):
    """Compare with the published outputs, as far as the engine computes them (first outputs of nodes)."""
    names = [info.name for info in case.model.graph.output]
    for name, published in zip(names, case.outputs, strict=False):
        expected = numpy_helper.to_array(published) if isinstance(published, onnx.TensorProto) else published
        assert found[name].shape == expected.shape, case.name
        np.testing.assert_allclose(
            found[name].astype(np.float64),
            expected.astype(np.float64),
            rtol=max(case.rtol, 1e-4),
            atol=1e-6,
            err_msg=case.name,
        )


def run_in_session(case, kept, path):
    """Run a case in a session; return False where the engine says, in one sentence, that it cannot."""
    data, inputs = frozen(case, kept)
    path.write_bytes(data)
    try:
        found = Session(path, threads=2).run(inputs)
    except PowerlabError as error:
        refused = str(error)
    else:
        check(case, found)
        return True
    assert "\n" not in refused, case.name
    assert refused.endswith("."), (case.name, refused)
    return False


def test_there_are_cases_for_nearly_every_operator(cases):
    seen = Counter(node.op_type for case in cases for node in case.model.graph.node)
    assert not OPERATORS.keys() - seen.keys()


def test_cases_as_they_are(cases, tmp_path):
    passed = [case.name for case in cases if run_in_session(case, range(len(case.inputs)), tmp_path / "case.onnx")]
    assert len(passed) >= READ_AS_THEY_ARE, passed


def test_cases_with_all_inputs_but_the_first_as_weights(cases, tmp_path):
    several = [case for case in cases if len(case.inputs) > 1]
    passed = [case.name for case in several if run_in_session(case, (0,), tmp_path / "case.onnx")]
    assert len(passed) >= READ_WITH_WEIGHTS, passed


def test_constants_fold_to_the_published_answer(cases):
    folded = []
    for case in cases:
        data, _ = frozen(case, ())
        try:
            graph = fold_constants(load_bytes(data))
        except PowerlabError:
            continue
        if all(info.name in graph.constants for info in graph.outputs):
            check(case, graph.constants)
            folded.append(case.name)
    assert len(folded) >= FOLDED, (len(folded), folded)


def test_an_output_that_only_counts_places_is_refused_by_its_node(cases):
    (case,) = (case for case in cases if case.name == "test_maxpool_with_argmax_2d_precomputed_pads")
    with pytest.raises(
        PowerlabError, match="'z', an extra output of MaxPool node 'y' that the engine does not compute"
    ):
        load_bytes(case.model.SerializeToString())
