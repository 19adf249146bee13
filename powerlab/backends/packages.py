"""Which packages the engines under test come in, whether they are installed here, and how to install them."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from powerlab.domain.errors import PowerlabError


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """What an engine needs.

    Attributes:
        modules: what it imports; the first one is the engine itself.
        distributions: names under which package indexes hold the engine; any of them will do.
        install: the command that installs it.
        on_card: the command where it is to compute on a graphics processor; the same where this is empty.
    """

    modules: tuple[str, ...]
    distributions: tuple[str, ...]
    install: str
    on_card: str = ""


_TORCH = Package(
    modules=("torch",),
    distributions=("torch",),
    install="pip install torch --index-url https://download.pytorch.org/whl/cpu",
    on_card="pip install torch",
)

PACKAGES: dict[str, Package] = {
    "builtin": Package(modules=("powerlab",), distributions=("powerlab",), install="pip install powerlab"),
    "onnxruntime": Package(
        modules=("onnxruntime", "onnx"),
        distributions=("onnxruntime", "onnxruntime-gpu"),
        install="pip install onnx onnxruntime",
        on_card="pip install onnx onnxruntime-gpu",
    ),
    "onnxruntime-tensorrt": Package(
        modules=("onnxruntime", "onnx"),
        distributions=("onnxruntime-gpu",),
        install="pip install onnx onnxruntime-gpu",
    ),
    "tensorrt": Package(
        modules=("tensorrt", "onnx"),
        distributions=("tensorrt", "tensorrt-cu12", "tensorrt-cu13"),
        install="pip install onnx tensorrt",
    ),
    "openvino": Package(modules=("openvino", "onnx"), distributions=("openvino",), install="pip install onnx openvino"),
    "torch": _TORCH,
    "torch-compile": _TORCH,
    "litert": Package(
        modules=("ai_edge_litert", "flatbuffers"),
        distributions=("ai-edge-litert",),
        install="pip install ai-edge-litert",
    ),
    "ncnn": Package(modules=("ncnn",), distributions=("ncnn",), install="pip install ncnn"),
}
"""Name of each engine and what it needs; none of it is a dependency of powerlab itself."""


def installed_version(engine: str) -> str | None:
    """Return the version of an engine that is installed here, without importing it; None where it is not."""
    package = PACKAGES.get(engine)
    if package is None or any(importlib.util.find_spec(module) is None for module in package.modules):
        return None
    for distribution in package.distributions:
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return None


def check_installed(engine: str, *, on_card: bool = False) -> None:
    """Refuse an engine that is not installed here; ``on_card``: it is to compute on a graphics processor.

    Raises:
        PowerlabError: how to install it.
    """
    if installed_version(engine) is None:
        package = PACKAGES[engine]
        command = (on_card and package.on_card) or package.install
        raise PowerlabError(f"the engine {engine!r} is not installed here; install it with `{command}`.")


def required(engine: str, module: str) -> Any:
    """Import and return a module of an engine's package; only the worker process that runs the engine does so.

    Raises:
        PowerlabError: the engine is not installed, or its package cannot be loaded here.
    """
    check_installed(engine)
    try:
        return importlib.import_module(module)
    except (ImportError, OSError) as error:
        raise PowerlabError(
            f"the engine {engine!r} is installed but cannot be loaded ({error}); "
            f"install it anew with `{PACKAGES[engine].install}`."
        ) from error
