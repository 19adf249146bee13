"""Labelled images, and how often an engine's answer for one is its label.

Accuracy depends on model, engine, precision and processor, on a batch size only in the last digits. So before a sweep
measures anything, each of those classifies all images once, at the first of its batch sizes.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.accuracy import LabelledAccuracy
from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Workload
from powerlab.measure.output_check import compared
from powerlab.measure.recording.rails import Meter
from powerlab.measure.run import load_request, worker_cores
from powerlab.measure.worker.process import Worker, WorkerError

LABELS = "labels"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledImages:
    """Images and the class of each.

    Attributes:
        inputs: float32 arrays by name of the model's input, the first axis being the images.
        labels: int64 (images,), classes from 0.
        sha256: of the file.
    """

    inputs: Mapping[str, NDArray[np.float32]]
    labels: NDArray[np.int64]
    sha256: str


@dataclass(frozen=True, slots=True)
class LabelCheck:
    """How often answers were labels, by what decides it (:func:`_deciding`)."""

    found: Mapping[Workload, LabelledAccuracy]

    def of(self, point: Point) -> LabelledAccuracy | None:
        """Return what was found for a point; None where nothing was."""
        return self.found.get(_deciding(point))


def read_labelled_images(path: Path) -> LabelledImages:
    """Read an .npz file with an array for each of a model's inputs, and ``labels``.

    Raises:
        PowerlabError: there is no such file, or it does not hold that; one sentence.
    """
    try:
        data = path.read_bytes()
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except OSError as error:
        raise PowerlabError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, zipfile.BadZipFile, EOFError, AttributeError) as error:
        raise PowerlabError(f"{path} is no .npz file of arrays; write one with numpy.savez.") from error
    labels = arrays.pop(LABELS, None)
    if labels is None or not arrays:
        held = ", ".join((*arrays, *([] if labels is None else [LABELS]))) or "nothing"
        raise PowerlabError(f"{path} must hold the images and an array named {LABELS}; it holds {held}.")
    _check(path, arrays, labels)
    inputs = {name: value.astype(np.float32) for name, value in arrays.items()}
    return LabelledImages(inputs=inputs, labels=labels.astype(np.int64), sha256=hashlib.sha256(data).hexdigest())


def _check(path: Path, arrays: Mapping[str, NDArray[Any]], labels: NDArray[Any]) -> None:
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not labels.size or labels.min() < 0:
        raise PowerlabError(
            f"{LABELS} in {path} must be one whole number for each image, 0 being the first class; they are "
            f"{labels.dtype} of the shape {labels.shape}{', some below 0' * _below_zero(labels)}."
        )
    for name, value in arrays.items():
        if value.dtype.kind not in "fiub" or not value.ndim or value.shape[0] != labels.size:
            raise PowerlabError(
                f"{name} in {path} must be numbers for as many images as there are labels, {labels.size}; it is "
                f"{value.dtype} of the shape {value.shape}."
            )
        if not np.all(np.isfinite(value)):
            raise PowerlabError(f"{name} in {path} holds infinite numbers or NaN; leave these images out.")


def _below_zero(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind in "iu" and bool(labels.size) and bool(labels.min() < 0)


def check_labels(
    plan: SweepPlan, meter: Meter, images: LabelledImages | None, model_files: Mapping[str, str]
) -> LabelCheck:
    """Classify the images in every precision and engine of a plan, each in a worker of its own.

    A worker that crashes here, or finds too little memory, says nothing yet: its runs will be recorded as failed.

    Raises:
        PowerlabError: a model does not take such images, or does not put out one list of classes for each.
    """
    found: dict[Workload, LabelledAccuracy] = {}
    if images is None:
        return LabelCheck(found)
    for workload, point in {_deciding(point): point for point in reversed(plan.points())}.items():
        plain = replace(point, workload=compared(point), spin_us=None)
        try:
            with Worker(worker_cores(plain)) as worker:
                worker.load(load_request(plain, meter, plan.seed, model_files))
                right = sum(_right(worker, images, plain.workload))
        except (WorkerError, TooLargeError):
            continue
        found[workload] = LabelledAccuracy(images=images.labels.size, right=right, sha256=images.sha256)
    return LabelCheck(found)


def _deciding(point: Point) -> Workload:
    return replace(compared(point), batch_size=1)


def filled_batches(count: int, batch_size: int) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Yield the places of each batch of images, the last one filled up with the last image, and how many count."""
    for begin in range(0, count, batch_size):
        yield np.minimum(np.arange(begin, begin + batch_size), count - 1), min(batch_size, count - begin)


def _right(worker: Worker, images: LabelledImages, workload: Workload) -> Iterator[int]:
    """Yield how many answers of each batch are right."""
    for taken, kept in filled_batches(images.labels.size, workload.batch_size):
        (outputs,) = worker.show(given={name: value[taken] for name, value in images.inputs.items()})
        lists = (value for value in outputs.values() if value.shape[:1] == taken.shape and value.ndim == 2)
        scores = next((value for value in lists if value.shape[1] > 1), None)
        if scores is None:
            raise PowerlabError(
                f"{workload.model} puts out no list of classes for each image, so labels cannot be compared with its "
                "answers; leave out the labelled images."
            )
        labels = images.labels[taken[:kept]]
        if labels.max() >= scores.shape[1]:
            raise PowerlabError(
                f"the label {labels.max()} is none of the {scores.shape[1]} classes of {workload.model}, which begin "
                "with 0; give labels of this model's classes."
            )
        yield int(np.count_nonzero(scores[:kept].argmax(axis=1) == labels))
