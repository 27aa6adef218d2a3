"""Write the log of the shop's weekly offers: `python examples/offers/make_log.py decisions.parquet`.

About 400,000 decisions for 20,000 customers over half a year, in some seconds; the same file for the same seed. Rows
are in the order of time, with customers mixed, as a warehouse would give them. Needs pyarrow (`dr3[tables]`).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from shop import OFFERS, Shop, habit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--customers", type=int, default=20_000)
    parser.add_argument("--weeks", type=int, default=26)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    shop = Shop(options.customers, options.seed)
    choosing = np.random.default_rng(options.seed + 1)
    weeks = [one_week(shop, choosing, week) for week in range(options.weeks)]
    table = pa.concat_tables(weeks)
    pq.write_table(table, options.out)
    print(f"{len(table):,} decisions for {options.customers:,} customers are in {options.out}")


def one_week(shop: Shop, choosing: np.random.Generator, week: int) -> pa.Table:
    there = shop.there.copy()
    seen, allowed = shop.seen(), shop.allowed()
    chances = habit(seen, allowed)
    offers = (chances.cumsum(axis=1) > choosing.random(len(chances))[:, None]).argmax(axis=1)
    profit, lost = shop.week(offers)
    columns = {
        "customer_id": np.arange(len(offers)),
        "week": np.full(len(offers), week, np.int32),
        **seen,
        "offer": np.array(OFFERS)[offers],
        **{f"can_{name}": allowed[:, place] for place, name in enumerate(OFFERS)},
        "probability": chances[np.arange(len(offers)), offers],
        "profit": np.round(profit, 2),
        "lost": lost,
    }
    arrays = {name: pa.array(values[there], from_pandas=True) for name, values in columns.items()}
    return pa.table(arrays)


if __name__ == "__main__":
    main()
