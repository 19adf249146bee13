"""BibTeX entries: of powerlab, and of a sweep's data."""

from __future__ import annotations

from powerlab import __version__
from powerlab.domain.run import Run
from powerlab.reports.latex import escape
from powerlab.reports.subject import Subject

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def bibtex(*subjects: Subject) -> str:
    """Return an entry for the powerlab that measured, and one for the data of each sweep."""
    versions = {_version(run) for subject in subjects for run in subject.runs}
    version = max(versions) if versions else __version__
    software = f"""\
@software{{powerlab,
  title   = {{powerlab: latency, throughput, power and energy of neural networks on devices}},
  author  = {{{{powerlab contributors}}}},
  version = {{{version}}},
  year    = {{{max(subject.date for subject in subjects)[:4]}}},
  note    = {{Apache License 2.0}}
}}"""
    return "\n\n".join([software, *map(_data, subjects)])


def _version(run: Run) -> str:
    return (run.conditions.measured_with if run.conditions is not None else "") or __version__


def _data(subject: Subject) -> str:
    year, month, _ = subject.date.split("-")
    kinds = sorted({metric.provenance.value for summary in subject.summaries for metric in summary.metrics})
    return f"""\
@misc{{powerlab-sweep-{subject.short_id},
  title  = {{{{Sweep of {escape(subject.models)} on {escape(subject.device_name)}}}}},
  author = {{{{powerlab contributors}}}},
  year   = {{{year}}},
  month  = {_MONTHS[int(month) - 1]},
  note   = {{powerlab sweep {subject.sweep_id}; {len(subject.runs)} runs; figures are {" and ".join(kinds)}}}
}}"""
