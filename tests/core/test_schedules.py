import pytest

from bilevel_book.theorem_schedules import theorem, value_at
from bilevel_core.schedules import Power


def test_values():
    assert value_at(0.3, 7) == 0.3
    assert value_at(lambda t: 1 / (1 + t), 3) == 0.25
    assert Power(2.0, w=8)(0) == pytest.approx(1.0)
    assert Power(2.0, w=8)(19) == pytest.approx(2 / 3)
    assert Power(2.0, w=8, p=2 / 3)(19) == pytest.approx(2 / 9)
    assert Power(2.0, w=8, p=2 / 3, cap=0.1)(0) == 0.1
    for t in (0, 19):  # below its cap and above it
        assert (0.1 * Power(2.0, cap=0.9))(t) == pytest.approx(0.1 * Power(2.0, cap=0.9)(t))


def test_the_form_of_the_theorem():
    rates = theorem(w=8, c_alpha=0.5, c_beta=2, c_lam=3, c_eta=4)
    for t in (0, 1, 50, 10_000):
        alpha = rates["alpha"](t) / 0.5
        assert alpha == pytest.approx((8 + t) ** (-1 / 3))
        assert rates["beta"](t) == pytest.approx(2 * alpha)
        assert rates["lam"](t) == pytest.approx(3 * alpha)
        assert rates["eta"](t + 1) == pytest.approx(min(1, 4 * alpha**2))  # eta at t + 1 goes with alpha at t
