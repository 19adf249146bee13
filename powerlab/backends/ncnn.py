"""ncnn on the cores, or through Vulkan on a graphics processor.

It takes one image at a time: of a batch, one after the other.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.backends.base import LoadOptions
from powerlab.backends.ncnn_bytes import without_bytes
from powerlab.backends.ncnn_model import ncnn_model
from powerlab.backends.offers import check_offers
from powerlab.backends.packages import required
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.engine.codegen.attributes import number
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise_for_others
from powerlab.engine.quantization.precisions import in_precision


class NcnnBackend:
    """A net of ncnn; fulfils :class:`powerlab.backends.base.Backend`."""

    def __init__(
        self, graph: Graph, batch_size: int, net: Any, mat: Any, *, names: dict[str, str], processor_name: str
    ) -> None:
        self.processor_name = processor_name
        self._net = net
        self._mat = mat
        self._names = names
        self._batch_size = batch_size
        self._inputs = {info.name: (batch_size, *info.shape[1:]) for info in graph.inputs}
        self._outputs = {info.name: info.shape[1:] for info in graph.outputs}

    def inputs(self, seed: int) -> dict[str, NDArray[np.float32]]:
        """Return the seeded inputs."""
        return synthetic_inputs(self._inputs, seed)

    def run(self, inputs: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        """Run one inference of the whole batch."""
        outputs = {name: np.empty((self._batch_size, *shape), np.float32) for name, shape in self._outputs.items()}
        for image in range(self._batch_size):
            extractor = self._net.create_extractor()
            for name, values in inputs.items():
                # A copy, because layers may compute in place, and on rows that are aligned.
                extractor.input(self._names[name], self._mat(values[image]).clone())
            for name, shape in self._outputs.items():
                code, made = extractor.extract(self._names[name])
                if code != 0:
                    raise RuntimeError(f"ncnn could not compute {name} (code {code})")
                outputs[name][image] = np.asarray(made).reshape(shape)
        return outputs


def load(options: LoadOptions) -> NcnnBackend:
    """Load a model; every layer uses exactly the threads given.

    Raises:
        PowerlabError: ncnn is not installed, does not offer what is asked for, or has no such operator.
    """
    ncnn = required("ncnn", "ncnn")
    on_card = options.processor is Processor.GPU
    half = on_card or ncnn.cpu_support_arm_asimdhp()
    check_offers("ncnn", options, ("fp32", *(() if on_card else ("bf16", "int8")), *(("fp16",) if half else ())))
    processor_name = _card(ncnn) if on_card else ""
    loaded = without_bytes(in_precision(_single_image(options), options.model, options.precision))
    graph = optimise_for_others(loaded.graph)
    if options.precision == "bf16":
        _refuse_groups(graph, options.precision)
    if loaded.largest:
        _refuse_rows(graph)
    text, weights, names = ncnn_model(graph, loaded.largest)
    net = ncnn.Net()
    net.opt.num_threads = options.threads
    net.opt.use_vulkan_compute = on_card
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = options.precision == "fp16"
    net.opt.use_bf16_packed = net.opt.use_bf16_storage = options.precision == "bf16"
    with tempfile.NamedTemporaryFile() as file:  # from memory, a net would go on reading what Python has freed
        file.write(weights)
        file.flush()
        if net.load_param_mem(text) != 0 or net.load_model(file.name) != 0:
            raise PowerlabError(f"ncnn refuses {options.model}; use another engine for this model.")
    backend = NcnnBackend(graph, options.batch_size, net, ncnn.Mat, names=names, processor_name=processor_name)
    if on_card:
        backend.run(backend.inputs(0))  # its kernels are compiled by the first inference, which is part of loading
    return backend


def _card(ncnn: Any) -> str:
    """Return the driver's name of the graphics processor that ncnn takes by itself.

    Raises:
        PowerlabError: there is no Vulkan driver.
    """
    if ncnn.get_gpu_count() < 1:
        raise PowerlabError(
            "ncnn finds no graphics processor with a Vulkan driver; install the vendor's driver, or Debian's "
            "mesa-vulkan-drivers."
        )
    return str(ncnn.get_gpu_info(ncnn.get_default_gpu_index()).device_name())


def _refuse_rows(graph: Graph) -> None:
    """Refuse layers that others compute with bytes, but ncnn, with scales that are known before, does not."""
    for node in graph.nodes:
        if node.op_type == "FusedGemm" and graph.shape(node.inputs[0])[0] > 1:
            raise PowerlabError(
                f"ncnn computes {node}, of several rows, in floats or with scales of its own; use another engine for "
                "this model in int8."
            )


def _refuse_groups(graph: Graph, precision: str) -> None:
    """Refuse convolutions of groups that are no single channels: seen to give garbage in bf16 (ncnn 1.0.20261020)."""
    for node in graph.nodes:
        if node.op_type == "FusedConv":
            group, channels = int(number(node, "group")), graph.shape(node.inputs[0])[1]
            if group > 1 and not group == channels == graph.shape(node.outputs[0])[1]:
                raise PowerlabError(
                    f"ncnn computes {node}, which has {group} groups, wrongly in {precision}; ask for fp32, or use "
                    "another engine."
                )


def _single_image(options: LoadOptions) -> Graph:
    """Return the loaded graph for one image, where a batch is nothing else than several of them."""
    batch, single = (load_graph(options.model, batch_size=size) for size in (options.batch_size, 1))
    for whole, part in zip(batch.outputs, single.outputs, strict=True):
        if whole.shape != (options.batch_size, *part.shape[1:]):
            raise PowerlabError(
                f"ncnn takes one image at a time, but the output {part.name!r} of {options.model} is not one an image; "
                "use another engine for this model."
            )
    return single
