"""As much of TensorRT's Python package as powerlab calls, after its reference; networks run in the built-in engine.

It proves that calls follow each other as they must and that numbers go to the card and back, and nothing about NVIDIA's
own package or kernels.
"""

from __future__ import annotations

import ctypes
import math
from enum import IntEnum

import numpy as np

from powerlab.engine import Session

__version__ = "10.13.0"


class Logger:
    ERROR = 1

    def __init__(self, severity):
        assert severity == self.ERROR


class BuilderFlag(IntEnum):
    FP16 = 0
    TF32 = 7


class NetworkDefinitionCreationFlag(IntEnum):
    EXPLICIT_BATCH = 0


class DataType(IntEnum):
    FLOAT = 0


def nptype(dtype):
    return {DataType.FLOAT: np.float32}[dtype]


class _Config:
    def __init__(self):
        self.flags = {BuilderFlag.TF32}

    def set_flag(self, flag):
        self.flags.add(flag)

    def clear_flag(self, flag):
        self.flags.discard(flag)


class _Network:
    content = b""


class _Error:
    def desc(self):
        return "In node 0: UNSUPPORTED_NODE\nmore of it"


class OnnxParser:
    refuses = False

    def __init__(self, network, logger):
        self._network = network
        self.num_errors = 0

    def parse(self, content):
        self._network.content, self.num_errors = content, int(self.refuses)
        return not self.refuses

    def get_error(self, index):
        assert 0 <= index < self.num_errors
        return _Error()


class Builder:
    flags = None

    def __init__(self, logger):
        assert isinstance(logger, Logger)

    def create_network(self, flags):
        assert flags == 1 << NetworkDefinitionCreationFlag.EXPLICIT_BATCH
        return _Network()

    def create_builder_config(self):
        return _Config()

    def build_serialized_network(self, network, config):
        Builder.flags = config.flags
        return memoryview(network.content)


class Runtime:
    folder = None

    def __init__(self, logger):
        assert isinstance(logger, Logger)

    def deserialize_cuda_engine(self, plan):
        path = self.folder / "network.onnx"
        path.write_bytes(bytes(plan))
        return _Engine(Session(path, 1))


class _Engine:
    def __init__(self, session):
        self.session = session
        self._shapes = {**session.inputs, **session.outputs}
        self.num_io_tensors = len(self._shapes)

    def get_tensor_name(self, index):
        return list(self._shapes)[index]

    def get_tensor_shape(self, name):
        return self._shapes[name]

    def get_tensor_dtype(self, name):
        return DataType.FLOAT

    def create_execution_context(self):
        return IExecutionContext(self)


class IExecutionContext:
    def __init__(self, engine):
        self._engine, self._addresses = engine, {}

    def set_tensor_address(self, name, address):
        self._addresses[name] = address

    def execute_async_v3(self, stream_handle):
        session = self._engine.session
        made = session.run({name: self._at(name).copy() for name in session.inputs})
        for name, value in made.items():
            self._at(name)[...] = value
        return stream_handle != 0

    def _at(self, name):
        shape = self._engine.get_tensor_shape(name)
        memory = (ctypes.c_float * math.prod(shape)).from_address(self._addresses[name])
        return np.ctypeslib.as_array(memory).reshape(shape)
