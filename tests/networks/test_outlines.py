"""The outlines of networks are those of the zoo, and say what people expect of them."""

from __future__ import annotations

import pytest

import write_networks
from powerlab.engine.frontend.zoo import ZOO
from powerlab.networks.outline import network_names, outline


@pytest.mark.parametrize("name", ZOO)
def test_an_outline_is_that_of_the_network(name: str) -> None:
    stored = (write_networks.FOLDER / f"{name}.json").read_text()
    assert stored == write_networks.written(name), "run: make networks"


def test_every_network_has_one() -> None:
    assert network_names() == tuple(sorted(ZOO))
    with pytest.raises(KeyError):
        outline("resnet51")


@pytest.mark.parametrize("name", ZOO)
def test_nodes_read_what_was_made_before_them_and_none_is_lost(name: str) -> None:
    nodes = outline(name)
    graph = ZOO[name].build((1, *ZOO[name].input_shape))
    assert sorted(member for node in nodes for member in node.members) == sorted(node.name for node in graph.nodes)
    assert all(max(node.inputs, default=-1) < place for place, node in enumerate(nodes))


def test_resnet50_is_as_published() -> None:
    nodes = outline("resnet50")
    assert sum(node.macs for node in nodes) == pytest.approx(4.1e9, rel=0.02)  # with the stride in the 3×3 convolution
    assert nodes[0].operators == ("Conv", "BatchNormalization", "Relu")
    assert nodes[0].shape == (1, 64, 112, 112)
    assert sum("Add" in node.operators for node in nodes) == 16
