"""The shipped dashboards, as far as they can be judged without Grafana; what they ask is asked in test_compose.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grafana_boards import FILES, FOLDER, Query, panels, queries, read

UNITS = {
    "_watts": "watt",
    "_joules": "joule",
    "_celsius": "celsius",
    "_bytes": "bytes",
    "_seconds": "s",
    "_seconds_bucket": "s",
    "_images_per_joule": "suffix: img/s/W",
    "_images_per_second": "suffix: img/s",
    "_cpu_seconds_total": "percentunit",
}
"""By the end of a metric's name, what Grafana calls its unit."""


def test_there_are_three_with_a_name_of_their_own() -> None:
    documents = [read(path) for path in FILES]
    assert [path.stem for path in FILES] == ["device", "fleet", "service"]
    assert [document["uid"] for document in documents] == ["powerlab-device", "powerlab-fleet", "powerlab-service"]
    assert len({document["title"] for document in documents}) == 3
    assert all(document["schemaVersion"] >= 36 and document["description"] for document in documents)
    assert all("id" not in document for document in documents)  # Grafana gives it; one of ours could be another's


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_panels_are_told_apart_and_do_not_overlap(path: Path) -> None:
    every = list(panels(read(path)))
    ids = [panel["id"] for panel in every]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in every:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_query_goes_to_the_prometheus_that_the_reader_chooses(path: Path) -> None:
    document = read(path)
    variables = {variable["name"]: variable for variable in document["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    asked = [panel for panel in panels(document) if panel["type"] != "row"]
    assert asked
    for panel in asked:
        assert panel["datasource"] == chosen
        assert panel["targets"]
        assert all(target["datasource"] == chosen for target in panel["targets"])
        references = [target["refId"] for target in panel["targets"]]
        assert len(references) == len(set(references))
    for name in set(re.findall(r"\$(\w+)", str([panel["targets"] for panel in asked]))):
        assert name in variables or name.startswith("__")


@pytest.mark.parametrize("query", queries(), ids=lambda query: f"{query.board}: {query.panel}")
def test_a_panel_s_unit_is_that_of_what_it_shows(query: Query) -> None:
    if re.search(r"\bcount\(", query.expression):
        assert query.unit == "short"
        return
    names = set(re.findall(r"\b(?:powerlab|process|scrape)_\w+", query.expression)) - {"powerlab_agent_info"}
    for name in names:
        ending = max((end for end in UNITS if name.endswith(end)), key=len, default=None)
        if ending is not None:
            assert query.unit == UNITS[ending], f"{name} in {query.unit}"
        else:
            assert query.unit in {"short", "reqps", "percentunit"}, f"{name} in {query.unit}"


def test_figures_of_different_provenance_stay_apart() -> None:
    shown = [query for query in queries() if re.search(r"newest_run_(?!timestamp)", query.expression)]
    assert len(shown) >= 8
    assert [query for query in shown if "provenance" not in query.expression] == []


def test_replicas_are_not_added_up() -> None:
    """What comes from the database is the same at every replica."""
    for query in queries():
        if re.search(r"powerlab_(device|jobs|newest|oldest|leases)", query.expression):
            assert re.search(r"\b(max|min)\b", query.expression), query.expression


def test_grafana_finds_the_dashboards_where_compose_puts_them(root: Path) -> None:
    compose = (root / "docker-compose.yml").read_text(encoding="utf-8")
    provider = (FOLDER / "provisioning" / "dashboards" / "powerlab.yml").read_text(encoding="utf-8")
    (path,) = re.findall(r"path: (\S+)", provider)
    assert f"./dashboards/grafana/dashboards:{path}:ro" in compose
    assert "./dashboards/grafana/provisioning:/etc/grafana/provisioning:ro" in compose
    source = (FOLDER / "provisioning" / "datasources" / "prometheus.yml").read_text(encoding="utf-8")
    (address,) = re.findall(r"url: \$\{(\w+)\}", source)
    assert f"{address}: http://prometheus:9090" in compose
    (interval,) = re.findall(r"timeInterval: (\S+)", source)
    assert f"scrape_interval: {interval}" in (FOLDER.parent / "prometheus" / "prometheus.yml").read_text()
