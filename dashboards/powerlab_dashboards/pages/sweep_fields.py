"""The fields of the form for a new sweep: one for each dimension, and those that say how carefully to measure.

A field is one line of :data:`FIELDS`. What it offers depends on the devices that are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from powerlab.domain.counts import counts
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE_NAME
from powerlab.domain.preflight import ENGINES
from powerlab.domain.rigour import LEVELS, Rigour
from powerlab.domain.sweep import USUAL_SEARCH_PERCENT
from powerlab.domain.workload import Preparation, Processor, Recompute, Scenario, WorkloadKind
from powerlab.networks.outline import network_names
from powerlab.protocol.records import DeviceRecord
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

PRECISIONS = ("fp32", "fp16", "bf16", "int8", "int8w", "int4w", "fp16w")
"""The number formats that some engine offers."""

SEARCHES = {"all": 0.0, "search": USUAL_SEARCH_PERCENT}
"""What may be measured, and the plan's ``search_percent`` for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What can be chosen from.

    Attributes:
        devices: those that were chosen.
        uploaded: the models that were uploaded, as plans name them.
        together: whether the devices train as one; else each gets a sweep of its own.
    """

    devices: Sequence[DeviceRecord]
    uploaded: Sequence[str]
    together: bool = False

    @property
    def core_count(self) -> int:
        """Cores that every chosen device has."""
        return min(one.device.core_count for one in self.devices)

    def modes(self) -> list[str]:
        """Return the power modes that every chosen device can set, in the first one's order."""
        others = [{mode.name for mode in one.capabilities.modes} for one in self.devices[1:]]
        return [
            mode.name
            for mode in self.devices[0].capabilities.modes
            if (self.devices[0].capabilities.may_reboot or not mode.requires_reboot)
            and all(mode.name in names for names in others)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field.

    Attributes:
        name: its name in the form, which is the plan's.
        title: its heading.
        dimension: the dimension that it sets, by its title; empty for one that sets none.
        choices: the values to choose from; None where it is typed.
        several: whether more than one value may be chosen.
        default: its values before anybody chose.
        parse: makes the plan's value of what was given; raises PowerlabError or ValueError.
        harmless: the plan's value that no device refuses; what is wrong with a plan and goes away with it is said
            beside this field.
        hint: what to type, or what the values mean.
        rare: whether it stands among those that few sweeps need.
    """

    name: str
    title: str
    parse: Callable[[list[str]], object]
    harmless: Any
    dimension: str = ""
    choices: Callable[[Offer], Sequence[str]] | None = None
    several: bool = True
    default: Callable[[Offer], Sequence[str]]
    hint: str = ""
    rare: bool = False


def _threads(offer: Offer) -> list[str]:
    return ["1"] if offer.core_count == 1 else [f"1,{offer.core_count}"]


def _optional_counts(text: list[str]) -> tuple[int | None, ...]:
    if not text[0].strip():
        return (None,)
    try:
        return tuple(int(word) for word in text[0].split(","))
    except ValueError:
        raise PowerlabError("give whole numbers of microseconds, such as 0,50,2000, or nothing.") from None


def _optional_words(text: list[str]) -> tuple[str, ...]:
    return tuple(word.strip() for word in text[0].split(",") if word.strip())


def _number(text: list[str]) -> float:
    try:
        return float(text[0].strip() or 0)
    except ValueError:
        raise PowerlabError(f"{text[0].strip()!r} is not a number; give milliseconds, such as 15.") from None


def _repeats(text: list[str]) -> int:
    word = text[0].strip()
    if not (word.isascii() and word.isdigit() and len(word) <= len("1000")):
        raise PowerlabError(f"{word!r} is not a number of repeats; give a whole number from 3 on.")
    return int(word)


def _counts(name: str) -> Callable[[list[str]], tuple[int, ...]]:
    return lambda text: counts(name, text[0])


def _fixed(*values: str) -> Callable[[Offer], Sequence[str]]:
    return lambda _offer: values


FIELDS: tuple[Field, ...] = (
    Field(
        name="models", title=mark("Models"), dimension="model", parse=tuple, harmless=("resnet18",),
        choices=lambda offer: (*network_names(), *offer.uploaded), default=_fixed("resnet50"),
    ),
    Field(
        name="modes", title=mark("Power modes"), dimension="mode", parse=tuple, harmless=(CURRENT_MODE_NAME,),
        choices=Offer.modes, default=_fixed(CURRENT_MODE_NAME), hint=mark("Modes that every chosen device can set."),
    ),
    Field(
        name="threads", title=mark("Threads"), dimension="threads", parse=_counts("threads"), harmless=(1,),
        default=_threads, hint=mark("Numbers and ranges, such as 1,2,4-8."),
    ),
    Field(
        name="batch_sizes", title=mark("Batch sizes"), dimension="batch", parse=_counts("batch sizes"), harmless=(1,),
        default=_fixed("1"), hint=mark("Images per inference, such as 1,4."),
    ),
    Field(
        name="engines", title=mark("Engines"), dimension="engine", parse=tuple, harmless=("builtin",),
        choices=_fixed(*ENGINES), default=_fixed("builtin"),
        hint=mark("An engine that is not installed on a device fails there, with the reason."),
    ),
    Field(
        name="processors", title=mark("Processors"), dimension="processor",
        parse=lambda values: tuple(Processor(one) for one in values), harmless=(Processor.CPU,),
        choices=_fixed(*Processor), default=_fixed(Processor.CPU),
        hint=mark("What computes: the cores, or the first graphics processor; not every engine can use one."),
    ),
    Field(
        name="precisions", title=mark("Precisions"), dimension="precision", parse=tuple, harmless=("fp32",),
        choices=_fixed(*PRECISIONS), default=_fixed("fp32"),
        hint=mark("An engine that lacks a precision fails there, with the reason."),
    ),
    Field(
        name="scenarios", title=mark("Scenarios"), dimension="scenario",
        parse=lambda values: tuple(Scenario(one) for one in values), harmless=(Scenario.SINGLE_STREAM,),
        choices=_fixed(*Scenario), default=_fixed(Scenario.SINGLE_STREAM),
        hint=mark("How queries follow each other, as MLPerf Inference defines it."),
    ),
    Field(
        name="latency_bound_ms", title=mark("Latency bound in ms"), dimension="bound ms", parse=_number, harmless=0.0,
        default=_fixed(""), hint=mark("Of the server scenario's 99th percentile."),
    ),
    Field(
        name="rigour", title=mark("Rigour"), parse=lambda values: Rigour(values[0]), harmless=Rigour.QUICK,
        choices=_fixed(*Rigour), several=False, default=_fixed(Rigour.QUICK),
        hint=mark("quick: seconds a point; standard: a minute a run; publishable: ten minutes a run, as MLPerf asks."),
    ),
    Field(
        name="repeats", title=mark("Repeats"), parse=_repeats, harmless=LEVELS[Rigour.QUICK].repeats,
        default=_fixed("3"), hint=mark("Runs of each point, at least 3."),
    ),
    Field(
        name="search_percent", title=mark("Points to measure"), parse=lambda values: SEARCHES[values[0]],
        harmless=0.0, choices=_fixed(*SEARCHES), several=False, default=_fixed("all"),
        hint=mark("all: every combination; search: only what may still be the best, chosen as results come."),
    ),
    Field(
        name="workload", title=mark("Workload"), dimension="workload", parse=lambda values: WorkloadKind(values[0]),
        harmless=WorkloadKind.INFERENCE, choices=_fixed(*WorkloadKind), several=False,
        default=_fixed(WorkloadKind.INFERENCE), hint=mark("train: steps of training on random data."), rare=True,
    ),
    Field(
        name="optimizers", title=mark("Optimizers"), dimension="optimizer", parse=_optional_words, harmless=(),
        default=_fixed(""), hint=mark("For training alone: sgd, momentum, nesterov, adam, adamw."), rare=True,
    ),
    Field(
        name="preparation", title=mark("Preparation of inputs"), dimension="preparation",
        parse=lambda values: Preparation(values[0]), harmless=Preparation.OUTSIDE, choices=_fixed(*Preparation),
        several=False, default=_fixed(Preparation.OUTSIDE), hint=mark("Whether it is inside the timed part."),
        rare=True,
    ),
    Field(
        name="slices", title=mark("Slices of a batch"), dimension="slices", parse=_counts("slices"), harmless=(1,),
        default=_fixed("1"), hint=mark("Parts of a batch that run at the same time."), rare=True,
    ),
    Field(
        name="recompute", title=mark("Recompute activations"), dimension="recompute",
        parse=lambda values: tuple(Recompute(one) for one in values), harmless=(Recompute.NO,),
        choices=_fixed(*Recompute), default=_fixed(Recompute.NO),
        hint=mark("For training alone: less memory, and a forward pass more."), rare=True,
    ),
    Field(
        name="queues", title=mark("Queues of the graphics processor"), dimension="queues", parse=_counts("queues"),
        harmless=(1,), default=_fixed("1"), hint=mark("Over which slices are spread, where it has several."), rare=True,
    ),
    Field(
        name="spin_us", title=mark("Spinning in µs"), dimension="spin us", parse=_optional_counts, harmless=(None,),
        default=_fixed(""), hint=mark("How long idle threads spin; empty leaves it to the engine."), rare=True,
    ),
    Field(
        name="cores", title=mark("Cores"), dimension="cores", parse=lambda text: (text[0].strip(),), harmless=("",),
        default=_fixed(""), hint=mark("Such as 0-3; empty takes the first ones."), rare=True,
    ),
)  # fmt: skip
"""Every field, in the order of the form."""


def nothing_chosen(field: Field) -> str:
    """Say that a field has no value."""
    return _("Choose at least one of: %(title)s.", title=_(field.title))
