"""JAX's primitives as ONNX: what methods do not use, a plugin's network may."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from dr3.errors import UserError

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

from dr3.export.to_onnx import to_onnx  # noqa: E402 (it imports onnx)

ROWS = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
WEIGHTS = {"w": np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)}


def _grouped(w, x):
    picture = x.reshape(-1, 2, 2, 1)
    kernel = w["w"].reshape(2, 2, 1, 3)
    return lax.conv_general_dilated(picture, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


FUNCTIONS = {
    "activations": lambda w, x: jax.nn.silu(x) + jax.nn.gelu(x) + jax.nn.elu(x) + jax.nn.softplus(x),
    "layer norm": lambda w, x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5),
    "softmax": lambda w, x: jax.nn.log_softmax(x @ w["w"]) + jax.nn.softmax(x @ w["w"]),
    "powers": lambda w, x: x**3 + jnp.abs(x) ** 0.5 + jnp.square(x) + jnp.sign(x) + jnp.expm1(x) + jnp.log1p(x * x),
    "choices": lambda w, x: jnp.where((x > 0) & (x != 1) | ~(x <= -1), x, jnp.clip(x, -0.5, 0.5)),
    "any and all": lambda w, x: (jnp.any(x > 0, -1) ^ jnp.all(x > 1, -1)).astype(jnp.float32),
    "shapes": lambda w, x: jnp.concatenate([x[:, ::2], jnp.flip(x, 1), jnp.pad(x, ((0, 0), (1, 2)))], -1),
    "transposed product": lambda w, x: jnp.einsum("na,ba->nb", x, w["w"].T),
    "paired product": lambda w, x: jnp.einsum("na,na->n", x, jnp.tanh(x)),
    "repeated rows": lambda w, x: jnp.concatenate([x, jnp.broadcast_to(w["w"][:, 0], x.shape)], -1),
    "extremes": lambda w, x: jnp.stack([x.max(-1), x.min(-1), x.prod(-1), x.sum(-1), jnp.cumsum(x, -1)[:, 2]], -1),
    "places": lambda w, x: jnp.argmin(x, -1) - jnp.argmax(x, -1),
    "finite": lambda w, x: jnp.isfinite(x / jnp.maximum(x, 0)),
    "convolution": _grouped,
}


def replayed(function, weights=WEIGHTS):
    model = to_onnx(lambda w, x: {"y": function(w, x)}, weights, {"x": ((4,), np.float32)})
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": ROWS})[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_computes_what_jax_does(name):
    wanted = np.asarray(FUNCTIONS[name](WEIGHTS, jnp.asarray(ROWS)))
    got = replayed(FUNCTIONS[name])
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)


def test_what_has_no_counterpart_is_named():
    with pytest.raises(UserError, match="it computes 'scan', which has no counterpart there; use --to stablehlo"):
        replayed(lambda w, x: lax.map(jnp.sin, x))
