"""An ONNX graph while it is written: nodes that are made once, constants, and what shape everything really has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 18  # 2022: runtimes that are in use know it
IR_VERSION = 8  # of the same year


@dataclass(frozen=True)
class Constant:
    """An array that is known when the graph is written."""

    array: NDArray[Any]
    name: str  # what it is, for a reader of the graph


@dataclass(frozen=True)
class Value:
    """A tensor that is computed. A side of 1 may stand for a longer one: operators repeat it unasked."""

    name: str
    shape: tuple[Any, ...]  # a number, or an expression in the number of rows
    dtype: np.dtype[Any]


Tensor = Constant | Value


class Graph:
    """Nodes and constants in the order in which they were made; asked for twice, a node is there once."""

    def __init__(self, inputs: list[Value]) -> None:
        self.inputs = inputs
        self._nodes: list[onnx.NodeProto] = []
        self._made: dict[Any, tuple[str, ...]] = {}
        self._constants: dict[Any, tuple[str, NDArray[Any]]] = {}
        self._names = {value.name for value in inputs}

    def node(self, operator: str, *inputs: Tensor | NDArray[Any], outputs: int = 1, **attributes: Any) -> list[str]:
        """The names of an operator's outputs."""
        names = [self._name_of(tensor) for tensor in inputs]
        key = (operator, tuple(names), repr(sorted(attributes.items())), outputs)
        if key not in self._made:
            made = tuple(self._fresh(operator.lower()) for _ in range(outputs))
            self._nodes.append(helper.make_node(operator, names, list(made), name=made[0], **attributes))
            self._made[key] = made
        return list(self._made[key])

    def model(self, outputs: list[Value], **about: str) -> onnx.ModelProto:
        """The whole, without what no output needs; `about` is kept in the file."""
        nodes, needed = [], {value.name for value in outputs}
        for node in reversed(self._nodes):
            if needed & set(node.output):
                needed |= set(node.input)
                nodes.append(node)
        constants = [numpy_helper.from_array(array, name) for name, array in self._constants.values() if name in needed]
        graph = helper.make_graph(
            nodes[::-1], "policy", [_info(one) for one in self.inputs], [_info(one) for one in outputs], constants
        )
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="dr3")
        helper.set_model_props(model, about)
        onnx.checker.check_model(model, full_check=True)
        return model

    def output(self, value: Value, name: str) -> Value:
        """The same under the name that users know."""
        self._nodes.append(helper.make_node("Identity", [value.name], [name], name=name))
        return Value(name, value.shape, value.dtype)

    def _name_of(self, tensor: Tensor | NDArray[Any]) -> str:
        if isinstance(tensor, Value):
            return tensor.name
        array, called = (tensor.array, tensor.name) if isinstance(tensor, Constant) else (tensor, "constant")
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = (self._fresh(called), array)
        return self._constants[key][0]

    def _fresh(self, called: str) -> str:
        number = 2
        name = called
        while name in self._names:
            name, number = f"{called}_{number}", number + 1
        self._names.add(name)
        return name


def element_type(dtype: Any) -> int:
    """ONNX's number for a type."""
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def _info(value: Value) -> onnx.ValueInfoProto:
    sides = [side if isinstance(side, int) else str(side) for side in value.shape]
    return helper.make_tensor_value_info(value.name, element_type(value.dtype), sides)


__all__ = ["Constant", "Graph", "Tensor", "TensorProto", "Value", "element_type"]
