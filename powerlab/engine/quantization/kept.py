"""Calibrations are kept in powerlab's state directory, named by the hash of the model's content.

One that somebody gave data for is of the model, whatever the size of its images; one by random numbers is of one size,
because tensors have other ranges at another.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from powerlab.atomic_file import write_whole
from powerlab.domain.errors import PowerlabError
from powerlab.engine.prepared.cache import cache_folder
from powerlab.engine.prepared.key import model_digest
from powerlab.engine.quantization.calibrate import Calibration
from powerlab.state_dir import state_dir


def kept_calibration(model: str | Path, shapes: Mapping[str, tuple[int, ...]]) -> Calibration | None:
    """Return the calibration that is kept of a model for images of the given shapes; None where there is none.

    Raises:
        PowerlabError: its file is damaged.
    """
    for path in (_file(model, {}), _file(model, shapes)):
        if path is None or not path.is_file():
            continue
        try:
            return msgspec.json.decode(path.read_bytes(), type=Calibration)
        except (OSError, msgspec.DecodeError) as error:
            raise PowerlabError(
                f"{path} is no calibration ({error}); remove it, and calibrate the model again."
            ) from None
    return None


def keep_calibration(model: str | Path, calibration: Calibration) -> None:
    """Keep the calibration of a model.

    Raises:
        PowerlabError: it cannot be written.
    """
    path = _file(model, calibration.shapes if calibration.random else {})
    if path is None:
        return
    try:
        write_whole(path, msgspec.json.encode(calibration))
    except OSError as error:
        raise PowerlabError(f"{path} cannot be written: {error.strerror or error}.") from None


def _file(model: str | Path, shapes: Mapping[str, tuple[int, ...]]) -> Path | None:
    """Return where a calibration is kept; None where there is no such model."""
    digest = model_digest(model, cache_folder(), os.cpu_count() or 1)
    if digest is None:
        return None
    sizes = "".join(f" {name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))
    kind = "random" if shapes else "data"
    return state_dir() / "calibrations" / f"{hashlib.sha256(f'{kind} {digest}{sizes}'.encode()).hexdigest()}.json"
