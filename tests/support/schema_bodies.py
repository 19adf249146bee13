"""Requests made up from the API's own description: plausible ones, and ones with nonsense somewhere in them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NONSENSE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**30, -(10**30), 10**400, 2**31, 2**63, "nan", "inf", "1e999", "\x00", "x" * 1001, ""]),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
)


def values(schema: dict[str, Any], components: dict[str, Any], nonsense: float = 0.03) -> st.SearchStrategy[Any]:
    """Return a strategy for values that fit a schema, but for a part of about ``nonsense`` that fits nothing."""

    def inner(part: dict[str, Any]) -> st.SearchStrategy[Any]:
        return values(part, components, nonsense)

    fitting = _fitting(schema, inner, components)
    often = max(1, round(1 / nonsense) - 1)
    return st.integers(0, often).flatmap(lambda number: NONSENSE if number == often else fitting)


def _fitting(schema: dict[str, Any], inner: Any, components: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        return inner(components[schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return st.one_of([inner(one) for one in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    return _typed(schema, inner)


def _typed(schema: dict[str, Any], inner: Any) -> st.SearchStrategy[Any]:
    kind = schema["type"]
    if kind == "object":
        required = schema.get("required", [])
        parts = {name: inner(part) for name, part in schema.get("properties", {}).items()}
        return st.fixed_dictionaries(
            {name: part for name, part in parts.items() if name in required},
            optional={name: part for name, part in parts.items() if name not in required},
        )
    if kind == "array":
        if "prefixItems" in schema:
            return st.tuples(*map(inner, schema["prefixItems"])).map(list)
        return st.lists(inner(schema["items"]), max_size=3)
    simple: dict[str, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(["current", "resnet50", "builtin", "fp32", "board-9"]) | st.text(max_size=8),
        "integer": st.integers(0, 4),
        "number": st.floats(0, 10),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return simple[kind]
