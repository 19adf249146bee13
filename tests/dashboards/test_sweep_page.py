"""The sweep's page: the verdict, the picker, and the table that a reader arranges by the address alone."""

from __future__ import annotations

import csv
import dataclasses
import io
import re

import pytest
from starlette.testclient import TestClient

from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.run import Finding, Verdict
from powerlab_dashboards.charts.base import NoChart
from powerlab_dashboards.charts.choice import Choice
from powerlab_dashboards.charts.registry import SWEEP_CHARTS
from powerlab_dashboards.charts.theme import View
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf
from tests.dashboards.page_tree import parse


def words(html: str) -> str:
    return parse(html).text


def summaries(**changes: object) -> tuple[PointSummary, ...]:
    return summarise(plausible.runs(plausible.xavier(), plausible.plan(**changes), "s"))


def names(client: TestClient, address: str) -> list[str]:
    """Return the points of the table, in its order."""
    table = re.search(r'id="points".*?</table>', client.get(address).text, flags=re.DOTALL)
    return re.findall(r'<th scope="row"><a [^>]*>([^<]+)</a>', table[0]) if table else []


class TestVerdict:
    def test_one_line_says_the_answer_before_anything_else(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.xavier(), plausible.plan())
        html = client.get(f"/sweeps/{sweep.id}").text
        line = re.search(r'<p class="verdict-line">([^<]+)</p>', html)
        assert line is not None
        assert line[1].startswith(
            "resnet50 on xavier-sim needs the least energy with batch 4, 2 threads, mode MODE_15W: "
        )
        assert line[1].endswith("J/img (simulated). It beats every other point.")
        assert html.index('class="verdict-line"') < html.index('class="answer"')

    def test_without_power_it_is_the_fastest(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.bare(), plausible.plan(modes=("current",)))
        assert "resnet50 on no-sensors is fastest with batch 4, 2 threads: " in words(
            client.get(f"/sweeps/{sweep.id}").text
        )

    def test_too_few_repeats_offer_three_more(self, shelf: Shelf, client: TestClient) -> None:
        plan = plausible.plan(modes=("current",), batch_sizes=(1,))
        runs = [
            dataclasses.replace(run, verdict=Verdict.FLAGGED) if run.repeat else run
            for run in plausible.runs(plausible.laptop(), plan, "s")
        ]
        sweep = shelf.add_sweep(plausible.laptop(), plan, made=runs)
        (card, *_) = [
            one
            for one in parse(client.get(f"/sweeps/{sweep.id}").text).all("div")
            if one.attributes.get("class") == "answer"
        ]
        assert "not enough data" in card.text
        assert [form.attributes["action"] for form in card.all("form")] == [f"/sweeps/{sweep.id}/repeat"]


class TestPicker:
    def test_nothing_is_picked_until_somebody_asks(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.xavier(), plausible.plan())
        html = client.get(f"/sweeps/{sweep.id}").text
        assert 'class="pick"' not in html
        assert 'class="barred"' not in html

    def test_bounds_grey_out_points_and_name_the_best_what_they_cost_and_the_command(
        self, shelf: Shelf, client: TestClient
    ) -> None:
        sweep = shelf.add_sweep(plausible.xavier(), plausible.plan())
        html = client.get(f"/sweeps/{sweep.id}", params={"goal": "energy", "p99": "120ms"}).text
        (picked,) = [one for one in parse(html).all("div") if one.attributes.get("class") == "pick"]
        assert "batch 1, 2 threads, mode" in picked.text
        assert "Asking for 99th percentile latency of at most 120 ms " in picked.text
        command = f"sudo powerlab apply {sweep.id} --server http://testserver --for energy --p99 120ms"
        assert f'data-copy="{command}"' in html
        kept = [
            summary
            for summary in summarise(sweep.runs)
            if (figure := summary.metric("latency_p99_ms")) and figure.high is not None and figure.high <= 120
        ]
        assert html.count('class="barred"') == 12 - len(kept) > 0
        assert html.count("p99 missed") + html.count("p99 not sure") == 12 - len(kept)

    def test_a_bound_that_nobody_keeps_says_by_how_much(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.xavier(), plausible.plan())
        text = words(client.get(f"/sweeps/{sweep.id}?power=1W").text)
        assert "No point surely keeps every bound: power while running of at most 1 W is missed by" in text
        assert "12 of 12 points are outside the bounds" in text

    def test_a_bound_that_makes_no_sense_gets_a_sentence_and_greys_nothing(
        self, shelf: Shelf, client: TestClient
    ) -> None:
        sweep = shelf.add_sweep(plausible.xavier(), plausible.plan())
        answer = client.get(f"/sweeps/{sweep.id}", params={"p99": "<b>soon"})
        assert answer.status_code == 200
        assert "Invalid p99 '<b>soon': give a number and a unit, such as 30ms." in words(answer.text)
        assert 'class="barred"' not in answer.text

    def test_it_is_one_form_whose_fields_stand_in_the_address(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.xavier(), plausible.plan())
        page = parse(client.get(f"/sweeps/{sweep.id}?power=12W&metric=power_w&x=batch&y=threads").text)
        chosen = {
            select.attributes["name"]: option.attributes["value"]
            for select in page.all("select")
            for option in select.all("option")
            if "selected" in option.attributes
        }
        assert {name: chosen[name] for name in ("metric", "x", "y")} == {
            "metric": "power_w",
            "x": "batch",
            "y": "threads",
        }
        fields = {field.attributes.get("name"): field.attributes for field in page.all("input")}
        assert fields["power"]["value"] == "12W"
        assert fields["words"]["form"] == "choices"


class TestTable:
    @pytest.fixture
    def address(self, shelf: Shelf) -> str:
        return f"/sweeps/{shelf.add_sweep(plausible.xavier(), plausible.plan()).id}"

    def test_a_name_says_what_varied_and_leads_to_the_points_runs(self, address: str, client: TestClient) -> None:
        html = client.get(address).text
        link = re.search(r'<th scope="row"><a href="([^"]+)">batch 1, 1 thread, mode MAXN</a>', html)
        assert link is not None
        page = words(client.get(link[1]).text)
        assert "resnet50, batch 1, 1 thread, mode MAXN" in page
        assert "powerlab profile resnet50 --threads 1 --modes MAXN --seed 7" in page
        assert "--board jetson-agx-xavier" in page
        assert page.count(", #") == 3

    def test_words_find_points(self, address: str, client: TestClient) -> None:
        assert names(client, f"{address}?words=2+threads+maxn") == [
            "batch 1, 2 threads, mode MAXN",
            "batch 4, 2 threads, mode MAXN",
        ]
        assert "No point has these words in its name." in words(client.get(f"{address}?words=nowhere").text)

    @pytest.mark.parametrize("sort", ["power_w", "-throughput_img_per_s", "threads", "-mode", "runs", "nonsense", "-"])
    def test_every_column_sorts_and_no_point_is_lost(self, address: str, client: TestClient, sort: str) -> None:
        assert sorted(names(client, f"{address}?sort={sort}")) == sorted(names(client, address))

    def test_the_order_is_that_of_the_figures(self, address: str, client: TestClient) -> None:
        html = client.get(f"{address}?sort=-power_w&column=power_w").text
        keys = [
            float(key) for key in re.findall(r'data-key="([^"]+)"', html.split('id="points"')[1].split("</table>")[0])
        ]
        assert len(keys) == 12
        assert keys == sorted(keys, reverse=True)
        assert re.search(r'aria-sort="descending"><a class="sort"[^>]*>Power<', html)

    def test_a_reader_chooses_columns(self, address: str, client: TestClient) -> None:
        html = client.get(f"{address}?column=threads&column=idle_power_w").text
        head = html.split('id="points"')[1].split("</thead>")[0]
        assert re.findall(r'class="sort"[^>]*>([^<]+)<', head) == ["Point", "threads", "Idle power", "Runs"]

    @pytest.mark.campaign
    def test_many_points_come_in_parts_and_the_page_stays_light(
        self, shelf: Shelf, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(plausible, "traces", lambda *_: [])
        plan = plausible.plan(threads=(1, 2), batch_sizes=tuple(range(1, 19)), repeats=3)
        sweep = shelf.add_sweep(plausible.xavier(), plan)
        first = client.get(f"/sweeps/{sweep.id}")
        assert len(first.content) < 150_000
        assert "Part 1 of 3." in words(first.text)
        found = [name for number in range(1, 4) for name in names(client, f"/sweeps/{sweep.id}?page={number}")]
        assert len(set(found)) == 108
        assert names(client, f"/sweeps/{sweep.id}?page=99") == found[100:]

    def test_the_points_are_a_csv_file(self, address: str, client: TestClient) -> None:
        answer = client.get(f"{address}/points.csv?words=maxn&sort=-power_w")
        assert answer.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert len(rows) == 4
        assert [row["mode"] for row in rows] == ["MAXN"] * 4
        powers = [float(row["power_w"]) for row in rows]
        assert powers == sorted(powers, reverse=True)
        assert all(row["power_w_provenance"] == "simulated" for row in rows)
        assert all(float(row["power_w_low"]) < float(row["power_w"]) < float(row["power_w_high"]) for row in rows)
        assert client.get("/sweeps/none/points.csv").status_code == 404

    def test_runs_of_no_point_are_not_found(self, address: str, client: TestClient) -> None:
        assert client.get(f"{address}/runs?point=none").status_code == 404


def test_a_cause_that_six_rails_share_stands_there_once(shelf: Shelf, client: TestClient) -> None:
    plan = plausible.plan(modes=("current",), batch_sizes=(1,), threads=(1,))
    runs = plausible.runs(plausible.laptop(), plan, "s")
    rails = [f"ina3221:VDD_{name}" for name in ("IN", "CPU", "GPU", "SOC", "CV", "SYS5V")]
    said = tuple(
        Finding(rule="window", verdict=Verdict.FLAGGED, detail=f"{rail} updated only 3 times") for rail in rails
    )
    runs[0] = dataclasses.replace(runs[0], verdict=Verdict.FLAGGED, findings=said)
    sweep = shelf.add_sweep(plausible.laptop(), plan, made=runs)
    text = words(client.get(f"/sweeps/{sweep.id}").text)
    assert (
        text.count("updated only 3 times; likewise ina3221:VDD_CPU, ina3221:VDD_GPU") == 2
    )  # of the sweep, of the run
    assert text.count("updated only") == 2


class TestCharts:
    def test_any_figure_over_any_two_dimensions(self) -> None:
        found = summaries(models=("resnet50", "alexnet"))
        made = SWEEP_CHARTS["heatmap"].build(found, View(choice=Choice(metric="power_w", x="batch", y="threads")))
        assert not isinstance(made, NoChart)
        assert made["layout"]["xaxis"]["ticktext"] == ["1", "4"]
        assert made["layout"]["yaxis"]["ticktext"] == ["1", "2"]
        titles = [note["text"] for note in made["layout"]["annotations"] if note["text"].startswith("<b>")]
        assert "<b>resnet50, mode MAXN</b>" in titles
        assert made["layout"]["coloraxis"]["reversescale"], "less power is better, and better is darker"

    def test_a_panel_of_the_heatmap_has_only_the_columns_of_its_points(self) -> None:
        found = summaries(models=("resnet50", "alexnet"), batch_sizes=(1,))
        alone = [one for one in found if one.point.workload.model == "resnet50" or one.point.threads == 1]
        made = SWEEP_CHARTS["heatmap"].build(alone, View())
        assert not isinstance(made, NoChart)
        assert [made["layout"][axis]["ticktext"] for axis in ("xaxis", "xaxis2")] == [["1", "2"], ["1"]]
        assert [len(panel["z"][0]) for panel in made["data"]] == [2, 1]
        assert "not run" not in str(made)

    @pytest.mark.parametrize("name", ["heatmap", "throughput"])
    def test_no_chart_is_drawn_over_what_did_not_vary(self, name: str) -> None:
        only_modes = summaries(threads=(2,), batch_sizes=(1,))
        made = SWEEP_CHARTS[name].build(only_modes, View(choice=Choice(x="threads", y="batch")))
        if name == "throughput":
            assert made == NoChart("No number varied that a line could be drawn over, only: mode.")
            return
        assert not isinstance(made, NoChart)
        assert made["layout"]["xaxis"]["ticktext"] == ["MAXN", "MODE_15W", "MODE_10W"]
        assert made["layout"]["yaxis"]["ticktext"] == [""]

    def test_lines_are_drawn_over_the_batch_where_only_that_varied(self) -> None:
        made = SWEEP_CHARTS["throughput"].build(summaries(threads=(2,)), View())
        assert not isinstance(made, NoChart)
        assert made["layout"]["xaxis"]["title"]["text"] == "batch"

    def test_points_outside_the_bounds_have_no_colour_and_are_not_on_the_front(self) -> None:
        found = summaries()
        barred = {summary.point.id: "p99 missed" for summary in found if summary.point.mode == "MAXN"}
        view = View(choice=Choice(barred=barred))
        heatmap, front = (SWEEP_CHARTS[name].build(found, view) for name in ("heatmap", "pareto-front"))
        assert not isinstance(heatmap, NoChart)
        assert not isinstance(front, NoChart)
        assert heatmap["data"][0]["z"][0] == [None, None]
        assert sum("outside the bounds: p99 missed" in cell[0] for cell in heatmap["data"][0]["customdata"][0]) == 2
        grey = [trace for trace in front["data"] if trace.get("marker", {}).get("color") == view.theme.line]
        assert sum(len(trace["x"]) for trace in grey) == 4
        line = next(trace for trace in front["data"] if trace.get("name") == "Pareto front, simulated")
        assert not set(line["x"]) & {x for trace in grey for x in trace["x"]}

    def test_latency_against_energy_has_a_front_that_falls(self) -> None:
        choice = Choice(cost="energy_per_image_j", gain="latency_p99_ms")
        made = SWEEP_CHARTS["pareto-front"].build(summaries(), View(choice=choice))
        assert not isinstance(made, NoChart)
        line = next(trace for trace in made["data"] if trace.get("name") == "Pareto front, simulated")
        assert line["x"] == sorted(line["x"])
        assert line["y"] == sorted(line["y"], reverse=True)

    def test_every_point_of_every_chart_knows_where_its_runs_are(self) -> None:
        found = summaries()
        addresses = {f"/sweeps/s/runs?point={summary.point.id}" for summary in found}
        view = View(choice=Choice(points_at="/sweeps/s/runs?point="))
        for name, chart in SWEEP_CHARTS.items():
            made = chart.build(found, view)
            assert not isinstance(made, NoChart)
            cells = [cell for trace in made["data"] for cell in trace.get("customdata", ())]
            cells = [one for cell in cells for one in (cell if isinstance(cell[0], list) else [cell])]
            assert {address for _, address in cells} == addresses, name

    def test_of_many_points_the_fastest_have_their_latency_drawn(self) -> None:
        found = summaries(threads=(1, 2), batch_sizes=tuple(range(1, 20)))
        made = SWEEP_CHARTS["latency"].build(found, View())
        assert not isinstance(made, NoChart)
        assert "the 30 fastest of 114 points" in made["layout"]["xaxis"]["title"]["text"]
        assert len(made["layout"]["yaxis"]["ticktext"]) == 30
