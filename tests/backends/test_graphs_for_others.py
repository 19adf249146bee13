"""Other engines get a graph of operators that they have, whatever the built-in engine joins for itself."""

from __future__ import annotations

import pytest
from backend_answers import loaded

from powerlab.backends.packages import installed_version
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.passes import optimise, optimise_for_others
from requires import missing

MODEL = "mobilenetv2@64"


def operators(graph):
    return {node.op_type for node in graph.nodes}


def test_chains_are_left_apart():
    graph = load_graph(MODEL, batch_size=1)
    assert "Chain" in operators(optimise(graph))
    assert "Chain" not in operators(optimise_for_others(graph))


@pytest.mark.parametrize("engine", ["litert", "ncnn"])
def test_mobile_networks_run(engine):
    if installed_version(engine) is None:
        missing(f"{engine} is not installed (pip install 'powerlab[peers]')")
    backend = loaded(engine, MODEL)
    (output,) = backend.run(backend.inputs(1)).values()
    assert output.shape[0] == 1
