"""What a study must know before it runs: which models there are, what they take, and which engines run them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from powerlab.backends.packages import PACKAGES, installed_version
from powerlab.backends.registry import BACKENDS
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE_NAME
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Processor, Workload, computes_in_software
from powerlab.engine.frontend.load import load_graph, split_size
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.passes import optimise
from powerlab.engine.runtime.memory import live_bytes, weight_bytes
from powerlab.measure.recording.rails import Meter
from powerlab.measure.run import load_request, worker_cores
from powerlab.measure.worker.process import Worker, WorkerError
from powerlab.studies.planning import Here
from powerlab.studies.study import Study

_STEP_PASSES = 3.0
"""A step of training in inferences: a forward pass, and two as much work for the gradients."""


def here(study: Study, device: Device, capabilities: Capabilities, files: Sequence[str], trials: Trials) -> Here:
    """Return what the study must know of the device and the installation.

    Args:
        study: what will be planned.
        device: where.
        capabilities: what it can do.
        files: ``NAME=FILE`` for networks that a file stands for.
        trials: tries the engines.

    Raises:
        PowerlabError: a word of ``files`` names no network of the study.
    """
    return Here(
        name=device.name,
        core_count=device.core_count,
        memory_bytes=device.memory_bytes,
        modes=capabilities.modes,
        engines=tuple(name for name in BACKENDS if name not in PACKAGES or installed_version(name) is not None),
        models=models(study, files),
        needed_bytes=needed_bytes,
        training_bytes=training_bytes,
        refusal=trials.refusal,
        first_cores=first_cores,
        queues=1 if device.simulated else queues(study),
        simulated=device.simulated,
    )


def models(study: Study, files: Sequence[str]) -> dict[str, str]:
    """Return what runs each of the study's networks: its own name where the zoo has it, or the given file.

    Raises:
        PowerlabError: a word is not ``NAME=FILE``, or the study has no such network.
    """
    networks = tuple(dict.fromkeys(name for plan in study.plans for name in plan.models))
    found = {name: name for name in networks if split_size(name)[0] in ZOO}
    for word in files:
        name, sign, path = word.partition("=")
        if not sign or not path:
            raise PowerlabError(f"--model got {word!r}; write a network and its file as {networks[0]}=FILE.onnx.")
        if name not in networks:
            raise PowerlabError(f"the study {study.name} has no network {name!r}; it runs {', '.join(networks)}.")
        found[name] = path
    return found


@cache
def _sizes(model: str) -> tuple[int, int, int]:
    """Return the bytes of a model's weights, of the activations of one image at a time, and of all of them."""
    graph = optimise(load_graph(model, batch_size=1))
    made = [graph.tensors[name] for node in graph.nodes for name in node.outputs if name]
    return weight_bytes(graph), live_bytes(graph), sum(info.elements * info.dtype.itemsize for info in made)


def needed_bytes(model: str, batch_size: int) -> int:
    """Return the least memory a model takes at a batch size.

    Raises:
        PowerlabError: the model cannot be read.
    """
    weights, activations, _ = _sizes(model)
    return weights + batch_size * activations


def training_bytes(model: str, batch_size: int) -> int:
    """Return the least memory that a step of training takes: weights, their gradients, and every layer's result.

    Raises:
        PowerlabError: the model cannot be read.
    """
    weights, _, activations = _sizes(model)
    return 2 * weights + batch_size * activations


def first_cores(threads: int) -> str:
    """Return the cores that so many threads are given where nobody names any, as a list the kernel reads.

    A simulated board may have more cores than the host; of a longer list the host's own are taken.
    """
    mask = sorted(os.sched_getaffinity(0))
    return ",".join(map(str, mask[:threads] if threads <= len(mask) else range(threads)))


def queues(study: Study) -> int:
    """Return how many queues the graphics processor has, where a study wants several; 1 where it does not."""
    if all(plan.queues == (1,) for plan in study.plans):
        return 1
    from powerlab.engine.gpu.device import queues_here

    try:
        return queues_here()
    except PowerlabError:
        return 1


@dataclass(slots=True)
class Trials:
    """Loads a model into an engine, once for each question, and times one image on one thread."""

    meter: Meter
    said: dict[tuple[str, str, str, Processor], tuple[str, float]] = field(default_factory=dict)

    def refusal(self, engine: str, model: str, precision: str, processor: Processor = Processor.CPU) -> str:
        """Return why an engine does not run a model at a precision on a processor; empty where it does."""
        return self._tried(engine, model, precision, processor)[0]

    def inference_s(self, plan: SweepPlan) -> dict[str, float]:
        """Return by point id how long an inference or a step takes, about: an image on a thread, batch over threads."""
        return dict(self._expected(plan))

    def _expected(self, plan: SweepPlan) -> Iterator[tuple[str, float]]:
        for point in plan.points():
            load = point.workload
            _, image_s = self._tried(load.engine, load.model, load.precision, load.processor)
            passes = _STEP_PASSES if load.trains else 1.0
            yield point.id, passes * image_s * load.batch_size / point.threads

    def _tried(self, engine: str, model: str, precision: str, processor: Processor) -> tuple[str, float]:
        question = (engine, model, precision, processor)
        if question not in self.said:
            self.said[question] = self._try(*question)
        return self.said[question]

    def _try(self, engine: str, model: str, precision: str, processor: Processor) -> tuple[str, float]:
        workload = Workload(model=model, batch_size=1, precision=precision, engine=engine, processor=processor)
        point = Point(workload=workload, threads=1, mode=CURRENT_MODE_NAME)
        try:
            with Worker(worker_cores(point)) as worker:
                name = worker.load(load_request(point, self.meter, seed=0))
                if computes_in_software(name):
                    return f"the only graphics processor is {name}, a driver that computes on the cores.", 0.0
                worker.warm_up(0.0)
                return "", worker.warm_up(0.0)
        except (WorkerError, PowerlabError) as error:
            return str(error), 0.0
