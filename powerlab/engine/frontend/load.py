"""One way to every model: the name of a zoo model or the path of an ONNX file becomes a checked graph."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from pathlib import Path

from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph
from powerlab.engine.ir.open_model import OpenModel


def load_graph(
    model: str | Path,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch_size: int | None = None,
    *,
    unrolled: bool = True,
) -> Graph:
    """Return the graph of a model, not optimised, every shape static.

    Args:
        model: a zoo name, with the size of its images where it is not the usual one (``resnet50``, ``resnet50@256``),
            or the path of an ONNX file. A path has a ``/`` or a suffix.
        shapes: input name → shape in NCHW, where the model leaves it open or another one is wanted.
        batch_size: size of the first axis of every input not in ``shapes``; None: as the model says (zoo: 1).
        unrolled: whether all rounds of a Loop stand side by side, however many there are.

    Raises:
        NeedsRunError: the shape of an input is open, or only a run gives a value that decides a shape.
        PowerlabError: no such model, or the engine cannot run it; one sentence with the model and the node.
    """
    shapes = _checked_shapes(shapes, batch_size)
    if in_zoo(model):
        return _load_zoo(str(model), shapes, batch_size or 1)
    from powerlab.engine.frontend.onnx_reader import read_onnx

    return read_onnx(_file(model), shapes, batch_size, unrolled=unrolled)


def load_open(
    model: str | Path, shapes: Mapping[str, tuple[int, ...]] | None = None, batch_size: int | None = None
) -> OpenModel:
    """Return a model of which only a run tells the shapes; the arguments are those of :func:`load_graph`.

    Raises:
        PowerlabError: no such file, or it is no ONNX.
    """
    from powerlab.engine.frontend.onnx_reader import read_open

    return read_open(_file(model), _checked_shapes(shapes, batch_size), batch_size)


def check_name(model: str | Path) -> None:
    """Refuse a name that no model has; whether a file can be read shows when it is loaded.

    Raises:
        PowerlabError: there is no such model.
    """
    if not in_zoo(model):
        _file(model)


def in_zoo(model: str | Path) -> bool:
    """Tell whether a model is named, not a file: the zoo is not even imported for what must be a path."""
    if not _may_be_name(model):
        return False
    from powerlab.engine.frontend.zoo import ZOO

    return split_size(str(model))[0] in ZOO


def _may_be_name(model: str | Path) -> bool:
    return isinstance(model, str) and "/" not in model and not Path(model).suffix


def _file(model: str | Path) -> Path:
    path = Path(model)
    if _may_be_name(model) and not path.exists():
        from powerlab.engine.frontend.zoo import ZOO

        known = ", ".join(sorted(ZOO))
        raise PowerlabError(
            f"there is no model {str(model)[:80]!r}{meant(str(model)[:80], sorted(ZOO))}; known are {known}, or give "
            "the path of an ONNX file."
        )
    return path


def _checked_shapes(shapes: Mapping[str, tuple[int, ...]] | None, batch_size: int | None) -> dict[str, tuple[int, ...]]:
    if batch_size is not None and batch_size < 1:
        raise PowerlabError(f"the batch size must be 1 or more, but {batch_size} was given.")
    return _whole_shapes(shapes or {})


def _whole_shapes(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Return the shapes as plain ints; a size of 1.5 or "3" is a mistake that must not pass as another size."""
    if not isinstance(shapes, Mapping):
        raise PowerlabError(f'shapes must be a dict such as {{"x": (1, 3, 224, 224)}}, not {str(shapes)[:80]!r}.')
    whole: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        try:
            whole[name] = tuple(operator.index(size) for size in shape)
        except TypeError:
            raise PowerlabError(
                f"the shape of the input {str(name)[:80]!r} must be integers such as (1, 3, 224, 224), "
                f"not {str(shape)[:80]!r}."
            ) from None
    return whole


def split_size(model: str) -> tuple[str, tuple[int, int] | None]:
    """Return a zoo name without the size of its images, and that size: ``resnet152@256`` or ``yolov3@416x608``.

    The size is None where none is named, or where what follows the ``@`` is none: then it belongs to the name.
    """
    match = re.fullmatch(r"([^@]+)@([0-9]{1,5})(?:x([0-9]{1,5}))?", model)
    if match is None:
        return model, None
    return match[1], (int(match[2]), int(match[3] or match[2]))


def _load_zoo(model: str, shapes: dict[str, tuple[int, ...]], batch_size: int) -> Graph:
    from powerlab.engine.frontend.zoo import INPUT_NAME, ZOO

    name, size = split_size(model)
    usual = ZOO[name].input_shape
    if size is not None and len(usual) != 3:
        raise PowerlabError(f"{name} takes no images, so {model!r} has no meaning; name it without a size.")
    shape = shapes.pop(INPUT_NAME, (batch_size, *usual) if size is None else (batch_size, usual[0], *size))
    if shapes:
        raise PowerlabError(f"{name} has no input {next(iter(shapes))!r}; its input is {INPUT_NAME!r}.")
    wanted, fixed = _taken(usual)
    if len(shape) != 1 + len(usual) or shape[fixed] != usual[fixed - 1] or min(shape) < 1:
        raise PowerlabError(f"{name} takes {wanted}, but {shape} was given.")
    try:
        return ZOO[name].build(shape)
    except PowerlabError as error:
        raise error.named(f"{name} cannot take images of shape {shape}: ") from None


def _taken(usual: tuple[int, ...]) -> tuple[str, int]:
    """Return in words what a network of the zoo takes, and the axis whose size is always the usual one."""
    match usual:
        case (features,):
            return f"rows of shape (batch, {features})", 1
        case (_, features):
            return f"sequences of shape (batch, steps, {features})", 2
    return f"images of shape (batch, {usual[0]}, height, width)", 1
