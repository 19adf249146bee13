"""The pages of models: the list, and a graph whose colours are costs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from layer_profiles import layer_profile
from powerlab.networks.outline import network_names, outline
from powerlab_dashboards.graphs.layout import HEIGHT_PX, WIDTH_PX, picture
from powerlab_dashboards.graphs.nodes import SHADES, cost_words, of_outline, of_profile, shade
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf
from tests.dashboards.page_tree import parse


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    """Return what each node of a graph reads; all of it was made before."""
    count = draw(st.integers(0, 25))
    return [sorted(draw(st.sets(st.integers(0, node - 1), max_size=3))) if node else [] for node in range(count)]


@given(graphs())
def test_nodes_stand_below_what_they_read_and_none_covers_another(inputs: list[list[int]]) -> None:
    made = picture(inputs)
    for node, sources in enumerate(inputs):
        assert all(made.places[source][1] + HEIGHT_PX < made.places[node][1] for source in sources)
    assert len(set(made.places)) == len(inputs)
    for x, y in made.places:
        assert x + WIDTH_PX < made.width_px
        assert y + HEIGHT_PX < made.height_px
    assert made.edges.count("M") == sum(map(len, inputs))


def test_without_a_profile_costs_are_multiply_adds() -> None:
    nodes = of_outline(outline("resnet50"), None)
    assert sum(node.share for node in nodes) == pytest.approx(1)
    assert cost_words(nodes[0], timed=False) == "118 M"
    assert (nodes[0].operators, nodes[0].shape) == ("Conv + BatchNorm + Relu", "64×112×112")


def test_with_a_profile_a_layers_time_belongs_to_the_node_that_computes_it() -> None:
    profile = layer_profile()
    first = replace(profile.layers[1], name="conv_0", nodes=("conv_0", "batchnormalization_1", "relu_2"))
    both = replace(profile.layers[2], name="conv_12", nodes=("conv_12", "batchnormalization_13", "add_14"))
    nodes = of_outline(outline("resnet50"), replace(profile, layers=(first, both)))
    times = {node.name: node.cost for node in nodes if node.cost is not None}
    assert times == {"conv_0": first.time.value, "conv_12": both.time.value, "add_14": 0.0}
    assert cost_words(nodes[0], timed=True) == "2.00 ms"


def test_layers_of_an_unknown_network_are_a_chain() -> None:
    profile = layer_profile()
    nodes = of_profile(profile)
    assert [node.name for node in nodes] == [layer.name for layer in profile.layers]
    assert [node.inputs for node in nodes] == [(), *((place,) for place in range(len(nodes) - 1))]


def test_the_costliest_node_has_the_last_shade_and_nothing_the_first() -> None:
    nodes = of_outline(outline("alexnet"), None)
    most = max(node.share for node in nodes)
    shades = [shade(node, most) for node in nodes]
    assert max(shades) == SHADES - 1
    assert {one for one, node in zip(shades, nodes, strict=True) if node.share == 0} == {0}
    assert all(one > 0 for one, node in zip(shades, nodes, strict=True) if node.share > 0)


def test_the_list_has_the_zoo_and_what_was_measured(client: TestClient, shelf: Shelf) -> None:
    shelf.add_sweep(plausible.laptop(), plausible.plan(models=("/home/me/own.onnx",), modes=("current",)))
    page = parse(client.get("/models").text).one("main")
    rows = [[cell.text for cell in row.all("th", "td")] for row in page.one("tbody").all("tr")]
    assert {row[0] for row in rows} == {*network_names(), "own.onnx"}
    assert rows[0][:2] == ["own.onnx", "file on a device"]
    assert rows[0][4] == "12"  # no size: none of these was uploaded
    assert client.get("/models//home/me/own.onnx").status_code == 200


@pytest.mark.parametrize("name", network_names())
def test_every_network_has_a_page_of_bearable_size(name: str, client: TestClient) -> None:
    for view in ("graph", "table"):
        answer = client.get(f"/models/{name}", params={"view": view})
        assert answer.status_code == 200
        assert len(answer.content) < 150_000
    assert len(re.findall('<g id="node-', client.get(f"/models/{name}").text)) == len(outline(name))


def test_a_profile_colours_its_model_and_says_where_it_was_made(client: TestClient, shelf: Shelf) -> None:
    device = shelf.add_sweep(plausible.xavier(), plausible.plan()).device_id
    shelf.add_layers(device, layer_profile())
    text = " ".join(parse(client.get("/models/resnet50").text).one("main").text.split())
    assert "Coloured by the time of each layer on" in text
    assert "simulated" in text


def test_a_file_without_a_profile_says_how_to_get_one(client: TestClient, shelf: Shelf) -> None:
    shelf.add_sweep(plausible.laptop(), plausible.plan(models=("own.onnx",), modes=("current",)))
    assert "powerlab layers" in parse(client.get("/models/own.onnx").text).one("main").text


def test_a_model_that_is_not_there_is_not_found(client: TestClient) -> None:
    answer = client.get("/models/resnet51")
    assert answer.status_code == 404
    assert "There is no model named resnet51." in answer.text
