"""One inference as a trace that Perfetto and chrome://tracing open.

The format is the Trace Event Format (Duca and Sinclair, *Trace Event Format*, Google): a JSON object with
``traceEvents``. Complete events (``X``) have ``ts`` and ``dur`` in µs; counter events (``C``) hold until the next one;
metadata events (``M``) name rows. Every profile is a process of its own, with one row for the engine: all its threads
work on one step at a time, and thread 0 keeps the time. The power is no recording of that inference, which is far too
short for any sensor, but what each layer drew while it was repeated alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from powerlab.analysis.roofline import RooflinePoint, roofline
from powerlab.domain.layers import Layer, LayerProfile

Event = dict[str, Any]
_ENGINE_ROW = 1
_POWER_DECIMALS = 4


def chrome_trace(profiles: Sequence[LayerProfile]) -> dict[str, Any]:
    """Return the trace of one inference of each profile, ready for ``json.dumps``."""
    return {
        "traceEvents": [event for pid, profile in enumerate(profiles, 1) for event in _events(profile, pid)],
        "displayTimeUnit": "ms",
        "otherData": {
            "power": "what each layer drew while it was repeated alone; no recording of this inference",
            "time": "one inference of the built-in engine, as its thread 0 saw it",
        },
    }


def _events(profile: LayerProfile, pid: int) -> Iterator[Event]:
    threads = "1 thread" if profile.threads == 1 else f"{profile.threads} threads"
    process = f"{profile.model}, batch {profile.batch_size}, {threads}, mode {profile.mode} ({profile.device_name})"
    yield _name("process_name", pid, process)
    yield _name("thread_name", pid, f"built-in engine, {profile.tier}, {threads}")
    start_us = 0.0
    for layer, point in zip(profile.layers, roofline(profile), strict=True):
        yield {
            "name": layer.name,
            "cat": layer.operator or "move",
            "ph": "X",
            "ts": start_us,
            "dur": layer.once_us,
            "pid": pid,
            "tid": _ENGINE_ROW,
            "args": _arguments(layer, point),
        }
        if layer.power is not None:
            yield _counter(pid, start_us, layer.power.provenance.value, layer.power.value)
        start_us += layer.once_us
    last = next((layer.power for layer in reversed(profile.layers) if layer.power is not None), None)
    if last is not None:
        yield _counter(pid, start_us, last.provenance.value, last.value)


def _name(what: str, pid: int, name: str) -> Event:
    return {"name": what, "ph": "M", "pid": pid, "tid": _ENGINE_ROW, "args": {"name": name}}


def _counter(pid: int, ts: float, provenance: str, power_w: float) -> Event:
    name = f"power, W ({provenance})"
    return {"name": name, "ph": "C", "ts": ts, "pid": pid, "args": {"W": round(power_w, _POWER_DECIMALS)}}


def _arguments(layer: Layer, point: RooflinePoint) -> Event:
    found: Event = {
        "kernel": layer.kernel,
        "nodes": " + ".join(layer.nodes),
        "shape": "x".join(map(str, layer.shape)),
        "GFLOP/s": point.gflops,
        "GB/s": point.gb_per_s,
        "mean ms": layer.time.value,
    }
    if layer.energy is not None:
        found |= {"J": layer.energy.value, "J low": layer.energy.low, "J high": layer.energy.high}
        found["J provenance"] = layer.energy.provenance.value
    return found
