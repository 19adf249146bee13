"""The audit page: a run's figures recomputed from its raw data, and a check against the MLPerf Power rules."""

from __future__ import annotations

from collections import Counter

from fastapi import APIRouter, Response

from powerlab import __version__
from powerlab.domain.errors import PowerlabError
from powerlab.measure.audit.mlperf import Ruling
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.run_audit import audit_run
from powerlab_dashboards.language import mark
from powerlab_dashboards.pages.sweep import sweep_title
from powerlab_dashboards.render import not_found, page

RULING_WORDS = {
    Ruling.ACCEPTED: mark("MLPerf Power would accept this run"),
    Ruling.REJECTED: mark("MLPerf Power would reject this run"),
    Ruling.UNKNOWN: mark("MLPerf Power might accept this run; some rules cannot be checked here"),
}


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/runs/{id}/audit``."""

    @router.get("/runs/{run_id}/audit")
    def audit_page(run_id: str) -> Response:
        with store.session() as session:
            try:
                run = queries.run(session, run_id)
                record = queries.sweep(session, run.sweep_id)
            except NotFoundError as error:
                return not_found(str(error))
            try:
                audit, reason = audit_run(session, run_id), ""
            except PowerlabError as error:
                audit, reason = None, str(error)
        return page(
            "audit.html",
            section="sweeps",
            run=run,
            version=__version__,
            sweep_title=sweep_title(record),
            audit=audit,
            reason=reason,
            different=[] if audit is None else [one for one in audit.compared if not one.equal],
            ruling_words="" if audit is None or audit.mlperf_ruling is None else RULING_WORDS[audit.mlperf_ruling],
            rulings=[] if audit is None else Counter(one.ruling.value for one in audit.mlperf).most_common(),
        )
