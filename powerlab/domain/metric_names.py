"""Metrics by the names that people use: ``p99``, ``img/s/W``, ``energy``."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS

_SAID: Mapping[str, tuple[str, ...]] = {
    "latency_p50_ms": ("p50", "latency", "median", "median latency"),
    "latency_p90_ms": ("p90",),
    "latency_p95_ms": ("p95",),
    "latency_p99_ms": ("p99", "tail latency"),
    "latency_p99_9_ms": ("p99.9", "p999"),
    "latency_p90_early_ms": ("p90 early",),
    "latency_p99_early_ms": ("p99 early",),
    "forward_p50_ms": ("forward", "forward pass"),
    "backward_p50_ms": ("backward", "backward pass"),
    "reduce_p50_ms": ("reduce", "wait for gradients"),
    "update_p50_ms": ("update", "update of the weights"),
    "server_queries_per_s": ("queries/s", "qps", "queries per second"),
    "server_bound_confidence_percent": ("confidence", "bound confidence"),
    "throughput_img_per_s": ("img/s", "images/s", "imgs/s", "fps", "throughput", "images per second"),
    "power_w": ("W", "watt", "watts", "power"),
    "power_by_slopes_w": ("power by slopes",),
    "idle_power_w": ("idle", "idle power", "idle W"),
    "energy_per_image_j": ("J/img", "J/image", "joule", "joules", "energy", "energy per image"),
    "energy_above_idle_per_image_j": ("J/img above idle", "above idle", "energy above idle"),
    "forward_energy_j": ("forward energy",),
    "backward_energy_j": ("backward energy",),
    "update_energy_j": ("update energy",),
    "efficiency_img_per_s_per_w": (
        *("img/s/W", "images/s/W", "fps/W", "img/J", "images/J", "images per joule", "efficiency"),
    ),
    "start_temperature_c": ("start temperature",),
    "end_temperature_c": ("temperature", "end temperature", "°C"),
    "output_sqnr_db": ("sqnr", "dB"),
    "top1_agreement_percent": ("top-1", "top1", "agreement"),
    "top1_accuracy_percent": ("accuracy", "top-1 accuracy"),
    "peak_memory_mb": ("memory", "peak memory", "MB", "RSS"),
    "sampling_core_percent": ("sampling", "sampling cost"),
}


def _plain(word: str) -> str:
    """Return a name without what people write differently: capitals, and blanks, dashes and underscores."""
    return " ".join(word.lower().replace("_", " ").replace("-", " ").split())


def _known() -> dict[str, str]:
    known = {_plain(said): name for name, names in _SAID.items() for said in names}
    return known | {_plain(name): name for name in METRICS}


METRIC_NAMES: Mapping[str, str] = _known()
"""The metric of every name that is understood, the names as :func:`metric_name` compares them."""


def metric_name(word: str) -> str:
    """Return the metric, a key of :data:`powerlab.domain.quantity.METRICS`, that a word means.

    Capitals do not matter, nor whether words are joined by blanks, dashes or underscores.

    Raises:
        PowerlabError: no metric has that name.
    """
    found = METRIC_NAMES.get(_plain(word))
    if found is None:
        close = meant(word, [*METRICS, *(said for names in _SAID.values() for said in names)])
        raise PowerlabError(f"unknown metric {word!r}{close}; choose from: {', '.join(short_metric_names())}.")
    return found


def short_metric_names() -> tuple[str, ...]:
    """Return the shortest usual name of each metric, in the order of :data:`METRICS`."""
    return tuple(_SAID[name][0] for name in METRICS)
