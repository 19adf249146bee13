"""What the reader takes for inputs and attributes of an operator is what onnx says, in any opset it reads."""

from __future__ import annotations

from collections import defaultdict

import onnx.defs
import pytest

from powerlab.engine.onnx_reader.build import OLDEST_OPSET
from powerlab.engine.onnx_reader.signatures import SIGNATURES
from powerlab.engine.operators import SUPPORTED


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


def test_every_operator_of_the_engine_has_a_line():
    assert SUPPORTED <= SIGNATURES.keys() <= SCHEMAS.keys()


@pytest.mark.parametrize("operator", sorted(SUPPORTED))
def test_inputs_and_attributes_are_those_of_the_standard(operator):
    most, names = SIGNATURES[operator]
    assert most == max(schema.max_input for schema in SCHEMAS[operator])
    assert sorted(names.split()) == sorted({name for schema in SCHEMAS[operator] for name in schema.attributes})
