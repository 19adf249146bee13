"""The engines under test.

An engine is one module in this package with ``load``, and its name in :data:`powerlab.domain.preflight.ENGINES`, which
the server knows too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import cast

from powerlab.backends.base import Backend, LoadOptions
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import ENGINES
from powerlab.domain.training import TRAINERS
from powerlab.domain.workload import Processor, WorkloadKind

BACKENDS: dict[str, str] = {name: f"powerlab.backends.{name.replace('-', '_')}" for name in ENGINES}
"""Name of each engine and the module that loads it; a module is imported only in the worker that runs it."""

_MODULES: Mapping[WorkloadKind, Mapping[str, str]] = {
    WorkloadKind.INFERENCE: BACKENDS,
    WorkloadKind.TRAIN: {name: f"powerlab.backends.training.{name.replace('-', '_')}" for name in TRAINERS},
}


def backend_module(engine: str, kind: WorkloadKind = WorkloadKind.INFERENCE) -> str:
    """Return the module of an engine that does what is asked with a model.

    Raises:
        PowerlabError: there is no such engine, or it cannot do that.
    """
    if engine not in BACKENDS:
        close = meant(engine, list(BACKENDS))
        raise PowerlabError(f"the engine {engine!r} is not known{close}; choose one of: {', '.join(BACKENDS)}.")
    if engine not in _MODULES[kind]:
        raise PowerlabError(f"the engine {engine} does not {kind}; choose one of: {', '.join(_MODULES[kind])}.")
    return _MODULES[kind][engine]


def load(module: str, options: LoadOptions) -> Backend:
    """Load a model with a backend's module.

    Raises:
        PowerlabError: the model cannot be run as asked, with the reason.
    """
    _check_processor(module, options.processor)
    loader = cast(Callable[[LoadOptions], Backend], importlib.import_module(module).load)
    return loader(options)


def _check_processor(module: str, processor: Processor) -> None:
    """Refuse what does not compute on a processor: an engine's module need not look at what it is asked for."""
    name = next((engine for engine, own in BACKENDS.items() if own == module), None)
    if name is not None and processor not in ENGINES[name]:
        raise PowerlabError(f"the engine {name} does not compute on the {processor}; choose another engine.")


def cuts_batches(module: str) -> bool:
    """Tell whether a backend's engine cuts a batch into slices itself, with one copy of the weights."""
    return bool(getattr(importlib.import_module(module), "CUTS_BATCHES", False))
