"""DR3 with the noise covariance of label noise: the generalized dot products Δ_M (section 4, appendix A.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient
from jax.typing import ArrayLike

from dr3.backup import Backup
from dr3.errors import UserError
from dr3.hyperparameters import hyperparameters, within
from dr3.lyapunov import lyapunov_fixed_point, lyapunov_steps
from dr3.regularizers.base import CriticView

RELATIVE_STEP = 0.1  # η ‖K‖ where no η is given
SMALLEST = 1e-15  # ‖K‖ is 0 where all features are; η² must stay a number


@hyperparameters
@dataclass(frozen=True)
class LabelNoiseDR3:
    """Δ_M = Σ_i g_iᵀ Σ* g'_i with g = ∇Q(s, a), g' = ∇Q(s', a') and Σ* the stationary covariance of noisy TD.

    Label noise has M = Σ_j g_j g_jᵀ, and then Σ* = JᵀSJ with S (n, n) from the Lyapunov equation in `dr3.lyapunov`:
    nothing of the size of the parameters squared exists. Σ* is a constant: gradients flow through g_i and g'_i alone.
    Plain DR3 is the same with Σ* = I. Critics of an ensemble are averaged after the product; with `scope="all"` it is
    the gradients of their mean that are multiplied, and of two critics the penalty is half as large.

    Where I - ηK does not contract, noisy TD wanders off and Σ* does not exist. The sum over the first `steps` steps is
    taken there, and `losses/label_noise_contracts` is 0.
    """

    name: ClassVar[str] = "label-noise"
    TRACED: ClassVar[tuple[str, ...]] = ("step_size",)

    coefficient: float = 0.03
    """The weight of the term beside the method's own loss; comparable with DR3's c0 where `normalise` is on."""

    scope: Literal["last_layer", "all"] = "last_layer"
    """Whose gradients: the last layer's, which are features, or those of all parameters (small networks only)."""

    solver: Literal["fixed_point", "steps"] = "fixed_point"
    """The equation's solution, or as many steps towards it, from 0, as `steps` says."""

    steps: int = 20
    """Steps of the recursion, 20 in the paper."""

    step_size: float | None = None
    """η of the noisy TD that Σ* belongs to. By default 0.1 / ‖K‖: small against every eigenvalue of K, so that
    contraction is a matter of TD's stability and not of the step, and the same however large the features are. (The
    learning rate is Adam's, no η of TD; the paper does not say which it took.)"""

    normalise: bool = True
    """Scale Σ* so that it weighs the batch's own gradients as I does: Σ g_iᵀΣ*g_i = Σ ‖g_i‖². Σ* is of the size of η/2
    otherwise, and no c0 can be carried over."""

    mask_terminals: bool = True
    """Leave out backups that end. (K has their γ(1 - d) = 0 anyway.)"""

    per_action: bool = False
    """For the last layer of heads with one output per action: the exact products, 1[a_i = a_j] phi_i · phi_j; without
    it all actions share phi(s), as in DR3."""

    rows: int = 64
    """At most so many rows of a batch, evenly spread over it, make Σ*; 0 is all. The sum runs over all rows. The work
    grows with the cube of it."""

    @property
    def reaches_next(self) -> bool:
        return self.scope == "last_layer"

    def check(self) -> None:
        within("steps", self.steps, 1)
        within("rows", self.rows, 0)
        if self.step_size is not None and not self.step_size > 0:
            raise UserError(f"step_size must be above 0, not {self.step_size}.")

    def __call__(self, backup: Backup) -> Array:
        """The penalty, before its coefficient: a scalar, the mean over the batch as in DR3."""
        if self.scope == "all":
            raise UserError("label-noise with scope=all needs gradients: it is called by an objective, or as `weigh`.")
        return self._weigh(backup.phi, backup.phi_next, backup)[0]

    def weigh(self, backup: Backup, view: CriticView) -> tuple[Array, dict[str, Array]]:
        """The penalty, and with the exact solver the share of critics for which I - ηK contracts."""
        here, following = view.gradients() if self.scope == "all" else (backup.phi, backup.phi_next)
        return self._weigh(here, following, backup)

    def _weigh(self, here: Array, following: Array, backup: Backup) -> tuple[Array, dict[str, Array]]:
        ensemble = [array.reshape(-1, *array.shape[-2:]) for array in (here, following)]
        penalties, contracts = jax.vmap(lambda J, J_next: self._of_one(J, J_next, backup))(*ensemble)
        notes = {"contracts": jnp.mean(contracts)} if self.solver == "fixed_point" else {}
        return jnp.mean(penalties), notes

    def _of_one(self, J: Array, J_next: Array, backup: Backup) -> tuple[Array, Array]:
        products = self._products(J, J_next, backup)
        covariance, contracts = self._covariance(products, backup.discounts)
        # (J̄ g_i)ᵀ S (J̄ g'_i), row by row: J̄ and S are constants, so this is g_iᵀ [[Σ*]] g'_i.
        dots = jnp.sum((products.same @ covariance) * products.cross, axis=-1)
        return jnp.mean(dots * backup.bootstraps if self.mask_terminals else dots), contracts

    def _products(self, J: Array, J_next: Array, backup: Backup) -> Products:
        # Spread, because the rows that critics are measured on are in the order of the data.
        noisy = slice(None, None, -(-len(J) // self.rows) if self.rows else 1)
        constant = stop_gradient(J[noisy])
        same, cross = J @ constant.T, J_next @ constant.T
        if self.per_action and self.scope == "last_layer" and backup.rows_per_action:
            outputs = backup.actions[noisy]
            same = same * (backup.actions[:, None] == outputs)
            cross = cross * (backup.next_actions[:, None] == outputs)
        return Products(same, cross, noisy)

    def _covariance(self, products: Products, discounts: Array) -> tuple[Array, Array]:
        """S (m, m), scaled if asked for, and whether I - ηK contracts. Constants, all of it."""
        gram = stop_gradient(products.same[products.noisy])
        K = gram - discounts[products.noisy, None] * stop_gradient(products.cross[products.noisy])
        tiny = jnp.finfo(K.dtype).tiny
        eta = RELATIVE_STEP / jnp.maximum(jnp.linalg.norm(K), SMALLEST) if self.step_size is None else self.step_size
        few_steps = lyapunov_steps(K, eta, self.steps)
        S, contracts = few_steps, jnp.ones(())
        if self.solver == "fixed_point":
            exact, settles = _fixed_point(K, gram, eta)
            S, contracts = jnp.where(settles, exact, few_steps), settles.astype(K.dtype)
        if self.normalise:
            weighed = jnp.sum((gram @ S) * gram)  # trace(J Σ* Jᵀ)
            S = S * jnp.where(weighed > tiny, jnp.trace(gram) / jnp.maximum(weighed, tiny), 0.0)
        return stop_gradient(S), contracts


class Products(NamedTuple):
    """Inner products with the rows that make Σ*, which are constants here."""

    same: Array  # (n, m) g_i · [[g_j]]
    cross: Array  # (n, m) g'_i · [[g_j]]
    noisy: slice  # which of the n rows are the m


def _fixed_point(K: Array, gram: Array, eta: ArrayLike) -> tuple[Array, Array]:
    """The solution S within Range(J), and whether I - ηK contracts there.

    Repeated rows, and more rows than parameters, leave directions in which noise never settles and which JᵀSJ never
    sees. They are taken out in the basis of JJᵀ's eigenvectors, where that is exact: a projector's rounding would be as
    large as the small eigenvalues of ηK.
    """
    eigenvalues, basis = jnp.linalg.eigh(gram)
    inside = eigenvalues > len(K) * jnp.finfo(K.dtype).eps * eigenvalues[-1]
    rotated = jnp.where(inside[:, None] & inside, basis.T @ K @ basis, 0)
    noise = jnp.diag(inside.astype(K.dtype))
    solution = lyapunov_fixed_point(rotated + jnp.diag(jnp.where(inside, 0, 1 / eta)), eta, noise=noise)
    return basis @ solution.covariance @ basis.T, solution.contracts
