"""A function of rows as an ONNX model: traced once by JAX, then each of its primitives as ONNX's operator.

Why traced: one small table of primitives covers every method, also a plugin's, and what is written is what JAX computes
(scaling, masks, squashing and ranges included), not a second description of each network that could differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import onnx
from jax import export
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from dr3.errors import UserError
from dr3.export.graph import Constant, Graph, Tensor, Value
from dr3.export.operators import ELEMENTWISE, RULES, NoCounterpart, full, sides_of
from dr3.runs.checkpoints import leaves_by_name

# Primitives that call a function: it is written out in their place.
CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat2")


def one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """function(weights, *rows) as that of each row alone, put together.

    Then networks may look at the number of rows as one they know (`len`), while the whole is for any number.
    """

    def of_rows(weights: Any, *rows: jax.Array) -> Any:
        return jax.vmap(lambda *row: jax.tree.map(_only, function(weights, *(x[None] for x in row))))(*rows)

    return of_rows


def _only(result: jax.Array) -> jax.Array:
    return result[0]


def for_any_rows(rows: Mapping[str, tuple[tuple[int, ...], Any]]) -> list[jax.ShapeDtypeStruct]:
    """Arrays of n rows, n being left open, of these shapes and types."""
    (n,) = export.symbolic_shape("n")
    return [jax.ShapeDtypeStruct((n, *shape), dtype) for shape, dtype in rows.values()]


def to_onnx(
    function: Callable[..., dict[str, Any]],
    weights: Any,
    rows: Mapping[str, tuple[tuple[int, ...], Any]],
    **about: str,
) -> onnx.ModelProto:
    """The model of function(weights, *rows), whose outputs have names.

    Args:
        function: Of weights and arrays of rows; each row's results depend on that row alone.
        weights: A tree of arrays, which are part of the model, under their names in it.
        rows: For each input its name, the shape of one row, and its type.
        about: Words to keep in the file.
    """
    traced, shapes = jax.make_jaxpr(one_by_one(function), return_shape=True)(weights, *for_any_rows(rows))
    named = leaves_by_name(weights)
    given = traced.in_avals[len(named) :]
    inputs = [Value(name, aval.shape, aval.dtype) for name, aval in zip(rows, given, strict=True)]
    graph = Graph(inputs)
    constants = [Constant(np.asarray(leaf), name) for name, leaf in named.items()]
    try:
        found = _Writer(graph, inputs[0]).write(traced, [*constants, *inputs])
    except NoCounterpart as missing:
        raise UserError(
            f"This policy cannot be written as ONNX: it computes {missing}, which has no counterpart there; use --to "
            "stablehlo, or --to npz."
        ) from None
    # A dictionary's leaves are in the order of its keys.
    outputs = [graph.output(value, name) for name, value in zip(sorted(shapes), found, strict=True)]
    return graph.model(outputs, **about)


class _Writer:
    """Walks through what was traced."""

    def __init__(self, graph: Graph, rows: Value) -> None:
        self.graph, self.rows = graph, rows

    def write(self, traced: ClosedJaxpr, inputs: Sequence[Tensor]) -> list[Value]:
        """The outputs, as tensors of their whole shape."""
        outputs = self._walk(traced, inputs)
        avals: list[Any] = traced.out_avals
        whole = [full(self.graph, one, aval.shape, self.rows) for one, aval in zip(outputs, avals, strict=True)]
        return [one if isinstance(one, Value) else self._computed(one) for one in whole]

    def _walk(self, traced: ClosedJaxpr | Jaxpr, inputs: Sequence[Tensor]) -> list[Tensor]:
        jaxpr = traced.jaxpr if isinstance(traced, ClosedJaxpr) else traced
        known: dict[Any, Tensor] = {}
        held = [Constant(np.asarray(value), "constant") for value in getattr(traced, "consts", ())]
        for variable, tensor in zip((*jaxpr.constvars, *jaxpr.invars), (*held, *inputs), strict=True):
            known[variable] = tensor

        def read(atom: Any) -> Tensor:
            return (
                Constant(np.asarray(atom.val, atom.aval.dtype), "constant")
                if isinstance(atom, Literal)
                else known[atom]
            )

        for equation in jaxpr.eqns:
            outputs = self._equation(equation, [read(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, outputs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: Any, inputs: list[Tensor]) -> Sequence[Tensor]:
        name = equation.primitive.name
        if name in CALLS:
            called = next(
                equation.params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in equation.params
            )
            return self._walk(called, inputs)
        if name == "optimization_barrier":
            return inputs
        avals = [variable.aval for variable in equation.outvars]
        of_rows = not all(isinstance(side, int) for aval in avals for side in aval.shape)
        if not of_rows and all(isinstance(one, Constant) for one in inputs):
            return _computed_now(equation, inputs)
        if name in ELEMENTWISE:
            (output,) = ELEMENTWISE[name](self.graph, equation, *inputs)
            return [Value(output, _sides(equation, inputs), avals[0].dtype)]
        if name not in RULES:
            raise NoCounterpart(f"{name!r}")
        atoms = zip(inputs, equation.invars, strict=True)
        whole = [full(self.graph, tensor, atom.aval.shape, self.rows) for tensor, atom in atoms]
        outputs = RULES[name](self.graph, equation, *whole)
        return [Value(output, aval.shape, aval.dtype) for output, aval in zip(outputs, avals, strict=True)]

    def _computed(self, constant: Constant) -> Value:
        (name,) = self.graph.node("Identity", constant)
        return Value(name, constant.array.shape, constant.array.dtype)


def _computed_now(equation: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
    """What depends on weights alone is computed when the model is written: REM's mean of heads is one layer there."""
    arrays = [one.array for one in inputs if isinstance(one, Constant)]
    found = equation.primitive.bind(*map(jax.numpy.asarray, arrays), **equation.params)
    names = [one.name for one in inputs if isinstance(one, Constant) and one.name != "constant"]
    results = found if equation.primitive.multiple_results else [found]
    return [Constant(np.asarray(result), names[0] if names else "constant") for result in results]


def _sides(equation: Any, inputs: Sequence[Tensor]) -> tuple[Any, ...]:
    """The shape that an operator which repeats sides of 1 gives, which may have more of them than JAX's."""
    if equation.primitive.name == "broadcast_in_dim":
        sides: list[Any] = [1] * len(equation.outvars[0].aval.shape)
        for place, side in zip(equation.params["broadcast_dimensions"], sides_of(inputs[0]), strict=True):
            sides[place] = side
        return tuple(sides)
    result: list[Any] = []
    for one in inputs:
        sides = list(sides_of(one))
        result, sides = [1] * (len(sides) - len(result)) + result, [1] * (len(result) - len(sides)) + sides
        result = [
            second if isinstance(first, int) and first == 1 else first
            for first, second in zip(result, sides, strict=True)
        ]
    return tuple(result)
