"""A study's table, and what LaTeX and HTML make of it: nothing mixed, nothing lost, nothing unescaped."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.workload import Processor
from powerlab.reports.latex import escape
from powerlab.reports.text import FigureText, figure_text
from powerlab.studies.latex import latex_document
from powerlab.studies.page import html_document
from powerlab.studies.registry import STUDIES, find_study
from powerlab.studies.study import NotRepeated
from powerlab.studies.table import Repeated, column_title, compared, rows
from tests.analysis.paired_runs import point, sweep

ODD = 'a_b & 50% $x$ {c} #1 ~ ^ \\ <script>alert("&")</script> ± × é µ ≤ –'


def alexnet(threads=2, batch_size=1, **workload):
    made = point(threads)
    return replace(made, workload=replace(made.workload, model="alexnet", batch_size=batch_size, **workload))


def repeated(*points, device="bench", sweep_id="sweep", **changes):
    truth = {one: (100.0 + 10 * place, 10.0) for place, one in enumerate(points)}
    return Repeated(sweep_id=sweep_id, device=device, runs=tuple(sweep(truth, sweep_id=sweep_id, **changes)))


TEGRA = find_study("tegra-x1-alexnet")
OURS = repeated(alexnet(), alexnet(batch_size=16))


def test_published_rows_stand_first_and_ours_beside_them():
    table = rows(TEGRA, [OURS])
    assert [(row.case, row.system, bool(row.sweep_id)) for row in table] == [
        ("AlexNet, batch 1", "Tegra X1, GPU", False),
        ("AlexNet, batch 1", "Tegra X1, GPU", False),
        ("AlexNet, batch 1", "Core i7 6700K", False),
        ("AlexNet, batch 1", "bench", True),
        ("AlexNet, a large batch", "Tegra X1, GPU", False),
        ("AlexNet, a large batch", "Tegra X1, GPU", False),
        ("AlexNet, a large batch", "Core i7 6700K", False),
        ("AlexNet, a large batch", "bench", True),
    ]
    assert table[3].conditions == "fp32, batch 1, 2 threads, mode current; 3 of 3 runs valid"
    on_gpu = alexnet()
    on_gpu = replace(on_gpu, workload=replace(on_gpu.workload, processor=Processor.GPU), threads=1)
    assert rows(TEGRA, [repeated(on_gpu)])[3].conditions == "fp32, gpu, batch 1, mode current; 3 of 3 runs valid"
    assert table[3].software == "powerlab, builtin"
    assert table[3].covers == "the module"


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_no_figure_is_both_published_and_ours(study):
    models = [model for case in study.cases for model in case.models]
    ours = repeated(*(replace(alexnet(), workload=replace(alexnet().workload, model=model)) for model in models))
    for row in rows(study, [ours]):
        words = {metric.provenance for metric in row.figures if metric is not None}
        assert (words == {Provenance.PUBLISHED}) != bool(row.sweep_id)
        assert Provenance.PUBLISHED not in words or len(words) == 1


def test_a_row_of_two_provenances_says_which_is_which():
    table = rows(TEGRA, [repeated(alexnet(), provenance=Provenance.ESTIMATED)])
    assert table[3].provenance == "measured: img/s; estimated: W, img/s/W"
    assert table[0].provenance == "published"


def test_a_point_without_a_usable_run_has_a_row_without_figures():
    runs = tuple(replace(run, metrics=()) for run in OURS.runs)
    table = rows(TEGRA, [replace(OURS, runs=runs)])
    assert table[3].figures == (None, None, None)
    assert table[3].provenance == "no figure"
    (line,) = (line for line in latex_document(TEGRA, table[3:4], ()).splitlines() if "bench" in line)
    assert " & -- & -- & -- & " in line


def test_a_file_that_stands_for_a_network_is_in_its_place():
    ours = repeated(replace(alexnet(), workload=replace(alexnet().workload, model="nets/alex.onnx")))
    assert not any(row.sweep_id for row in rows(TEGRA, [ours]))
    assert any(row.sweep_id for row in rows(TEGRA, [ours], {"alexnet": "nets/alex.onnx"}))


def test_our_own_points_are_compared_where_the_study_compares_them():
    both = repeated(alexnet(), alexnet(engine="onnxruntime"))
    assert compared(TEGRA, [both]) == ()
    matches = compared(find_study("dlbench"), [both])
    assert {match.metric for match in matches} == set(find_study("dlbench").metrics)
    assert all(match.one.point.workload.engine == "onnxruntime" for match in matches)
    assert compared(find_study("dlbench"), [OURS]) == ()


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (Metric(name="power_w", value=6.0, provenance=Provenance.PUBLISHED), FigureText(value="6.0")),
        (Metric(name="power_w", value=45, provenance=Provenance.PUBLISHED), FigureText(value="45")),
        (Metric(name="power_w", value=12.3456, provenance=Provenance.MEASURED), FigureText(value="12.35")),
        (
            Metric(name="power_w", value=12.3456, low=12.2, high=12.5, provenance=Provenance.MEASURED),
            FigureText(value="12.35", up="0.15", down="0.15"),
        ),
        (
            Metric(name="power_w", value=2.0, low=1.5, high=4.0, provenance=Provenance.MEASURED),
            FigureText(value="2.0", up="2.0", down="0.5"),
        ),
        (
            Metric(name="power_w", value=2.0, low=2.0, high=2.0, provenance=Provenance.MEASURED),
            FigureText(value="2.000"),
        ),
    ],
)
def test_figures_have_the_digits_that_are_known(metric, said):
    assert figure_text(metric) == said


def test_a_heading_is_the_unit_unless_two_columns_share_it():
    assert [column_title(name, TEGRA) for name in TEGRA.metrics] == ["img/s", "W", "img/s/W"]
    xavier = find_study("xavier-resnet50")
    assert column_title("latency_p90_ms", xavier) == "90th percentile latency, ms"


def odd_study():
    case = replace(TEGRA.cases[0], title=ODD, published=(replace(TEGRA.cases[0].published[0], system=ODD, covers=ODD),))
    return replace(TEGRA, title=ODD, asks=ODD, source=ODD, cases=(case,))


def odd_sweep():
    runs = tuple(replace(run, total=TotalFormula(rails=("a:b",), scope=ODD)) for run in OURS.runs)
    return replace(OURS, device=ODD, runs=runs)


def check_latex(text):
    """Whether LaTeX would read it: environments and braces close, and every row has as many cells as columns."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    plain = re.sub(r"\\[\\{}&%$#_]", "", body)
    assert plain.count("{") == plain.count("}")
    depth = 0
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert plain.count("$") % 2 == 0
    assert "#" not in plain
    assert "%" not in plain
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", body):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    for columns, table in re.findall(r"\\begin\{tabular\}\{([^\n]*)\}\n(.*?)\\end\{tabular\}", body, re.DOTALL):
        count = len(re.sub(r"p\{[^}]*\}", "p", columns))
        for line in table.strip().splitlines():
            if line in {r"\toprule", r"\midrule", r"\bottomrule"}:
                continue
            assert line.endswith(r" \\")
            spans = sum(int(width) - 1 for width in re.findall(r"\\multicolumn\{(\d+)\}", line))
            assert len(re.findall(r"(?<!\\)&", line)) + 1 + spans == count
        assert [table.count(rule) for rule in (r"\toprule", r"\bottomrule")] == [1, 1]


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_the_latex_of_every_study_can_be_read(study):
    ours = repeated(alexnet(), alexnet(engine="onnxruntime"), alexnet(batch_size=16))
    cores = repeated(alexnet(), replace(alexnet(), cores="0-1"), alexnet(slices=2), sweep_id="other")
    table = rows(study, [ours, cores])
    matches = compared(study, [ours, cores])
    text = latex_document(study, table, matches)
    check_latex(text)
    assert text.count(r"\begin{table*}") == (2 if matches else 1)
    assert bool(matches) == (study.compared not in {"", "precision"})
    assert r"\usepackage{booktabs}" in text


def test_odd_names_are_escaped_in_latex():
    study = odd_study()
    text = latex_document(study, rows(study, [odd_sweep()]), ())
    check_latex(text)
    assert r"a\_b \& 50\% \$x\$ \{c\} \#1 \textasciitilde{} \textasciicircum{} \textbackslash{}" in text


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs")), max_size=60))
def test_escaped_text_closes_what_it_opens(text):
    check_latex(escape(text))


class Reader(HTMLParser):
    """Follows the tags, and keeps the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in {"meta"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_the_page_of_every_study_says_all_of_it(study):
    ours = repeated(alexnet(), alexnet(engine="onnxruntime"))
    table = rows(study, [ours])
    left = (NotRepeated(what="something else", why="it is so"), *study.not_repeated)
    reader = read(html_document(study, table, compared(study, [ours]), left))
    words = " ".join(reader.text)
    for said in (study.title, study.asks, study.source, *(one.why for one in left)):
        assert said in words
    assert ("Published and own figures stand side by side" in words) == study.publishes
    for row in table:
        assert row.conditions in words
        assert row.provenance in words
    assert "script" not in reader.tags
    assert not {"link", "img", "iframe"} & set(reader.tags)


def test_odd_names_are_escaped_in_the_page():
    study = odd_study()
    reader = read(html_document(study, rows(study, [odd_sweep()]), (), ()))
    assert "script" not in reader.tags
    assert " ".join(reader.text).count(ODD) >= 6
