"""What the description promises, held by Schemathesis: statuses, content types and bodies of whatever is asked.

``POWERLAB_SCHEMATHESIS_EXAMPLES`` asks for more requests an operation than the few of a usual run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from access_world import World, access_world, bearer

OPENAPI = json.loads((Path(__file__).parents[2] / "api" / "openapi.json").read_text(encoding="utf-8"))
OPERATIONS = [(method, path) for path, methods in OPENAPI["paths"].items() for method in methods]
EXAMPLES = int(os.environ.get("POWERLAB_SCHEMATHESIS_EXAMPLES", "12"))
FEW = 4
schemathesis.serializer.alias("application/partial-upload", "application/octet-stream")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with access_world(tmp_path_factory.mktemp("described")) as made:
        yield made


@pytest.fixture(scope="module")
def described(world: World) -> Any:
    """Return the description as the server itself gives it, with identifiers that it knows in every other path."""
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", world.client.app)

    @schema.hook
    def map_path_parameters(_context: Any, parameters: dict[str, Any] | None) -> dict[str, Any] | None:
        return parameters and {
            name: world.ids[name] if name in world.ids and len(str(value)) % 4 else value
            for name, value in parameters.items()
        }

    return schema


@pytest.mark.parametrize("examples", [FEW, pytest.param(EXAMPLES, marks=pytest.mark.campaign(minutes=1))])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_answer_is_one_that_the_description_promises(
    described: Any, world: World, method: str, path: str, examples: int
) -> None:
    operation = described[path][method]
    roles = {role for one in operation.definition.raw.get("security", []) for said in one.values() for role in said}
    headers = bearer(world.tokens["agent" if roles == {"agent"} else "configured"])

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(case=operation.as_strategy() | operation.as_strategy(GenerationMode.NEGATIVE))
    def ask(case: Any) -> None:
        reply = case.call(headers=headers)
        case.validate_response(reply, checks=CHECKS)

    ask()
