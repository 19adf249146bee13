"""The machine that makes a bundle, and the models of a plan."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import distributions
from pathlib import Path

from powerlab import __version__
from powerlab.boards.processor import cpu_model
from powerlab.bundles.manifest import MODELS, BundledModel, Environment
from powerlab.domain.model_name import stored_model
from powerlab.sysroot import Sysroot

SMALL_BYTES = 8 << 20
"""Model files up to this size are packed without being asked for."""


def this_machine() -> Environment:
    """Describe the machine that this runs on."""
    found = {f"{one.name.lower()}=={one.version}" for one in distributions() if one.name}
    return Environment(
        powerlab=__version__,
        python=platform.python_version(),
        packages=tuple(sorted(found)),
        kernel=platform.release(),
        architecture=platform.machine(),
        processor=cpu_model(Sysroot()),
    )


def identify(word: str, *, with_model: bool, measured_from_s: float) -> BundledModel:
    """Return which model a plan's word means, and whether it is packed.

    Args:
        word: a zoo name, the path of a file, or a model on a server.
        with_model: whether files are packed however large they are.
        measured_from_s: when the first run began, in s since 1970: a file changed later may be another one.
    """
    stored = stored_model(word)
    if stored is not None:
        return BundledModel(
            name=word, kind="server", sha256=stored.sha256, remark="on the server under this SHA-256; not in the bundle"
        )
    path = Path(word)
    if path.suffix != ".onnx" and not path.is_file():
        return BundledModel(name=word, kind="zoo", remark="built by powerlab, with seeded weights")
    if not path.is_file():
        return BundledModel(name=word, kind="file", remark="the file was gone when the bundle was made")
    sha256, status = sha256_of(path), path.stat()
    changed = status.st_mtime > measured_from_s
    remark = "the file was changed after the sweep began, so it may not be the one that was measured" if changed else ""
    packed = with_model or status.st_size <= SMALL_BYTES
    return BundledModel(
        name=word,
        kind="file",
        sha256=sha256,
        size_bytes=status.st_size,
        member=f"{MODELS}{sha256}.onnx" if packed else "",
        remark=remark,
    )


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256, read a block at a time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
