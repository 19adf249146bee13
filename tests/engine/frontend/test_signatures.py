"""What the reader takes for inputs and attributes of an operator is what onnx says, in any opset it reads."""

from __future__ import annotations

from collections import defaultdict

import onnx.defs
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_reader.build import OLDEST_OPSET
from powerlab.engine.frontend.onnx_reader.signatures import FLAGS, MICROSOFT_SIGNATURES, SIGNATURES, check_signature
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops import SUPPORTED
from powerlab.engine.ops.quantized import OF_MICROSOFT


def schemas():
    """Return, for every operator, its schemas from the oldest opset the reader takes on."""
    found = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            found[schema.name].append(schema)
    for versions in found.values():
        versions.sort(key=lambda schema: schema.since_version)
        while len(versions) > 1 and versions[1].since_version <= OLDEST_OPSET:
            versions.pop(0)
    return found


SCHEMAS = schemas()
STANDARD = SUPPORTED - OF_MICROSOFT


def test_every_operator_of_the_engine_has_a_line():
    assert STANDARD <= SIGNATURES.keys() <= SCHEMAS.keys()
    assert OF_MICROSOFT <= MICROSOFT_SIGNATURES.keys() <= SUPPORTED


@pytest.mark.parametrize("operator", sorted(STANDARD))
def test_inputs_and_attributes_are_those_of_the_standard(operator):
    most, names = SIGNATURES[operator]
    assert most == max(schema.max_input for schema in SCHEMAS[operator])
    assert sorted(names.split()) == sorted({name for schema in SCHEMAS[operator] for name in schema.attributes})


@pytest.mark.parametrize("flag", sorted(FLAGS))
def test_what_says_yes_or_no_says_nothing_else(flag):
    schemas = [schema for versions in SCHEMAS.values() for schema in versions if flag in schema.attributes]
    assert {schema.attributes[flag].type for schema in schemas} == {onnx.defs.OpSchema.AttrType.INT}
    operator = schemas[0].name
    check_signature(Node(operator, "n", ("x",), ("y",), {flag: 1}))
    with pytest.raises(PowerlabError, match=f"{operator} node 'n' has {flag} -1, which must be 0 or 1"):
        check_signature(Node(operator, "n", ("x",), ("y",), {flag: -1}))
