"""The sums at the end of the proof, and how the difference step delta enters them (T16)."""

from math import fsum, log, log1p

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st


def sum_of_powers(w, T, power):
    return fsum((w + t) ** power for t in range(T))


@pytest.mark.checks("th:main", "abstract:rate")
@given(st.floats(2, 1e4), st.integers(1, 3000))
def test_sum_of_alpha_cubed_is_at_most_a_logarithm(w, T):
    total = sum_of_powers(w, T, -1)
    assert total <= log1p(T / (w - 1))
    assert log1p(T / (w - 1)) <= log(T + 1) + 1e-14
    assert total >= log1p(T / w)  # so the logarithm is the truth, not a loose bound


@given(st.floats(1, 1e4), st.integers(1, 3000))
def test_sum_of_one_over_alpha_lies_between_two_integrals(w, T):
    total = sum_of_powers(w, T, 1 / 3)
    below = 0.75 * ((w + T - 1) ** (4 / 3) - (w - 1) ** (4 / 3))
    above = 0.75 * ((w + T) ** (4 / 3) - w ** (4 / 3))
    assert below * (1 - 1e-12) <= total <= above * (1 + 1e-12)
    # The mean step is at most 3/2 of the last one: this turns 8 b^2 into the 12 b^2 of the floor.
    assert 1 < sum_of_powers(w, T, -1 / 3) / T * (w + T) ** (1 / 3) <= 1.5


def test_both_printed_sums_are_false_at_ten_thousand_steps():
    T = 10**4
    harmonic, cubes = sum_of_powers(1, T, -1), sum_of_powers(1, T, 1 / 3)
    assert harmonic == pytest.approx(9.788, abs=5e-4)
    assert log(T + 1) == pytest.approx(9.210, abs=5e-4)
    assert harmonic > log(T + 1)
    assert cubes == pytest.approx(1.616e5, rel=1e-3)
    assert pytest.approx(696, abs=0.5) == 1.5 * T ** (2 / 3)


W = 10.0  # and L r_v^2 = 1


def delta_of_the_proof(T):
    return (W + T) ** (1 / 3) / (12 * T ** (4 / 3))


def printed_last_term(T, delta):
    return T ** (2 / 3) * (W + T) ** (1 / 3) * 6 * delta


def corrected_last_term(T, delta, power=1 / 3):
    """(2 / (alpha_T T)) times the sum of 4 delta / alpha_t; power 1 and delta^2 is the version with Young."""
    total = ((W + np.arange(T)) ** power).sum()
    return 2 * (W + T) ** (1 / 3) / T * total * 4 * delta


@pytest.mark.checks("th:hessianfree")
@pytest.mark.parametrize(
    ("term", "exponent"),
    [
        (lambda T: printed_last_term(T, delta_of_the_proof(T)), 0),  # it stays at one half
        (lambda T: printed_last_term(T, (W + T - 1) ** (-2 / 3) / 8), 1 / 3),  # the delta of the theorem
        (lambda T: corrected_last_term(T, delta_of_the_proof(T)), -1 / 3),
        (lambda T: printed_last_term(T, T ** (-5 / 3)), -2 / 3),
        (lambda T: corrected_last_term(T, T ** (-4 / 3)), -2 / 3),
        (lambda T: corrected_last_term(T, (1 / T) ** 2, power=1.0), -2 / 3),  # with Young
    ],
)
def test_last_term_has_the_power_of_T_that_delta_gives_it(term, exponent):
    low, high = 10**5, 10**7
    assert log(term(high) / term(low)) / log(high / low) == pytest.approx(exponent, abs=0.005)
