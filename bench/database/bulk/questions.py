"""Everything that lists, draws or exports, asked as a reader would: of what is common, of what is rare or absent."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from bench.database.bulk.fleet import MODELS, MODES
from powerlab.store.tables import DeviceRow, JobRow, LayerProfileRow, RunRow, SweepRow, TraceChunkRow
from powerlab.studies.registry import STUDIES
from powerlab_dashboards.charts.registry import LAYER_CHARTS, RUN_CHARTS, SWEEP_CHARTS


@dataclass(frozen=True, kw_only=True)
class Known:
    """What may be asked for."""

    devices: list[str]
    sweeps: list[str]
    large: list[str]
    runs: list[str]
    long: list[str]
    jobs: list[str]
    layers: list[str]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A way to ask: ``path`` draws an address; only the first byte of a stream is waited for."""

    name: str
    path: Callable[[random.Random], str]
    stream: bool = False
    headers: tuple[tuple[str, str], ...] = ()


def group_of(path: str) -> str:
    """Return what kind of thing lies at an address."""
    if path.startswith("/api/v1/exports/"):
        return "first byte of an export"
    if "/charts/" in path:
        return "chart"
    if path.startswith("/api/v1/"):
        one = path.removeprefix("/api/v1/").partition("?")[0].count("/")
        return "one thing of the API" if one else "list of the API"
    return "/metrics" if path == "/metrics" else "page"


def known(session: Session) -> Known:
    """Draw a few hundred of everything."""

    def some(column: object, where: str = "") -> list[str]:
        return list(session.scalars(select(column).where(text(where or "1 = 1")).order_by(text("1")).limit(200)))  # type: ignore[call-overload]

    large = "(SELECT count(*) FROM point WHERE point.sweep_id = sweep.id) > 100"
    long = select(TraceChunkRow.run_id).where(TraceChunkRow.position == 2).distinct().limit(100)
    return Known(
        devices=some(DeviceRow.id), sweeps=some(SweepRow.id, f"NOT {large}"), large=some(SweepRow.id, large),
        runs=some(RunRow.id), long=list(session.scalars(long)), jobs=some(JobRow.id), layers=some(LayerProfileRow.id),
    )  # fmt: skip


def questions(there: Known, deep: dict[str, str]) -> list[Question]:
    """Return everything to be asked; ``deep`` has by list the cursor of a place near its end."""
    found: list[Question] = []

    def ask(name: str, path: Callable[[random.Random], str] | str, *, stream: bool = False) -> None:
        found.append(Question(name=name, path=path if callable(path) else lambda _: path, stream=stream))

    late = "received_from=2026-10-01T00:00:00Z"
    for where, base in (("runs", "/api/v1/runs?"), ("metrics", "/api/v1/metrics?name=power_w&")):
        for wish, words in _run_wishes(there, late).items():
            ask(f"{where} {wish}", lambda dice, base=base, words=words: base + words(dice))
        ask(f"{where} deep cursor", f"{base}cursor={deep['runs']}")
        ask(f"{where} deep cursor, a model", f"{base}model=resnet50&cursor={deep['runs']}")
        ask(f"{where} 500 on a page", f"{base}limit=500")
    for name, bounds in (("common", "low=5"), ("rare", "low=120"), ("none", "low=900&high=950")):
        ask(f"metrics {name} values", f"/api/v1/metrics?name=power_w&{bounds}")
    ask("metrics values and a model", "/api/v1/metrics?name=power_w&low=20&model=resnet50")
    _lists(there, deep, ask)
    _single(there, ask)
    return found


def _run_wishes(there: Known, late: str) -> dict[str, Callable[[random.Random], str]]:
    def always(words: str) -> Callable[[random.Random], str]:
        return lambda _: words

    return {
        "all": always(""),
        "of a sweep": lambda dice: f"sweep_id={dice.choice(there.sweeps)}",
        "of a device": lambda dice: f"device_id={dice.choice(there.devices)}",
        "of a model": lambda dice: f"model={dice.choice(MODELS[:6])}",
        "of a late, rare model": lambda dice: f"model={dice.choice(MODELS[40:])}",
        "of no model": always("model=nothing"),
        "of an engine": always("engine=builtin"),
        "of no engine": always("engine=nothing"),
        "of a precision": always("precision=int8"),
        "of a scenario": always("scenario=server"),
        "of a batch size": always("batch_size=8"),
        "of no batch size": always("batch_size=77"),
        "with threads": lambda dice: f"threads={dice.choice((1, 2, 4, 8))}",
        "with rare threads": lambda dice: f"threads={dice.choice((17, 21, 25))}",
        "with no threads": always("threads=1000"),
        "in a mode": lambda dice: f"mode={dice.choice(MODES[:4])}",
        "in a rare mode": always("mode=performance"),
        "in no mode": always("mode=nothing"),
        "by verdict": lambda dice: f"verdict={dice.choice(('valid', 'flagged', 'void', 'failed'))}",
        "measured": always("provenance=measured"),
        "estimated (rare)": always("provenance=estimated"),
        "published (none)": always("provenance=published"),
        "simulated": always("simulated=true"),
        "real": always("simulated=false"),
        "simulated yet measured": always("simulated=true&provenance=measured"),
        "of late days": always(late),
        "of early days": always("received_to=2025-09-10T00:00:00Z"),
        "device, model, verdict": lambda dice: f"device_id={dice.choice(there.devices)}&model=resnet50&verdict=flagged",
        "model, mode, threads, late": always(f"model=vgg16&mode=MAXN&threads=8&{late}"),
        "model and mode, rare both": always(f"model={MODELS[-9]}&mode=performance"),
    }


def _lists(there: Known, deep: dict[str, str], ask: Callable[..., None]) -> None:
    for wish, words in {
        "all": "", "queued": "state=queued", "failed (none)": "state=failed", "of a model": "model=resnet50",
        "of a late model": f"model={MODELS[-12]}", "of no model": "model=nothing", "of a person": "submitter=person-3",
        "of nobody": "submitter=nobody", "of early days": "created_to=2025-09-05T00:00:00Z",
        "deep cursor": f"cursor={deep['sweeps']}", "500": "limit=500",
        "of a model, deep cursor": f"model=resnet50&cursor={deep['sweeps']}",
    }.items():  # fmt: skip
        ask(f"sweeps {wish}", f"/api/v1/sweeps?{words}")
    ask("sweeps of a device", lambda dice: f"/api/v1/sweeps?device_id={dice.choice(there.devices)}")
    for wish, words in {
        "all": "", "queued": "state=queued", "failed (none)": "state=failed", "of a person": "submitter=person-3",
        "of nobody": "submitter=nobody", "deep cursor": f"cursor={deep['jobs']}",
    }.items():  # fmt: skip
        ask(f"jobs {wish}", f"/api/v1/jobs?{words}")
    ask("jobs of a device", lambda dice: f"/api/v1/jobs?device_id={dice.choice(there.devices)}")
    ask("jobs of a sweep", lambda dice: f"/api/v1/jobs?sweep_id={dice.choice(there.sweeps)}")
    for wish, words in {
        "all": "", "by name": "name=board-07", "no name": "name=nothing", "of a board": "board=jetson-agx-xavier",
        "of no board": "board=nothing", "simulated": "simulated=true", "seen since": "seen_since=2026-01-01T00:00:00Z",
        "500": "limit=500",
    }.items():  # fmt: skip
        ask(f"devices {wish}", f"/api/v1/devices?{words}")
    for wish, words in {"all": "", "of a model": "model=resnet50", "of an engine": "engine=nothing"}.items():
        ask(f"workloads {wish}", f"/api/v1/workloads?{words}")
    for wish, words in {
        "all": "", "of a model": "model=resnet50", "of a late model": f"model={MODELS[-12]}", "of no model": "model=no",
        "with threads": "threads=8", "with no threads": "threads=999", "deep cursor": f"cursor={deep['points']}",
        "of a model, deep cursor": f"model=resnet50&cursor={deep['points']}",
    }.items():  # fmt: skip
        ask(f"points {wish}", f"/api/v1/points?{words}")
    ask("points of a sweep", lambda dice: f"/api/v1/points?sweep_id={dice.choice(there.sweeps)}")
    ask("points of a device", lambda dice: f"/api/v1/points?device_id={dice.choice(there.devices)}")
    for wish, words in {
        "all": "", "by action": "action=lease", "by no action": "action=nothing", "of an actor": "actor=person-3",
        "of nobody": "actor=nobody", "of no subject": "subject=nothing", "since": "since=2026-11-01T00:00:00Z",
        "before": "before=2025-09-05T00:00:00Z", "deep cursor": f"cursor={deep['audit-events']}",
    }.items():  # fmt: skip
        ask(f"audit events {wish}", f"/api/v1/audit-events?{words}")
    ask("audit events of a subject", lambda dice: f"/api/v1/audit-events?subject={dice.choice(there.sweeps)}")
    ask("tokens", "/api/v1/tokens")
    ask("models", "/api/v1/models")
    ask("layers", "/api/v1/layers")
    ask("/metrics", "/metrics")


def _single(there: Known, ask: Callable[..., None]) -> None:
    for name, ids in (("a sweep", there.sweeps), ("a large sweep", there.large)):
        for what in ("/api/v1/sweeps/{}", "/api/v1/sweeps/{}/points", "/sweeps/{}"):
            ask(f"{what} of {name}", lambda dice, what=what, ids=ids: what.format(dice.choice(ids)))
        for chart in SWEEP_CHARTS:
            ask(f"chart {chart} of {name}", lambda dice, c=chart, ids=ids: f"/sweeps/{dice.choice(ids)}/charts/{c}")
    for name, ids in (("a run", there.runs), ("a long run", there.long)):
        for what in ("/api/v1/runs/{}", "/api/v1/runs/{}/traces?points=1000", "/runs/{}"):
            ask(f"{what} of {name}", lambda dice, what=what, ids=ids: what.format(dice.choice(ids)))
        for chart in RUN_CHARTS:
            ask(f"chart {chart} of {name}", lambda dice, c=chart, ids=ids: f"/runs/{dice.choice(ids)}/charts/{c}")
    window = "from_ns=600000000000&to_ns=660000000000"
    for bucket in ("minmax", "mean"):
        words = f"points=1000&bucket={bucket}"
        ask(f"a minute of a long run, {bucket}", lambda dice, w=words: _trace(dice.choice(there.long), f"{window}&{w}"))
    ask("run by the beginning of its id", lambda dice: f"/api/v1/runs/{dice.choice(there.runs)[:9]}")
    ask("one job", lambda dice: f"/api/v1/jobs/{dice.choice(there.jobs)}")
    ask("one device", lambda dice: f"/api/v1/devices/{dice.choice(there.devices)}")
    ask("home page", "/")
    ask("devices page", "/devices")
    ask("layers page", "/layers")
    ask("a layer profile", lambda dice: f"/layers/{dice.choice(there.layers)}")
    for chart in LAYER_CHARTS:
        ask(f"chart {chart}", lambda dice, c=chart: f"/layers/{dice.choice(there.layers)}/charts/{c}")
    for study in STUDIES:
        ask(f"study {study}", f"/studies/{quote(study)}")
    for kind in ("csv", "ndjson", "parquet"):
        runs, traces = f"/api/v1/exports/runs?format={kind}", f"/api/v1/exports/traces?format={kind}&sweep_id="
        for what, path in (
            ("runs", lambda _, base=runs: base),
            ("a device's runs", lambda dice, base=runs: f"{base}&device_id={dice.choice(there.devices)}"),
            ("a rare model's runs", lambda _, base=runs: f"{base}&model={MODELS[-12]}"),
            ("a sweep's traces", lambda dice, base=traces: base + dice.choice(there.sweeps)),
        ):
            ask(f"export {what}, {kind}: first byte", path, stream=True)


def _trace(run: str, words: str) -> str:
    return f"/api/v1/runs/{run}/traces?{words}"
