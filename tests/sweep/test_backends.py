"""The engines under test: what a plan may name is what a worker can load."""

from __future__ import annotations

import importlib

import pytest

from powerlab.backends.registry import BACKENDS, backend_module
from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import ENGINES


def test_every_engine_a_plan_may_name_has_a_module_that_loads_models():
    assert tuple(BACKENDS) == tuple(ENGINES)
    for name in ENGINES:
        assert callable(importlib.import_module(backend_module(name)).load)


def test_an_engine_that_is_not_known_is_refused_with_those_that_are():
    with pytest.raises(PowerlabError, match=r"the engine 'abacus' is not known; choose one of: builtin, onnxruntime, "):
        backend_module("abacus")
