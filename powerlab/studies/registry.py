"""The studies powerlab can replicate: every TOML file in ``data`` is one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.studies.study import Case, NotRepeated, PlanTemplate, Published, Study, Threads


def parse_study(name: str, document: Mapping[str, Any]) -> Study:
    """Turn a study's TOML document into a :class:`Study`.

    Raises:
        TypeError: a table holds a key that does not exist, or lacks one that must.
        ValueError: a figure is no metric.
    """
    fields = dict(document)
    return Study(
        name=name,
        metrics=tuple(fields.pop("metrics")),
        plans=tuple(_plan(table) for table in fields.pop("plans")),
        cases=tuple(_case(table) for table in fields.pop("cases")),
        boards=tuple(fields.pop("boards", ())),
        not_repeated=tuple(NotRepeated(**table) for table in fields.pop("not_repeated", ())),
        **fields,
    )


def _plan(table: Mapping[str, Any]) -> PlanTemplate:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    if isinstance(fields.get("threads"), str):
        fields["threads"] = Threads(fields["threads"])
    fields["processor"] = Processor(fields.get("processor", Processor.CPU))
    return PlanTemplate(**fields)


def _case(table: Mapping[str, Any]) -> Case:
    fields = dict(table)
    return Case(
        models=tuple(fields.pop("models")),
        published=tuple(Published(**row) for row in fields.pop("published", ())),
        **fields,
    )


def _load_all() -> dict[str, Study]:
    files = (resources.files("powerlab.studies") / "data").iterdir()
    documents = {file.name.removesuffix(".toml"): file for file in files if file.name.endswith(".toml")}
    return {
        name: parse_study(name, tomllib.loads(documents[name].read_text(encoding="utf-8")))
        for name in sorted(documents)
    }


STUDIES: dict[str, Study] = _load_all()
"""Every study by its name."""


def find_study(name: str) -> Study:
    """Return the study of that name.

    Raises:
        PowerlabError: there is none.
    """
    if name not in STUDIES:
        raise PowerlabError(
            f"there is no study {name!r}{meant(name, list(STUDIES))}; choose from: {', '.join(STUDIES)}."
        )
    return STUDIES[name]
