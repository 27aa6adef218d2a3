"""Proposition 3.2: on random features, and on features of a gridworld run before and after they co-adapt."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from dr3.data import Transitions
from dr3.data.transitions import DiscreteActions
from dr3.theory.checks.outcome import Effort, TheoryCheck
from dr3.theory.gridworld import GAMMA, Snapshot, q_learning
from dr3.theory.linear_td import FeatureVerdict, judge_features, linear_td_far, outcome

DOUBLINGS = 50


def trajectory(phi: Array, phi_next: Array, verdict: FeatureVerdict, rewards: Array) -> tuple[str, list[float]]:
    """What linear TD does in 2⁵⁰ steps at half the largest stable step (or a small one where there is none)."""
    largest = float(np.abs(verdict.stability.eigenvalues).max())
    eta = verdict.stability.largest_step / 2 if verdict.converges else 1e-3 / largest
    norms = linear_td_far(phi, phi_next, rewards, GAMMA, eta=eta, doublings=DOUBLINGS)
    return outcome(norms), norms.tolist()


def random_features(effort: Effort) -> list[TheoryCheck]:
    """φ' = c φ + noise with c from 0 to 1.6: from unrelated features to co-adapted ones that also grow."""
    n, d = 8, 16
    ratios, slowest, results, examples = [], [], Counter(), {}
    random = np.random.default_rng(0)
    rewards = jnp.asarray(random.standard_normal(n))
    for _ in range(effort.features):
        phi = jnp.asarray(random.standard_normal((n, d)))
        phi_next = random.uniform(0, 1.6) * phi + 0.7 * random.standard_normal((n, d))
        verdict = judge_features(phi, phi_next, GAMMA)
        did, norms = trajectory(phi, phi_next, verdict, rewards)
        results[(verdict.proposition_applies, verdict.converges, did)] += 1
        ratios.append(verdict.co_adaptation)
        slowest.append(verdict.stability.smallest_real_part)
        examples.setdefault(did, {"ratio": verdict.co_adaptation, "norms": norms})
    contradicting = sum(count for (applies, _, did), count in results.items() if applies and did == "converges")
    unlike_spectrum = sum(
        count for (_, converges, did), count in results.items() if did != ("converges" if converges else "diverges")
    )
    applies = sum(count for (applies, _, _), count in results.items() if applies)
    silent = sum(count for (applies, converges, _), count in results.items() if not applies and not converges)
    return [
        TheoryCheck(
            "Proposition 3.2, random",
            f"γΣφ·φ' >= Σφ·φ never lets linear TD converge; K's spectrum decides ({effort.features} draws)",
            f"{contradicting} of {applies} do; {unlike_spectrum} trajectories differ from their spectrum; "
            f"{silent} diverge without the condition (not necessary)",
            contradicting == 0 and unlike_spectrum == 0 and applies > 0,
            {"ratios": ratios, "slowest": slowest, "applies": applies, "silent": silent, "examples": examples},
        )
    ]


def gridworld_features(effort: Effort) -> list[TheoryCheck]:
    """Features of Q-learning on 256 transitions, at the start and co-adapted; as last-layer gradients too."""
    _, data, snapshots = q_learning([0, effort.gridworld_steps], hidden=(64, 64), batch_size=128, seed=0)
    rewards = jnp.asarray(data.rewards, jnp.float64)
    rows: list[dict[str, Any]] = []
    for snapshot in snapshots:
        for kind, (phi, phi_next) in both_kinds(snapshot, data).items():
            verdict = judge_features(phi, phi_next, GAMMA)
            did, norms = trajectory(phi, phi_next, verdict, rewards)
            rows.append(
                {
                    "step": snapshot.step,
                    "features": kind,
                    "dot_product": float((phi * phi_next).sum(1).mean()),
                    "co_adaptation": verdict.co_adaptation,
                    "eigenvalues": [[value.real, value.imag] for value in verdict.stability.eigenvalues],
                    "smallest_real_part": verdict.stability.smallest_real_part,
                    "negative": int((verdict.stability.eigenvalues.real < 0).sum()),
                    "converges": verdict.converges,
                    "applies": verdict.proposition_applies,
                    "trajectory": did,
                    "norms": norms,
                }
            )
    fine = all(
        row["trajectory"] == ("converges" if row["converges"] else "diverges")
        and not (row["applies"] and row["converges"])
        for row in rows
    )
    start, end = rows[0], rows[-2]
    gradients = {row["step"]: row for row in rows if row["features"] != "phi(s)"}
    return [
        TheoryCheck(
            "Proposition 3.2, gridworld",
            f"the same on features of Q-learning at step 0 and {effort.gridworld_steps}: trajectory = spectrum",
            f"φ·φ' {start['dot_product']:.3g} -> {end['dot_product']:.3g}, γΣφ·φ'/Σφ·φ {start['co_adaptation']:.3f} -> "
            f"{end['co_adaptation']:.3f} ({end['trajectory']}); last-layer gradients: "
            + " -> ".join(
                f"{row['negative']} unstable eigenvalues ({row['trajectory']})" for row in gradients.values()
            ),
            fine,
            {"rows": rows},
        )
    ]


def both_kinds(snapshot: Snapshot, data: Transitions) -> dict[str, tuple[Array, Array]]:
    """The two sides of every backup as φ(s), and as the gradient of the last layer: φ(s) in the row of a, else 0."""
    phi, phi_next = (jnp.asarray(side, jnp.float64) for side in (snapshot.phi, snapshot.phi_next))
    actions = data.action_space.count if isinstance(data.action_space, DiscreteActions) else 0

    def at_action(features: Array, chosen: np.ndarray) -> Array:
        return (jnp.eye(actions)[chosen][:, :, None] * features[:, None]).reshape(len(features), -1)

    gradients = (at_action(phi, data.actions), at_action(phi_next, snapshot.next_actions))
    return {"phi(s)": (phi, phi_next), "∇_w Q(s, a)": gradients}
