"""Calibrations are kept: one file a model, named by the hash of its content, in powerlab's state directory."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from powerlab.atomic_file import write_whole
from powerlab.domain.errors import PowerlabError
from powerlab.engine.prepared.cache import cache_folder
from powerlab.engine.prepared.key import model_digest
from powerlab.engine.quantization.calibrate import Calibration
from powerlab.state_dir import state_dir


def calibration_file(model: str | Path) -> Path | None:
    """Return where the calibration of a model is kept; None where there is no such model."""
    digest = model_digest(model, cache_folder(), os.cpu_count() or 1)
    if digest is None:
        return None
    return state_dir() / "calibrations" / f"{hashlib.sha256(digest.encode()).hexdigest()}.json"


def kept_calibration(model: str | Path) -> Calibration | None:
    """Return the calibration that is kept of a model; None where there is none.

    Raises:
        PowerlabError: its file is damaged.
    """
    path = calibration_file(model)
    if path is None or not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except (OSError, msgspec.DecodeError) as error:
        raise PowerlabError(f"{path} is no calibration ({error}); remove it, and calibrate the model again.") from None


def keep_calibration(model: str | Path, calibration: Calibration) -> None:
    """Keep the calibration of a model.

    Raises:
        PowerlabError: it cannot be written.
    """
    path = calibration_file(model)
    if path is None:
        return
    try:
        write_whole(path, msgspec.json.encode(calibration))
    except OSError as error:
        raise PowerlabError(f"{path} cannot be written: {error.strerror or error}.") from None
