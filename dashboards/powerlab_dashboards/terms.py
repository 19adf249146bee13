"""Words that pages get from elsewhere, marked for the catalogue: counted nouns, and what the library calls things.

A page says such a word with ``{{ _(word) }}``, and counts with ``{{ number | count("run") }}``.
"""

from __future__ import annotations

from collections.abc import Mapping

from powerlab_dashboards.language import mark, mark_plural

NOUNS: Mapping[str, tuple[str, str]] = {
    "core": mark_plural("%(count)s core", "%(count)s cores"),
    "device": mark_plural("%(count)s device", "%(count)s devices"),
    "failed run": mark_plural("%(count)s failed run", "%(count)s failed runs"),
    "failed sweep": mark_plural("%(count)s failed sweep", "%(count)s failed sweeps"),
    "inference": mark_plural("%(count)s inference", "%(count)s inferences"),
    "layer": mark_plural("%(count)s layer", "%(count)s layers"),
    "point": mark_plural("%(count)s point", "%(count)s points"),
    "queue": mark_plural("%(count)s queue", "%(count)s queues"),
    "query": mark_plural("%(count)s query", "%(count)s queries"),
    "repeat": mark_plural("%(count)s repeat", "%(count)s repeats"),
    "run": mark_plural("%(count)s run", "%(count)s runs"),
    "sample": mark_plural("%(count)s sample", "%(count)s samples"),
    "slice": mark_plural("%(count)s slice", "%(count)s slices"),
    "sweep": mark_plural("%(count)s sweep", "%(count)s sweeps"),
    "thread": mark_plural("%(count)s thread", "%(count)s threads"),
    "throttled run": mark_plural("%(count)s throttled run", "%(count)s throttled runs"),
    "trace chunk": mark_plural("%(count)s trace chunk", "%(count)s trace chunks"),
}
"""What pages count: one of it, and several."""

TERMS = (
    # provenance
    mark("measured"),
    mark("estimated"),
    mark("simulated"),
    mark("published"),
    # verdicts of runs, decisions, rulings
    mark("valid"),
    mark("flagged"),
    mark("void"),
    mark("failed"),
    mark("winner"),
    mark("tied"),
    mark("not enough data"),
    mark("accepted"),
    mark("rejected"),
    mark("cannot be known here"),
    # states of sweeps, devices, sensors; bookings; roles
    mark("queued"),
    mark("running"),
    mark("paused"),
    mark("cancelled"),
    mark("finished"),
    mark("revoked"),
    mark("expired"),
    # kinds of what is kept for some months only
    mark("traces"),
    mark("events"),
    mark("audit"),
    mark("busy"),
    mark("idle"),
    mark("offline"),
    mark("available"),
    mark("absent"),
    mark("denied"),
    mark("broken"),
    mark("reservation"),
    mark("maintenance"),
    mark("viewer"),
    mark("operator"),
    mark("admin"),
    mark("agent"),
    # bounds of the roofline
    mark("memory"),
    mark("compute"),
    # of what a campaign has a sweep each
    mark("board"),
    mark("device"),
    # dimensions
    mark("model"),
    mark("engine"),
    mark("processor"),
    mark("workload"),
    mark("optimizer"),
    mark("precision"),
    mark("scenario"),
    mark("bound ms"),
    mark("preparation"),
    mark("batch"),
    mark("slices"),
    mark("recompute"),
    mark("queues"),
    mark("devices"),
    mark("threads"),
    mark("spin us"),
    mark("cores"),
    mark("mode"),
    # metrics
    mark("Median latency"),
    mark("90th percentile latency"),
    mark("95th percentile latency"),
    mark("99th percentile latency"),
    mark("99.9th percentile latency"),
    mark("90th percentile latency, at most (99 % sure)"),
    mark("99th percentile latency, at most (99 % sure)"),
    mark("Queries per second within the latency bound"),
    mark("Confidence that the latency bound is held"),
    mark("Throughput"),
    mark("Power while running"),
    mark("Power by the trapezoid of the counters' slopes"),
    mark("Idle power in the same mode"),
    mark("Energy per image"),
    mark("Energy per image above idle"),
    mark("Efficiency (images per joule)"),
    mark("Hottest zone at the start"),
    mark("Hottest zone at the end"),
    mark("Signal to quantisation noise of the outputs, beside fp32"),
    mark("Top-1 agreement with fp32"),
    mark("Top-1 accuracy on labelled images"),
    mark("Median forward pass"),
    mark("Median backward pass"),
    mark("Median update of the weights"),
    mark("Energy of a step's forward pass"),
    mark("Energy of a step's backward pass"),
    mark("Energy of a step's update of the weights"),
    mark("Peak memory of the worker process"),
    mark("powerlab's own sampling, of one core"),
    mark("Power"),
    mark("Idle power"),
    mark("Above idle"),
)
"""The library's finite vocabulary, as far as pages show it. Its sentences stay English: ``{{ text | english }}``."""
