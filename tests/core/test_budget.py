"""A budget by itself: what is spent, and the rows on the way there."""

import math

import pytest

from bilevel_core.budget import Budget

CALLS = {"samples": 50, "gradients": 7, "Hv": 3, "Jv": 2}


def rows_of(budget, price=1.0):
    """The steps at which rows are due, if a step costs so much."""
    t, rows = 0, []
    while price * t < budget.limit[1]:
        step, amount = budget.next_row(t, price * t)
        t = min(s for s in range(t + 1, 10**4) if s >= step or price * s >= amount)
        rows.append(t)
    return rows


def test_what_is_spent_is_steps_or_seconds_or_calls_at_their_prices():
    assert Budget(steps=10).spent(4, 0.3, CALLS) == 4
    assert Budget(seconds=10).spent(4, 0.3, CALLS) == 0.3
    assert Budget(gradients=10).spent(4, 0.3, CALLS) == 7 + 3 + 2
    assert Budget(gradients=10, prices={"Hv": 2.0, "Jv": 1.5}).spent(4, 0.3, CALLS) == 7 + 3 * 2.0 + 2 * 1.5
    assert Budget(gradients=10, prices={"Jv": 0.5}).spent(4, 0.3, CALLS) == 7 + 3 + 2 * 0.5


@pytest.mark.parametrize(
    ("given", "price", "rows"),
    [
        ({"steps": 10, "every": 4}, 1.0, [4, 8, 10]),
        ({"steps": 10, "every": [3, 5, 40]}, 1.0, [3, 5, 10]),
        ({"steps": 10, "rows": 3}, 1.0, [4, 8, 10]),
        ({"gradients": 30, "rows": 3}, 4.0, [3, 5, 8]),  # the first steps past 10, 20 and 30
        ({"gradients": 30, "every": 3}, 4.0, [3, 6, 8]),
        ({"seconds": 1.0, "every": [1, 7]}, 0.125, [1, 7, 8]),
    ],
    ids=str,
)
def test_rows_are_due_at_steps_or_at_equal_parts_of_the_budget_and_at_its_end(given, price, rows):
    assert rows_of(Budget(**given), price) == rows


def test_a_row_that_is_due_by_amount_waits_for_no_step():
    assert Budget(gradients=30, rows=3).next_row(5, 20.0) == (math.inf, 30.0)
