"""``powerlab audit``: what it prints and how it ends, whatever the audit found."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from powerlab import cli
from powerlab.cli.commands import audit as audit_body
from powerlab.client.transport import Transport
from powerlab.domain.run import Verdict
from powerlab.measure.audit.audit import Audit, audit, audit_of_damaged
from powerlab.measure.audit.compare import Compared
from powerlab.protocol.identifiers import Identifier, Kind
from recorded_run import RECORDED_AT, Recorded, recorded_run


@pytest.fixture
def answered(monkeypatch):
    """Let a server answer with an audit, and keep what was asked for."""
    asked: list[str] = []

    def install(found: Audit) -> list[str]:
        def get(self: Transport, path: str, kind: type[Any], **fields: object) -> Any:
            asked.append(path)
            if kind is Audit:
                return found
            return (Identifier(kind=Kind.RUN, id=f"{fields['beginning']}/rest", sweep_id=found.run.sweep_id),)

        monkeypatch.setattr(Transport, "get", get)
        return asked

    return install


def audited(recorded: Recorded) -> Audit:
    return audit(recorded.run, recorded.traces)


def carried_out(*words: str) -> int:
    return cli.main(["audit", "3f2a", "--server", "http://server:8765", *words])


def test_a_run_that_gives_itself_again_ends_well(answered, capsys):
    recorded = recorded_run()
    assert answered(audited(recorded)) == []
    assert carried_out() == cli.EXIT_OK
    said = capsys.readouterr().out
    assert recorded.run.id in said
    assert RECORDED_AT in said
    assert "every stored value is confirmed" in said
    assert "differs" not in said


def test_the_server_is_asked_for_the_run_that_begins_so(answered, capsys):
    recorded = recorded_run()
    asked = answered(audited(recorded))
    assert cli.main(["audit", "a", "--from", "http://server:8765"]) == cli.EXIT_OK
    assert asked == ["/identifiers", "/runs/a%2Frest/audit"]
    assert capsys.readouterr().err == f"source: server http://server:8765, run {recorded.run.id}\n"


def test_a_run_that_says_something_else_is_told_with_the_figures(answered, capsys):
    recorded = recorded_run()
    metrics = tuple(
        replace(one, value=one.value * 1.01, high=one.value * 2) if one.name == "throughput_img_per_s" else one
        for one in recorded.run.metrics
    )
    answered(audited(recorded.but(metrics=metrics, verdict=Verdict.FLAGGED)))
    assert carried_out() == cli.EXIT_INCOMPLETE
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"2 of \d+ recomputed values differ", said), said
    assert "(+1 %)" in said
    assert "MLPerf Power would reject this run" in said


def test_another_version_may_have_another_method(answered, capsys):
    recorded = recorded_run(measured_with="0.0.1")
    answered(audited(recorded.but(verdict=Verdict.FLAGGED)))
    assert carried_out() == cli.EXIT_INCOMPLETE
    assert "measured with powerlab 0.0.1" in " ".join(capsys.readouterr().out.split())
    answered(audited(recorded))
    assert carried_out() == cli.EXIT_OK
    assert "0.0.1" not in capsys.readouterr().out


def test_a_damaged_record_gives_no_figures(answered, capsys):
    check = Compared(what="samples of x", stored="1", recomputed="damaged", equal=False, detail="chunk 0: torn")
    answered(audit_of_damaged(recorded_run().run, (check,)))
    assert carried_out() == cli.EXIT_INCOMPLETE
    said = capsys.readouterr().out
    assert "chunk 0: torn" in said
    assert "nothing was recomputed" in said
    assert "MLPerf" not in said


def test_json_is_the_audit_whole(answered, capsys):
    answered(audited(recorded_run()))
    assert carried_out("--json") == cli.EXIT_OK
    document = json.loads(capsys.readouterr().out)
    assert {"run", "equal", "compared", "mlperf", "mlperf_ruling", "sample_count"} == set(document)


def test_a_results_file_holds_no_samples(tmp_path, capsys):
    path = tmp_path / "results"
    path.write_text("{}")
    for name in (str(path), "elsewhere.ndjson"):
        assert cli.main(["audit", name]) == cli.EXIT_USAGE
        assert "a results file, which has no samples" in capsys.readouterr().err


def test_every_ruling_has_a_word_and_a_colour():
    assert set(audit_body._VERBS) == set(audit_body._STYLES) == set(audit_body.Ruling)
