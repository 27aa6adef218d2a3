"""JAX's primitives as ONNX operators. What is not here has no counterpart, and is said by name.

A network is traced, not read: `tests/contracts/test_export.py` holds all methods to it, and a plugin's network that is
made of these primitives needs nothing of its own. Each rule is called with the graph, the equation and its inputs, and
gives the names of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dr3.export.graph import Constant, Graph, Tensor, Value, element_type

Rule = Callable[..., list[str]]


class NoCounterpart(Exception):
    """What a policy computes and ONNX, or this file, does not know."""


def sides_of(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.array.shape if isinstance(tensor, Constant) else tensor.shape


# Sides of 1 are repeated by these themselves.
ELEMENTWISE: dict[str, Rule] = {}
RULES: dict[str, Rule] = {}


def _elementwise(**operators: str) -> None:
    for primitive, operator in operators.items():
        ELEMENTWISE[primitive] = lambda graph, equation, *inputs, operator=operator: graph.node(operator, *inputs)


_elementwise(add="Add", add_any="Add", sub="Sub", mul="Mul", div="Div", min="Min", pow="Pow")
_elementwise(neg="Neg", abs="Abs", sign="Sign", exp="Exp", log="Log", tanh="Tanh", logistic="Sigmoid", sqrt="Sqrt")
_elementwise(
    floor="Floor",
    ceil="Ceil",
    erf="Erf",
    sin="Sin",
    cos="Cos",
    copy="Identity",
    copy_p="Identity",
    stop_gradient="Identity",
)
_elementwise(gt="Greater", ge="GreaterOrEqual", lt="Less", le="LessOrEqual", eq="Equal")
_elementwise(**{"and": "And", "or": "Or", "not": "Not", "xor": "Xor"})  # of booleans; ONNX refuses others


def _rule(*primitives: str, among: dict[str, Rule] = RULES) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        among.update(dict.fromkeys(primitives, rule))
        return rule

    return add


def _value(equation: Any, name: str, number: int = 0) -> Value:
    """A step on the way to an output, of its shape and type."""
    aval = equation.outvars[number].aval
    return Value(name, aval.shape, aval.dtype)


def _one(graph: Graph, equation: Any, operator: str, *inputs: Any, **attributes: Any) -> Value:
    (name,) = graph.node(operator, *inputs, **attributes)
    return _value(equation, name)


def _integers(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int64)


# --- Element by element ---


@_rule("max", among=ELEMENTWISE)
def _max(graph: Graph, equation: Any, *inputs: Tensor) -> list[str]:
    for constant, other in (inputs, inputs[::-1]):
        if isinstance(constant, Constant) and constant.array.dtype == np.float32 and not constant.array.any():
            return graph.node("Relu", other)
    return graph.node("Max", *inputs)


@_rule("ne", among=ELEMENTWISE)
def _not_equal(graph: Graph, equation: Any, *inputs: Tensor) -> list[str]:
    return graph.node("Not", _one(graph, equation, "Equal", *inputs))


@_rule("square", among=ELEMENTWISE)
def _square(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    return graph.node("Mul", x, x)


@_rule("rsqrt", among=ELEMENTWISE)
def _rsqrt(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    return graph.node("Reciprocal", _one(graph, equation, "Sqrt", x))


@_rule("log1p", "expm1", among=ELEMENTWISE)
def _near_1(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    one = np.ones((), equation.invars[0].aval.dtype)
    if equation.primitive.name == "log1p":
        return graph.node("Log", _one(graph, equation, "Add", x, one))
    return graph.node("Sub", _one(graph, equation, "Exp", x), one)


@_rule("integer_pow", among=ELEMENTWISE)
def _integer_pow(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    if equation.params["y"] == 2:
        return graph.node("Mul", x, x)
    return graph.node("Pow", x, np.array(equation.params["y"], equation.invars[0].aval.dtype))


@_rule("clamp", among=ELEMENTWISE)
def _clamp(graph: Graph, equation: Any, low: Tensor, x: Tensor, high: Tensor) -> list[str]:
    return graph.node("Min", _one(graph, equation, "Max", x, low), high)


@_rule("select_n", among=ELEMENTWISE)
def _select(graph: Graph, equation: Any, which: Tensor, *cases: Tensor) -> list[str]:
    if equation.invars[0].aval.dtype != np.bool_ or len(cases) != 2:
        raise NoCounterpart("a choice among more than two")
    return graph.node("Where", which, cases[1], cases[0])


@_rule("convert_element_type", among=ELEMENTWISE)
def _convert(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    if isinstance(x, Value) and equation.invars[0].aval.dtype == equation.outvars[0].aval.dtype:
        return [x.name]
    return graph.node("Cast", x, to=element_type(equation.params["new_dtype"]))


@_rule("is_finite", among=ELEMENTWISE)
def _is_finite(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    # A difference of infinities, and anything with NaN, is NaN.
    return graph.node("Not", _one(graph, equation, "IsNaN", _one(graph, equation, "Sub", x, x)))


# --- Shapes ---


@_rule("broadcast_in_dim", among=ELEMENTWISE)
def _broadcast(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    """Only sides of 1 are put in: `full` repeats them where an operator does not do so itself."""
    places = {int(axis) for axis in equation.params["broadcast_dimensions"]}
    new = [axis for axis in range(len(equation.params["shape"])) if axis not in places]
    return graph.node("Unsqueeze", x, _integers(*new)) if new else graph.node("Identity", x)


@_rule("squeeze")
def _squeeze(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    return graph.node("Squeeze", x, _integers(*equation.params["dimensions"]))


@_rule("reshape")
def _reshape(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    before, after = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
    sides = [side if isinstance(side, int) else -1 for side in after]
    if sides.count(-1) > 1:
        raise NoCounterpart("a shape with the number of rows in two places")
    if sides[:1] == [-1] and before[:1] == after[:1]:
        sides[0] = 0  # as it is, which holds for no rows at all, too
    return graph.node("Reshape", x, _integers(*sides))


@_rule("transpose")
def _transpose(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    return graph.node("Transpose", x, perm=[int(axis) for axis in equation.params["permutation"]])


@_rule("concatenate")
def _concatenate(graph: Graph, equation: Any, *inputs: Tensor) -> list[str]:
    return graph.node("Concat", *inputs, axis=int(equation.params["dimension"]))


@_rule("stack")
def _stack(graph: Graph, equation: Any, *inputs: Tensor) -> list[str]:
    axis = int(equation.params["axis"])
    return graph.node("Concat", *(_one(graph, equation, "Unsqueeze", x, _integers(axis)) for x in inputs), axis=axis)


@_rule("split")
def _split(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    sizes = equation.params["sizes"]
    return graph.node("Split", x, _integers(*sizes), outputs=len(sizes), axis=int(equation.params["axis"]))


@_rule("slice")
def _slice(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    steps = equation.params["strides"] or (1,) * len(equation.params["start_indices"])
    cuts = zip(equation.params["start_indices"], equation.params["limit_indices"], steps, strict=True)
    whole = equation.invars[0].aval.shape
    named = [
        (start, end, axis, step)
        for axis, (start, end, step) in enumerate(cuts)
        if not (start == 0 and step == 1 and end == whole[axis])
    ]
    if not named:
        return graph.node("Identity", x)
    if not all(isinstance(number, int) for cut in named for number in cut):
        raise NoCounterpart("a part of the rows")
    starts, ends, axes, strides = zip(*named, strict=True)
    return graph.node("Slice", x, *(_integers(*numbers) for numbers in (starts, ends, axes, strides)))


@_rule("pad")
def _pad(graph: Graph, equation: Any, x: Tensor, filling: Tensor) -> list[str]:
    low, high, between = zip(*equation.params["padding_config"], strict=True)
    if any(between):
        raise NoCounterpart("padding between elements")
    return graph.node("Pad", x, _integers(*low, *high), filling, mode="constant")


@_rule("rev")
def _reverse(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    axes = equation.params["dimensions"]
    ends = np.full(len(axes), np.iinfo(np.int64).min)
    return graph.node("Slice", x, _integers(*[-1] * len(axes)), ends, _integers(*axes), _integers(*[-1] * len(axes)))


# --- Along an axis ---


def _along(primitive: str, operator: str) -> None:
    def rule(graph: Graph, equation: Any, x: Tensor) -> list[str]:
        return graph.node(operator, x, _integers(*equation.params["axes"]), keepdims=0)

    RULES[primitive] = rule


for _primitive, _operator in {
    "reduce_sum": "ReduceSum",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
}.items():
    _along(_primitive, _operator)


@_rule("reduce_or", "reduce_and")
def _all_or_any(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    number = _one(graph, equation, "Cast", x, to=element_type(np.int32))
    operator = "ReduceMax" if equation.primitive.name == "reduce_or" else "ReduceMin"
    found = _one(graph, equation, operator, number, _integers(*equation.params["axes"]), keepdims=0)
    return graph.node("Cast", found, to=element_type(np.bool_))


@_rule("argmax", "argmin")
def _best(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    """The first of equals, as in JAX."""
    (axis,) = equation.params["axes"]
    operator = {"argmax": "ArgMax", "argmin": "ArgMin"}[equation.primitive.name]
    place = _one(graph, equation, operator, x, axis=int(axis), keepdims=0, select_last_index=0)
    return graph.node("Cast", place, to=element_type(equation.params["index_dtype"]))


@_rule("cumsum")
def _cumulative(graph: Graph, equation: Any, x: Tensor) -> list[str]:
    axis = np.array(equation.params["axis"], np.int64)
    return graph.node("CumSum", x, axis, reverse=int(equation.params["reverse"]))


# --- Products ---


@_rule("dot_general")
def _product(graph: Graph, equation: Any, x: Tensor, y: Tensor) -> list[str]:
    (x_summed, y_summed), (x_paired, y_paired) = equation.params["dimension_numbers"]
    x_axes, y_axes = len(sides_of(x)), len(sides_of(y))
    if y_axes == 2 and not x_paired and tuple(x_summed) == (x_axes - 1,) and tuple(y_summed) == (0,):
        return graph.node("MatMul", x, y)
    # Letters for the axes: those that are paired, those that are summed, and each side's own.
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    of_x, of_y = [""] * x_axes, [""] * y_axes
    for first, second in zip((*x_paired, *x_summed), (*y_paired, *y_summed), strict=True):
        of_x[first] = of_y[second] = next(letters)
    paired = [of_x[axis] for axis in x_paired]
    own = []
    for side in (of_x, of_y):
        for axis, letter in enumerate(side):
            if not letter:
                side[axis] = next(letters)
                own.append(side[axis])
    return graph.node("Einsum", x, y, equation=f"{''.join(of_x)},{''.join(of_y)}->{''.join([*paired, *own])}")


@_rule("conv_general_dilated")
def _convolution(graph: Graph, equation: Any, x: Tensor, kernel: Tensor) -> list[str]:
    """ONNX knows (n, channels, height, width) alone; runtimes drop the transpositions that meet each other."""
    params = equation.params
    if params["batch_group_count"] != 1 or any(side != 1 for side in params["lhs_dilation"]):
        raise NoCounterpart("a transposed convolution")
    if any(side < 0 for both in params["padding"] for side in both):
        raise NoCounterpart("a convolution that cuts its input")
    numbers = params["dimension_numbers"]
    first = _one(graph, equation, "Transpose", x, perm=[int(axis) for axis in numbers.lhs_spec])
    if isinstance(kernel, Constant):
        turned: Tensor = Constant(np.ascontiguousarray(kernel.array.transpose(numbers.rhs_spec)), kernel.name)
    else:
        turned = _one(graph, equation, "Transpose", kernel, perm=[int(axis) for axis in numbers.rhs_spec])
    convolved = _one(
        graph,
        equation,
        "Conv",
        first,
        turned,
        strides=[int(side) for side in params["window_strides"]],
        pads=[int(pad) for pads in zip(*params["padding"], strict=True) for pad in pads],
        dilations=[int(side) for side in params["rhs_dilation"]],
        group=int(params["feature_group_count"]),
    )
    return graph.node("Transpose", convolved, perm=np.argsort(numbers.out_spec).tolist())


def full(graph: Graph, tensor: Tensor, shape: Sequence[Any], rows: Value) -> Tensor:
    """A tensor whose sides of 1 are repeated to this shape; `rows` has the number of rows as its first side."""
    if sides_of(tensor) == tuple(shape):
        return tensor
    sides = [_side(graph, side, rows) for side in shape]
    (wanted,) = graph.node("Concat", *sides, axis=0)
    (name,) = graph.node("Expand", tensor, Value(wanted, (len(sides),), np.dtype(np.int64)))
    dtype = tensor.array.dtype if isinstance(tensor, Constant) else tensor.dtype
    return Value(name, tuple(shape), dtype)


def _side(graph: Graph, side: Any, rows: Value) -> Any:
    if isinstance(side, int):
        return _integers(side)
    if str(side) != str(rows.shape[0]):
        raise NoCounterpart(f"an array with {side} rows")
    (count,) = graph.node("Shape", rows, start=0, end=1)
    return Value(count, (1,), np.dtype(np.int64))
