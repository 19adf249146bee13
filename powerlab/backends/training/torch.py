"""Training in PyTorch on the cores or a graphics processor, in eager mode.

The model is the graph as it was loaded, one torch function a node, and has the same parameters, initial weights and
loss as in the built-in engine. Images and kernels lie in the order ``channels_last``, activations overwrite what nobody
else reads, and the optimizer is the fused one, as PyTorch's performance tuning guide advises. In bfloat16,
``torch.autocast`` says what is computed so; weights stay in float32. On a graphics processor a batch goes there and its
loss comes back in each step, and the parts of a step end when the processor is done with them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.backends.base import LoadOptions
from powerlab.backends.offers import check_offers, check_threads
from powerlab.backends.packages import required
from powerlab.backends.torch import card, name_of, not_compiled
from powerlab.backends.training.batch import RATE, batch
from powerlab.backends.training.torch_functions import Tensor, torch_functions
from powerlab.backends.training.torch_loss import labels_for_torch, torch_loss
from powerlab.domain.errors import PowerlabError
from powerlab.domain.training import PRECISIONS
from powerlab.domain.workload import Processor
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph
from powerlab.engine.training.forward import forward_pass
from powerlab.engine.training.parts import PARTS

_OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9}),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {"weight_decay": 0.01}),
}


class TorchTrainer:
    """A model in training; fulfils :class:`powerlab.backends.base.Backend`.

    Args:
        graph: the model as it was loaded.
        torch: the package.
        optimizer: one of :data:`powerlab.domain.training.OPTIMIZERS`.
        precision: one of :data:`powerlab.domain.training.PRECISIONS`.
        device: ``cpu``, or torch's word for the graphics processor.
        compiled: whether ``torch.compile`` compiles forward pass and gradients.
    """

    def __init__(
        self,
        graph: Graph,
        torch: Any,
        optimizer: str,
        *,
        precision: str = "fp32",
        device: str = "cpu",
        compiled: bool = False,
    ) -> None:
        self._torch, self._graph, self._steps_done = torch, graph, 0
        self._device, self.processor_name = device, name_of(torch, device)
        self.part_ns: dict[str, int] = {}
        self._functions = torch_functions(torch, graph)
        names = forward_pass(graph).parameters
        self._values = {name: self._constant(np.array(value)) for name, value in graph.constants.items()}
        for name in names:
            self._values[name].requires_grad_()
        kind, settings = _OPTIMIZERS[optimizer]
        parameters = [self._values[name] for name in names]
        self._optimizer = getattr(torch.optim, kind)(parameters, lr=RATE, fused=True, **settings)
        self._of_outputs = torch_loss(torch, graph)
        self._loss = torch.compile(self._forward, dynamic=False) if compiled else self._forward
        self._narrow = precision == "bf16"

    def inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return a seeded batch."""
        return batch(self._graph, seed)

    def run(self, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
        """Make one step.

        Raises:
            PowerlabError: the loss is no number any more.
        """
        times_ns = [self._now_ns()]
        given = {name: self._tensor(value) for name, value in labels_for_torch(self._graph, inputs).items()}
        loss = self._loss_of(given)
        times_ns.append(self._now_ns())
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        times_ns.append(self._now_ns())
        self._optimizer.step()
        times_ns.append(self._now_ns())
        self.part_ns = dict(zip(PARTS, map(int, np.diff(times_ns)), strict=True))
        self._steps_done += 1
        found = float(loss.detach())
        if not np.isfinite(found):
            raise PowerlabError(f"the loss of step {self._steps_done} is {found:g}.")
        return {"loss": np.array([found], np.float32)}

    def compile(self) -> None:
        """Go forward and backward once, for which a compiled model is compiled, and leave it as it was.

        Raises:
            PowerlabError: what the compiler makes of the model does not run, as of an LSTM in PyTorch 2.13.
        """
        given = {name: self._tensor(value) for name, value in labels_for_torch(self._graph, self.inputs(0)).items()}
        kept = [(value, value.clone()) for value in self._values.values() if not value.requires_grad]
        try:
            self._loss_of(given).backward()
        except (RuntimeError, TypeError) as error:
            raise not_compiled("train", self._graph, error) from error
        self._optimizer.zero_grad(set_to_none=True)
        for value, before in kept:  # running statistics
            value.copy_(before)

    def _loss_of(self, given: dict[str, Tensor]) -> Tensor:
        with self._torch.autocast(self._device, self._torch.bfloat16, enabled=self._narrow):
            return self._loss(given)

    def _forward(self, given: dict[str, Tensor]) -> Tensor:
        values = {"": None} | self._values | given  # an input that is left out has no name
        for function in self._functions:
            made = function.compute(*(values[name] for name in function.inputs))
            values.update(zip(function.outputs, made if isinstance(made, tuple) else (made,), strict=False))
        return self._of_outputs(values, given)

    def _tensor(self, value: NDArray[Any]) -> Tensor:
        tensor = self._torch.from_numpy(np.require(value, requirements=("C", "W")))
        images = value.ndim == 4 and value.dtype == np.float32
        return (tensor.contiguous(memory_format=self._torch.channels_last) if images else tensor).to(self._device)

    def _constant(self, value: NDArray[Any]) -> Tensor:
        """Return a constant where the model lies; shapes and numbers alone, which the host looks at, stay with it."""
        return self._tensor(value) if value.ndim and value.dtype.kind == "f" else self._torch.from_numpy(value)

    def _now_ns(self) -> int:
        """Return the time at which everything so far is done."""
        if self._device != "cpu":
            getattr(self._torch, self._device).synchronize()
        return time.monotonic_ns()


def load(options: LoadOptions) -> TorchTrainer:
    """Load a model; raises as :func:`load_with` does."""
    return load_with("torch", options)


def load_with(engine: str, options: LoadOptions, *, compiled: bool = False) -> TorchTrainer:
    """Load a model; torch uses exactly the threads given, in one operator at a time.

    Raises:
        PowerlabError: torch is not installed or does not offer what is asked for, finds no graphics processor, or the
            model cannot be read or has an operator that is not translated, or that ``torch.compile`` makes something of
            that does not run.
    """
    check_offers(engine, options, PRECISIONS)
    torch = required(engine, "torch")
    device = "cpu" if options.processor is Processor.CPU else card(engine, torch)
    torch.set_num_threads(options.threads)
    check_threads(engine, options.threads, torch.get_num_threads())
    graph = load_graph(options.model, batch_size=options.batch_size)
    trainer = TorchTrainer(
        graph, torch, options.optimizer, precision=options.precision, device=device, compiled=compiled
    )
    if compiled:
        trainer.compile()
    return trainer
