"""The functions inside recurrent cells, which ONNX names by an attribute of LSTM, GRU and RNN.

Source: https://onnx.ai/onnx/operators/onnx__LSTM.html, attribute ``activations``.
"""

from __future__ import annotations

from msgspec import Struct

from powerlab.engine.ops.view import NodeView


class CellFunction(Struct, frozen=True, kw_only=True):
    """A function of one number, by its name in ONNX in small letters, with what it multiplies by and adds."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def code(self) -> int:
        """Return the number by which the kernels ``recurrence_*`` know the function."""
        return list(_USUAL).index(self.name)


_USUAL: dict[str, tuple[float | None, float | None]] = {
    "sigmoid": (None, None),
    "tanh": (None, None),
    "relu": (None, None),
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01, None),
    "thresholdedrelu": (1.0, None),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, None),
    "softsign": (None, None),
    "softplus": (None, None),
}
"""Function → alpha and beta where the node does not say; None where the function has none. Kernels count them so."""


def cell_functions(view: NodeView, usual: tuple[str, ...], directions: int) -> tuple[tuple[CellFunction, ...], ...]:
    """Return the functions of each direction of a recurrent node.

    Args:
        view: the node.
        usual: their names where it names none, for one direction.
        directions: how many cells the node has.
    """
    names = view.texts("activations", usual * directions)
    alphas, betas = list(view.numbers("activation_alpha", ())), list(view.numbers("activation_beta", ()))
    if len(names) != len(usual) * directions:
        view.fail(f"has {len(names)} activations; it needs {len(usual)} for each direction")
    found = []
    for name in (name.lower() for name in names):
        if name not in _USUAL:
            view.fail(f"has the activation {name[:30]!r}; known are {', '.join(_USUAL)}")
        alpha, beta = _USUAL[name]
        found.append(
            CellFunction(
                name=name,
                alpha=0.0 if alpha is None else alphas.pop(0) if alphas else alpha,
                beta=0.0 if beta is None else betas.pop(0) if betas else beta,
            )
        )
    return tuple(tuple(found[at : at + len(usual)]) for at in range(0, len(found), len(usual)))
