"""Messages as JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.export import CSV_COLUMNS, csv_lines, ndjson_lines
from powerlab.protocol.messages import EnrolRequest
from powerlab.protocol.wire import decode, digest, encode, from_document, to_document
from server_examples import PLAN, capabilities, device, make_run

RUN = make_run("sweep", PLAN.points()[0], 0)


@pytest.mark.parametrize(
    "message",
    [RUN, PLAN, EnrolRequest(code="c", device=device(), capabilities=capabilities())],
    ids=lambda m: type(m).__name__,
)
def test_messages_come_back_equal(message: object) -> None:
    assert decode(encode(message), type(message)) == message
    assert from_document(to_document(message), type(message)) == message


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_exactly(value: float) -> None:
    metric = Metric(name="power_w", value=value, provenance=Provenance.MEASURED)
    assert decode(encode(metric), Metric).value.hex() == value.hex()


@given(st.binary(max_size=60))
def test_other_bytes_are_one_sentence(data: bytes) -> None:
    with pytest.raises(PowerlabError, match="not a Run message"):
        decode(data, Run)


def test_a_number_in_words_is_refused() -> None:
    with pytest.raises(PowerlabError, match="SweepPlan"):
        decode(encode(PLAN).replace(b'"repeats":3', b'"repeats":"three"'), SweepPlan)


def test_the_digest_depends_on_the_content() -> None:
    assert digest(RUN) == digest(decode(encode(RUN), Run))
    assert digest(RUN) != digest(make_run("sweep", PLAN.points()[0], 1))


def test_csv_has_a_line_a_figure_with_its_provenance() -> None:
    lines = list(csv_lines([RUN]))
    assert lines[0].strip().split(",") == list(CSV_COLUMNS)
    assert len(lines) == 1 + len(RUN.metrics)
    power = next(line for line in lines if "power_w" in line)
    assert ",measured," in power
    assert repr(RUN.metric("power_w").value) in power


def test_ndjson_is_a_run_a_line() -> None:
    assert [decode(line, Run) for line in ndjson_lines([RUN, RUN])] == [RUN, RUN]
