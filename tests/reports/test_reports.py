"""Reports: what they say, that they need nothing from elsewhere, and what happens where they cannot be made."""

from __future__ import annotations

import argparse
import errno
import re
import shlex
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab import cli
from powerlab.analysis.sets import RunSet
from powerlab.cli.arguments.plan import add_plan_arguments, plan_from
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Metric
from powerlab.domain.rigour import LEVELS, Rigour
from powerlab.domain.run import Verdict
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Preparation, Scenario
from powerlab.reports import chromium, files
from powerlab.reports.blocks import Document
from powerlab.reports.comparison import ReportedSet, comparison_report
from powerlab.reports.figures.palette import DARK, LIGHT, PAGE, css_variables
from powerlab.reports.figures.scale import Scale, ticks
from powerlab.reports.files import write_report
from powerlab.reports.html import html_document
from powerlab.reports.latex import latex_document
from powerlab.reports.markdown import markdown_document
from powerlab.reports.reproduce import profile_command
from powerlab.reports.subject import Subject
from powerlab.reports.sweep import sweep_report
from recorded_sweep import recorded_sweep
from server_examples import capabilities, device

HOSTILE = "<script>alert('x')</script> & \"50 %\" | _a_ \\ $#"


def subject(speed: float = 1.0, **changes: object) -> Subject:
    swept = recorded_sweep("5eed0000-0000-4000-8000-000000000001" if speed == 1 else "aaed0000-1", speed)
    whole = Subject(
        sweep_id=swept.sweep_id,
        device_name="bench",
        simulated=False,
        plan=swept.plan,
        runs=swept.runs,
        device=device(),
    )
    return replace(whole, **changes)


@pytest.fixture(scope="module")
def document() -> Document:
    return sweep_report(subject())


class Page(HTMLParser):
    """Reads a page, insisting that every element is closed, and notes what it would fetch."""

    VOID = frozenset({"meta", "br", "link", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        self.tags.append(tag)
        self.ids += [said["id"]] if "id" in said else []
        self.links += [said["href"]] if tag == "a" else []
        self.fetched += [value for name, value in attrs if name in {"src", "srcset", "data", "action"}]
        self.fetched += [tag] if tag in {"script", "link", "iframe", "object"} else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_a_page_needs_nothing_from_elsewhere(document):
    text = html_document(document)
    page = Page(text)
    assert page.fetched == []
    assert "url(" not in text
    assert "@import" not in text
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert page.tags.count("svg") == 4
    assert len(text) < 100_000


def test_a_page_fits_dark_light_and_paper(document):
    text = html_document(document)
    for words in (css_variables(LIGHT), css_variables(DARK), "prefers-color-scheme: dark", "@media print"):
        assert words in text


def test_every_format_says_the_same_answer(document):
    figures = ("winner", "measured", "48.", "95 % interval")
    page = Page(html_document(document)).words
    markdown = markdown_document(document, {one.name: "x.svg" for one in document.pictures})
    for text in (page, markdown):
        for words in (*figures, "beats 1 thread", "powerlab profile resnet50 --threads 1,2 --batch 4", "GUM"):
            assert words in text, words
    assert r"\pm" in latex_document(document, "x")


def test_names_are_never_markup():
    made = sweep_report(subject(device_name=HOSTILE))
    page = Page(html_document(made))
    assert "script" not in page.tags
    assert HOSTILE in page.words
    markdown = markdown_document(made, dict.fromkeys([one.name for one in made.pictures], "x"))
    assert not re.search(r"(?<!\\)<script", re.sub(r"```.*?```", "", markdown, flags=re.DOTALL))
    body = [line for line in latex_document(made, "x").splitlines() if not line.startswith("%")]
    assert not any(re.search(r"(?<!\\)[#%]", line) for line in body)


def test_latex_is_balanced_and_has_as_many_cells_as_columns(document):
    text = latex_document(document, "sweep")
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") == 3
    for table in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        columns, body = table
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert rows
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {len(columns)}
    labels = re.findall(r"\\label\{([^}]*)\}", text)
    assert len(labels) == len(set(labels))
    assert r"\paragraph{Method}" in text


def test_pictures_are_drawn_alike_in_any_colours(document):
    for picture in document.pictures:
        shapes = []
        for palette in (LIGHT, DARK, PAGE):
            drawn = ElementTree.fromstring(picture.draw(palette))
            shapes.append([(one.tag, one.get("x"), one.get("points"), one.text) for one in drawn.iter()])
        assert shapes[0] == shapes[1] == shapes[2]
        assert "var(" not in picture.draw(LIGHT)


def _without_power(metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    return tuple(one for one in metrics if not re.search("power|energy|efficiency", one.name))


def test_power_that_nobody_measured_is_said_and_not_drawn():
    runs = tuple(
        replace(
            run, metrics=tuple(one for one in run.metrics if not re.search("power|energy|effic", one.name)), total=None
        )
        for run in recorded_sweep().runs
    )
    made = sweep_report(subject(runs=runs))
    assert [picture.name for picture in made.pictures] == ["latency-threads"]
    words = Page(html_document(made)).words
    assert "Power was not recorded" in words
    assert "nothing: no power source could be read" in words
    assert "0 W" not in words


def test_a_simulated_board_says_so_at_the_top():
    made = sweep_report(subject(simulated=True, device_name="simulated-jetson-nano", device=None))
    assert "every figure is simulated" in made.lead
    assert "--board jetson-nano" in html_document(made)


def test_a_sweep_without_usable_runs_is_no_report():
    failed = tuple(replace(run, verdict=Verdict.FAILED, metrics=()) for run in recorded_sweep().runs)
    with pytest.raises(PowerlabError, match=r"no usable runs \(6 failed\)"):
        sweep_report(subject(runs=failed))
    with pytest.raises(PowerlabError, match="no runs yet"):
        sweep_report(subject(runs=()))


def a_set(label: str, whole: Subject, threads: int | None = None) -> ReportedSet:
    """Return a whole sweep, or its runs with so many threads."""
    runs = tuple(run for run in whole.runs if threads in {None, run.point.threads})
    devices = frozenset({(whole.device_name, whole.simulated)})
    return ReportedSet(runs=RunSet(label=label, runs=runs, devices=devices), sweeps=(whole,))


def test_two_sweeps_are_compared():
    made = comparison_report([a_set("before", subject()), a_set("after", subject(1.5))])
    page = Page(html_document(made))
    assert "Of 2 points of after: better at 2." in page.words
    assert "Best throughput over the 2 points in common: after;" in page.words
    assert "all 2 points" in page.words
    assert "one device" in page.words
    assert "powerlab report before after" in page.words
    assert len(page.ids) == len(set(page.ids))
    names = [picture.name for picture in made.pictures]
    assert len(names) == len(set(names)) == 8
    assert made.citations.count("@misc") == 2


def test_sets_of_one_sweep_and_of_another_device_are_compared_in_every_format():
    faster = subject(1.5, device_name="orin")
    sets = [a_set("S:threads=1", subject(), 1), a_set("S:threads=2", subject(), 2), a_set("T:threads=2", faster, 2)]
    made = comparison_report(sets, ["threads"], ["latency_p50_ms"])
    markdown = markdown_document(made, {one.name: f"{one.name}.svg" for one in made.pictures})
    for text in (Page(html_document(made)).words, markdown):
        assert "Best median latency: T:threads=2;" in text
        assert "S:threads=2, T:threads=2 against S:threads=1, 1 point in common" in text
        assert "left out of the ratios of S:threads=2, which" in text
        assert "powerlab report S:threads=1 S:threads=2 T:threads=2 --ignore threads" in text
        assert "Throughput, img/s" not in text
    assert "S:threads=2" in latex_document(made, "x")
    assert made.citations.count("@misc") == 2


def test_a_set_without_usable_runs_is_not_compared():
    failed = subject(1.5, runs=tuple(replace(run, verdict=Verdict.FAILED, metrics=()) for run in recorded_sweep().runs))
    with pytest.raises(PowerlabError, match=r"after has no usable runs \(6 failed\)"):
        comparison_report([a_set("before", subject()), a_set("after", failed)])


def test_sweeps_without_a_common_point_are_not_compared():
    moved = tuple(replace(run, point=replace(run.point, mode="x")) for run in recorded_sweep("aaed0000-2").runs)
    sets = [a_set("before", subject()), a_set("after", subject(runs=moved))]
    with pytest.raises(PowerlabError, match="no point in common"):
        comparison_report(sets)
    assert comparison_report(sets, ["mode"]).sections


def test_a_report_without_a_valid_run_says_so_first():
    flagged = tuple(replace(run, verdict=Verdict.FLAGGED) for run in recorded_sweep().runs)
    made = sweep_report(subject(runs=flagged))
    assert made.lead.startswith("No run is valid")
    assert "No run is valid" in html_document(made).partition("</header>")[0]
    assert "No run" not in sweep_report(subject()).lead


def test_without_chromium_a_folder_says_what_is_missing(document, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "find_chromium", lambda: None)
    written = write_report(document, tmp_path / "made", "x")
    assert "apt install chromium" in written.left_out
    assert {path.suffix for path in written.paths} == {".html", ".md", ".tex", ".bib", ".svg"}
    page = (tmp_path / "made" / "report.md").read_text()
    for name in re.findall(r"\]\((figures/[^)]*)\)", page):
        assert (tmp_path / "made" / name).is_file()


def test_without_chromium_a_pdf_is_refused_before_anything_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(files, "find_chromium", lambda: None)
    assert cli.main(["report", "none", "--output", str(tmp_path / "x.pdf")]) == cli.EXIT_USAGE
    assert "apt install chromium" in capsys.readouterr().err


def test_a_browser_that_fails_is_told_in_a_sentence(tmp_path, monkeypatch):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(chromium, "find_chromium", lambda: str(program))
    with pytest.raises(PowerlabError, match=r"made no \.pdf \(broken\)"):
        chromium.pdf_of("<p>page</p>")


def test_an_unknown_ending_is_refused(document, tmp_path):
    with pytest.raises(PowerlabError, match=r"\.docx"):
        write_report(document, tmp_path / "x.docx", "x")


def test_a_full_disk_leaves_the_old_report(document, tmp_path, monkeypatch):
    old = tmp_path / "x.html"
    old.write_text("old")

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_whole", full)
    with pytest.raises(PowerlabError, match="No space left"):
        write_report(document, old, "x")
    assert old.read_text() == "old"


plans = st.builds(
    SweepPlan,
    models=st.lists(st.sampled_from(["resnet50", "my model.onnx", "a;b.onnx"]), min_size=1, unique=True).map(tuple),
    threads=st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True).map(tuple),
    batch_sizes=st.lists(st.integers(1, 64), min_size=1, max_size=2, unique=True).map(tuple),
    modes=st.sampled_from([("current",), ("MAXN", "MODE_15W"), ("cores=2+governor=powersave",)]),
    scenarios=st.sampled_from([(Scenario.SINGLE_STREAM,), (Scenario.OFFLINE, Scenario.SERVER)]),
    spin_us=st.sampled_from([(None,), (0, 50)]),
    cores=st.sampled_from([("",), ("0-3", "0,2")]),
    preparation=st.sampled_from(Preparation),
    latency_bound_ms=st.sampled_from([0.0, 12.5]),
    rigour=st.sampled_from(Rigour),
    repeats=st.integers(3, 9),
    seed=st.integers(0, 99),
    duration_s=st.floats(0.1, 1000),
    min_inferences=st.integers(1, 5000),
    until_percent=st.sampled_from([0.0, 1.5]),
    search_percent=st.sampled_from([0.0, 1.0, 2.5]),
    warm_up_s=st.sampled_from([0.0, 0.5, *(level.warm_up_s for level in LEVELS.values())]),
    longest_warm_up_s=st.sampled_from([1.0, 10.0, 600.0]),
    idle_s=st.floats(0, 100),
    cool_down_s=st.sampled_from([0.0, 60.0]),
    max_temperature_c=st.sampled_from([None, 85.5]),
    longest_cooling_s=st.sampled_from([900.0, 30.0]),
)


@given(plans)
def test_the_command_of_a_plan_makes_that_plan(plan):
    parser = argparse.ArgumentParser()
    add_plan_arguments(parser, "models")
    words = shlex.split(profile_command(plan))
    assert words[:2] == ["powerlab", "profile"]
    made = plan_from(parser.parse_args(words[2:]), device(), capabilities())
    different = [one.name for one in fields(SweepPlan) if getattr(made, one.name) != getattr(plan, one.name)]
    assert different == []


@given(st.floats(1e-9, 1e12), st.integers(3, 9))
def test_ticks_are_round_few_and_reach_the_end(end, most):
    found = ticks(end, most)
    step = found[1]
    assert found[0] == 0
    assert found[-1] >= end * (1 - 1e-6)
    assert 2 <= len(found) <= most + 1
    assert f"{step:.0e}"[0] in "125"
    assert found[-2] < end


@given(st.floats(-10, 10), st.floats(0.1, 10))
def test_a_value_stays_on_its_axis(value, end):
    assert 50 <= Scale(end=end, first=250, last=50).at(value) <= 250
