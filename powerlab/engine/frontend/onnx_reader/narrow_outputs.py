"""Which nodes make elements of types that numpy lacks: their attributes state it, as nobody can see it later.

QuantizeLinear has the type of its zero points, CastLike that of its second input; the engine holds both in other types.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from powerlab.engine.frontend.onnx_reader import schema
from powerlab.engine.ir.narrow_types import NARROW


class NarrowOutputs(Struct, frozen=True):
    """What is known of the types of tensors while nodes are read, in order.

    Attributes:
        numbers: tensor -> ONNX element type number, where numpy lacks the type.
    """

    numbers: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: schema.GraphMessage) -> NarrowOutputs:
        """Return what the inputs and constants of a graph tell."""
        kinds = [(value.name, value.type.tensor_type) for value in graph.input]
        given = [(name, kind.elem_type) for name, kind in kinds if kind is not None]
        given += [(tensor.name, tensor.data_type) for tensor in graph.initializer]
        return cls({name: number for name, number in given if number in NARROW})

    def stated(self, message: schema.NodeMessage, attributes: Mapping[str, object]) -> Mapping[str, object]:
        """Return the attributes of a node, with the type it makes where only another tensor's type tells."""
        inputs, operator = message.input, message.op_type
        number = 0
        if operator == "Constant":
            number = next((one.t.data_type for one in message.attribute if one.t is not None), 0)
        elif operator == "Cast":
            to = attributes.get("to")
            number = to if isinstance(to, int) else 0
        elif operator == "QuantizeLinear":
            stated = attributes.get("output_dtype")
            number = stated if isinstance(stated, int) and stated else self._of(inputs, 2)
            if number in NARROW:
                attributes = {**attributes, "output_dtype": number}
        elif operator == "CastLike":
            number = self._of(inputs, 1)
            if number in NARROW:
                attributes = {**attributes, "to": number}
        elif operator in ("Identity", "Reshape"):
            number = self._of(inputs, 0)
        if number in NARROW:
            self.numbers.update((name, number) for name in message.output if name)
        return attributes

    def _of(self, inputs: list[str], index: int) -> int:
        return self.numbers.get(inputs[index], 0) if index < len(inputs) else 0
