"""A shop that writes to its customers every week: the world behind the log, which the log's reader never sees.

Each week a customer gets one of four offers. What an offer earns at once and what it does to the customer are different
things: a discount sells today and teaches to wait for the next one; a call costs today and keeps a customer for months;
mail is cheap, and too much of it tires. A customer who is lost never comes back. Calls need consent and four weeks
between them, discounts three: such offers are not always allowed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

OFFERS = ("none", "mail", "discount", "call")
NONE, MAIL, DISCOUNT, CALL = range(4)
COST = np.array([0.0, 0.3, 0.5, 6.0])
TIERS = ("basic", "silver", "gold")
REGIONS = ("coast", "hills", "north", "south")


@dataclass
class Shop:
    """All customers at once; an array holds a number for each."""

    customers: int
    seed: int

    def __post_init__(self) -> None:
        n, random = self.customers, np.random.default_rng(self.seed)
        self.random = random
        self.loyalty = random.beta(4, 3, n)  # hidden, from 0 to 1
        self.tired = np.zeros(n)  # hidden: of mail
        self.waiting = np.zeros(n)  # hidden: for the next discount
        self.tier = random.choice(3, n, p=[0.6, 0.3, 0.1])
        self.region = random.choice(4, n)
        self.app = random.random(n) < 0.5
        self.consent = random.random(n) < 0.7
        self.since_purchase = random.integers(1, 12, n)
        self.spend = np.zeros(n)  # of the last weeks, fading
        self.since_call, self.since_discount = random.integers(4, 20, n), random.integers(3, 20, n)
        self.there = np.ones(n, bool)

    def seen(self) -> dict[str, np.ndarray]:
        """What is logged of every customer before the week's offer."""
        asked = self.random.random(self.customers) < 0.4
        answer = np.clip(np.round(1 + 9 * self.loyalty + self.random.normal(0, 0.8, self.customers)), 1, 10)
        return {
            "weeks_since_purchase": self.since_purchase.astype(np.int32),
            "recent_spend": np.round(self.spend, 2),
            "visits": self.random.poisson(1 + 4 * self.loyalty * (1 - 0.5 * self.tired)).astype(np.int32),
            "survey": np.where(asked, answer, np.nan),  # most weeks nobody asks
            "mails_felt": np.round(self.tired + self.random.normal(0, 0.05, self.customers), 3),
            "weeks_since_call": self.since_call.astype(np.int32),
            "weeks_since_discount": self.since_discount.astype(np.int32),
            "tier": np.array(TIERS)[self.tier],
            "region": np.array(REGIONS)[self.region],
            "has_app": self.app,
        }

    def allowed(self) -> np.ndarray:
        """Which offers each customer may get this week: (customers, 4)."""
        yes = np.ones(self.customers, bool)
        return np.stack([yes, yes, self.since_discount >= 3, self.consent & (self.since_call >= 4)], axis=1)

    def week(self, offers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A week passes: the profit of each customer, and who was lost for good."""
        n, random = self.customers, self.random
        push = np.array([0.0, 0.5, 1.6, 0.4])[offers] + 0.3 * (self.app & (offers == MAIL))
        appetite = -2.6 + 2.2 * self.loyalty + 0.04 * np.minimum(self.since_purchase, 12) - 0.8 * self.waiting
        buys = random.random(n) < _share(appetite + push)
        basket = (18 + 8 * self.tier) * random.gamma(6.0, 1 / 6.0, n)
        margin = np.where(offers == DISCOUNT, 0.18, 0.4)
        profit = np.where(buys, margin * basket, 0.0) - COST[offers]
        lost = random.random(n) < _share(-3.4 - 2.6 * self.loyalty + 2.0 * self.tired)

        self.loyalty = np.clip(
            self.loyalty - 0.012 + 0.10 * (offers == CALL) * (1 - self.loyalty) + 0.01 * buys - 0.02 * self.waiting,
            0,
            1,
        )
        self.tired = np.clip(0.75 * self.tired + 0.22 * (offers == MAIL), 0, 1)
        self.waiting = np.clip(0.9 * self.waiting + 0.25 * (offers == DISCOUNT), 0, 1)
        self.since_purchase = np.where(buys, 0, self.since_purchase + 1)
        self.spend = 0.8 * self.spend + np.where(buys, basket, 0.0)
        self.since_call = np.where(offers == CALL, 0, self.since_call + 1)
        self.since_discount = np.where(offers == DISCOUNT, 0, self.since_discount + 1)
        lost &= self.there
        self.there &= ~lost
        return profit, lost


def habit(seen: dict[str, np.ndarray], allowed: np.ndarray) -> np.ndarray:
    """What the shop did so far, as probabilities: discounts for those who have not bought for long, many mails."""
    wish = np.zeros(allowed.shape)
    wish[:, MAIL] = 1.0
    wish[:, DISCOUNT] = 0.6 + 0.12 * np.minimum(seen["weeks_since_purchase"], 10)
    wish[:, CALL] = -0.6 + 0.5 * (seen["tier"] == "gold")
    chances = np.where(allowed, np.exp(wish), 0.0)
    return chances / chances.sum(axis=1, keepdims=True)


def _share(logit: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logit))
