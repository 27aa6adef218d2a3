"""What policies are worth in the shop itself, which no reader of the log could try:

    python examples/offers/truth.py runs/offers --discount 0.95 --weeks 130

Prints the mean profit of a customer, discounted by the week, with a 95 % interval: of the habit, of simple rules,
and of what a run learned. New customers, the same ones for each policy.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from shop import CALL, DISCOUNT, MAIL, OFFERS, Shop, habit

import dr3
from dr3.data import encode_rows

Policy = Callable[[dict[str, np.ndarray], np.ndarray], np.ndarray]


def worth(policy: Policy, *, customers: int, weeks: int, discount: float, seed: int) -> tuple[float, float]:
    """The mean discounted profit of a customer, and half the width of its 95 % interval."""
    shop = Shop(customers, seed)
    total = np.zeros(customers)
    for week in range(weeks):
        there = shop.there.copy()
        profit, _ = shop.week(policy(shop.seen(), shop.allowed()))
        total += discount**week * np.where(there, profit, 0.0)
    return float(total.mean()), float(1.96 * total.std(ddof=1) / np.sqrt(customers))


def by_habit(seed: int) -> Policy:
    random = np.random.default_rng(seed)

    def choose(seen: dict[str, np.ndarray], allowed: np.ndarray) -> np.ndarray:
        chances = habit(seen, allowed)
        return (chances.cumsum(axis=1) > random.random(len(chances))[:, None]).argmax(axis=1)

    return choose


def always(offer: int) -> Policy:
    """One offer wherever it is allowed, and none elsewhere."""
    return lambda seen, allowed: np.where(allowed[:, offer], offer, 0)


def learned(run: Path) -> Policy:
    """What `dr3 select` chose there, else the last checkpoint of the first member."""
    runs = dr3.Runs(run)
    schema = runs.schema
    assert schema is not None

    def choose(seen: dict[str, np.ndarray], allowed: np.ndarray) -> np.ndarray:
        rows = pa.table({name: pa.array(values, from_pandas=True) for name, values in seen.items()})
        labels = [str(one) for one in schema.categories["offer"]]
        order = [OFFERS.index(one) for one in labels]  # the schema's order of the actions, which may be another
        return np.asarray(order)[runs.policy(encode_rows(schema, rows), allowed[:, order])]

    return choose


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*")
    parser.add_argument("--customers", type=int, default=10_000)
    parser.add_argument("--weeks", type=int, default=260)
    parser.add_argument("--discount", type=float, default=0.99)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    policies = {"the shop's habit": by_habit(options.seed), "no offers": always(0), "mail always": always(MAIL)}
    policies |= {"discounts when allowed": always(DISCOUNT), "calls when allowed": always(CALL)}
    policies |= {str(run): learned(run) for run in options.runs}
    settings = {"customers": options.customers, "weeks": options.weeks, "discount": options.discount}
    for name, policy in policies.items():
        mean, half = worth(policy, **settings, seed=options.seed)
        print(f"{name:>24}: {mean:6.2f} ± {half:.2f}")


if __name__ == "__main__":
    main()
