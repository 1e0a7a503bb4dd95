"""Rules in the place of rates: the numbers of torch, in every method and inner loop; and constraints on x."""

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import pytest
import torch

from bilevel_book.methods import SOLVERS
from bilevel_core import SOBA, Adam, Momentum, Normalised
from bilevel_core.directions import exact, grad_y
from bilevel_core.problems import Quadratic
from bilevel_core.schedules import Power, Rule
from bilevel_core.solvers.base import STEPS
from core.families import LogCosh, walk
from core.my_method import MyMethod

METHODS = dict(SOLVERS) | {"MyMethod": MyMethod}


# Each rule by itself


@pytest.mark.parametrize(
    ("rule", "theirs"),
    [
        (Adam(0.1), lambda z: torch.optim.Adam([z], lr=0.1)),
        (Adam(0.02, 0.5, 0.9, 1e-3), lambda z: torch.optim.Adam([z], lr=0.02, betas=(0.5, 0.9), eps=1e-3)),
        (Momentum(0.1), lambda z: torch.optim.SGD([z], lr=0.1, momentum=0.9)),
        (Momentum(0.1, 0.0), lambda z: torch.optim.SGD([z], lr=0.1)),
        (Momentum(0.3, 0.6, nesterov=True), lambda z: torch.optim.SGD([z], lr=0.3, momentum=0.6, nesterov=True)),
    ],
)
@pytest.mark.parametrize("schedule", [None, Power(0.7, p=1 / 2)])
def test_a_rule_is_that_of_torch_bit_for_bit(rule, theirs, schedule, dtype, generator):
    """A thousand entries and three, so that whole vectors of the processor and what is left of them are both tried."""
    z = torch.randn(1003, generator=generator, dtype=dtype)
    parameter = z.clone().requires_grad_()
    optimiser, rule = theirs(parameter), rule if schedule is None else replace(rule, rate=schedule)
    memory = rule.start(z)
    assert (Momentum().rate, Normalised().rate, Adam().rate) == (1e-2, 1e-2, 1e-3)
    for t in range(30):
        d = torch.randn(1003, generator=generator, dtype=dtype) * 10 ** (t % 5 - 3)
        d[: 10 * t] = 0  # entries without a gradient go on by their memory
        for group in optimiser.param_groups:
            group["lr"] = schedule(t) if schedule else group["lr"]
        parameter.grad = d.clone()
        optimiser.step()
        z, memory = rule.move(z, d, memory, t)
        assert torch.equal(z, parameter)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_normalised_step_has_the_length_of_its_rate(momentum, generator):
    rule, z, d = Normalised(Power(0.3), momentum), torch.zeros(5), torch.randn(20, 5, generator=generator)
    memory = rule.start(z)
    for t in range(20):
        new, memory = rule.move(z, d[t], memory, t)
        average = sum(momentum**i * d[t - i] for i in range(t + 1))
        assert (new - z).norm().item() == pytest.approx(Power(0.3)(t), rel=1e-5)
        torch.testing.assert_close(new, z - Power(0.3)(t) * average / average.norm())
        z = new
    still, _ = Normalised(0.1).move(z, torch.zeros(5), rule.start(z), 0)
    assert torch.equal(still, z)


# In the methods


def test_soba_moves_each_variable_as_torch_would(dtype):
    problem = Quadratic(noise=0.5, dtype=dtype)
    solver = SOBA(alpha=Adam(0.03), beta=Momentum(0.1, nesterov=True), lam=Adam(0.1, beta1=0.5))
    state = solver.init(problem)
    x, y, v = (getattr(state, name).clone().requires_grad_() for name in "xyv")
    optimisers = [
        torch.optim.Adam([x], lr=0.03),
        torch.optim.SGD([y], lr=0.1, momentum=0.9, nesterov=True),
        torch.optim.Adam([v], lr=0.1, betas=(0.5, 0.999)),
    ]
    generator = torch.Generator().manual_seed(0)
    for _ in range(40):
        d = exact(problem, x.detach(), y.detach(), v.detach(), problem.sample(generator))
        x.grad, y.grad, v.grad = d.x, d.y, d.v
        for optimiser in optimisers:
            optimiser.step()
        state = solver.step(problem, state)
        assert all(torch.equal(ours, theirs) for ours, theirs in ((state.x, x), (state.y, y), (state.v, v)))


@pytest.mark.parametrize("name", ["stocBiO", "AmIGO", "BSA", "AID-FP", "AID-CG", "reverse", "PZOBO-S"])
def test_an_inner_loop_goes_on_with_one_optimiser(name):
    """Over outer steps too: y is where one torch Adam would have it, each gradient at the x of its time."""
    problem = LogCosh()
    solver = SOLVERS[name](alpha=0.1, beta=Adam(0.05), inner=3, **{"K": 2} if name == "reverse" else {})
    state = solver.init(problem)
    y = state.y.clone().requires_grad_()
    optimiser = torch.optim.Adam([y], lr=0.05)
    for _ in range(5):
        for _ in range(3):
            y.grad = grad_y(problem.lower, state.x, y.detach(), problem.full().lower)
            optimiser.step()
        state = solver.step(problem, state)
        torch.testing.assert_close(state.y, y.detach(), rtol=1e-12, atol=1e-12)
    assert state.memory["y"].k == 15


def small(name, **options):
    """A method with short loops; products of random length have length 0."""
    short = {"inner": 2, "K": 1 if name in ("BSA", "SUSTAIN") else 2, "Q": 4} | options
    return METHODS[name](**{key: value for key, value in short.items() if key in METHODS[name].__dataclass_fields__})


def steps_of(name):
    """The variables that a method moves by options of its own."""
    return [variable for variable, option in STEPS.items() if option in METHODS[name].__dataclass_fields__]


def with_rules(name, rule):
    return small(name, **{STEPS[variable]: rule for variable in steps_of(name)})


# How often a variable moves in a step, with two inner steps, where that is not once.
OFTEN = {
    **{name: {"y": 2} for name in ("stocBiO", "BSA", "AID-FP", "AID-CG", "reverse", "PZOBO-S", "VRBO")},
    "AmIGO": {"y": 2, "v": 4},
    "F2SA": {"y": 2, "z": 2},
    "F2SA-p": {"y": 2},
    "BOME": {"z": 2},
    "MyMethod": {"v": 2},
}


@pytest.mark.parametrize("name", METHODS)
def test_every_variable_of_every_method_takes_a_rule(name):
    state = walk(Quadratic(noise=0.5), with_rules(name, Adam(0.01)), 3)
    moves = {variable: memory.k for variable, memory in state.memory.items()}
    assert moves == {variable: 3 * OFTEN.get(name, {}).get(variable, 1) for variable in steps_of(name)}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("rule", [Normalised(0.07), Normalised(Power(0.1))])
def test_a_rule_of_x_acts_on_the_direction_of_the_method(name, rule):
    problem = LogCosh(noise=0.5)
    plain, normal = small(name, alpha=0.01), small(name, alpha=rule)
    state = normal.init(problem)
    for t in range(3):
        after, other = normal.step(problem, state), plain.step(problem, state)
        torch.testing.assert_close(
            after.x - state.x, normal.alpha.value("rate", t) * (other.x - state.x) / (other.x - state.x).norm(),
            rtol=1e-9, atol=1e-9,
        )  # fmt: skip
        state = after


class Half(NamedTuple):
    """The memory of the rule below: it alternates."""

    odd: bool


class EverySecond(Rule):
    """A rule of one's own: a plain step every second time."""

    def start(self, z):
        return Half(False)

    def move(self, z, d, memory, t):
        return z - 0.1 * d if memory.odd else z, Half(not memory.odd)


def test_a_rule_of_ones_own():
    problem, solver = Quadratic(), SOBA(alpha=EverySecond())
    states = [solver.init(problem)]
    for _ in range(6):
        states.append(solver.step(problem, states[-1]))
    assert [torch.equal(a.x, b.x) for a, b in pairwise(states)] == [True, False] * 3


# Backwards through rules


@pytest.mark.parametrize("rule", [Adam(0.05), Momentum(0.1, nesterov=True), Normalised(0.2, 0.5)])
def test_reverse_is_the_derivative_of_the_loop_with_its_rule(rule):
    """Of x -> f(x, y_T(x)), by central differences of the loop that is written out here."""
    problem, samples = LogCosh(), LogCosh().full()

    def reached(x):
        y, memory = problem.y0, rule.start(problem.y0)
        for _ in range(6):
            y, memory = rule.move(y, problem.g_y(x, y, samples.lower), memory, 0)
        return problem.upper(x, y, samples.upper)

    solver = SOLVERS["reverse"](alpha=1.0, beta=rule, inner=6, K=6, full=True)
    d = problem.x0 - walk(problem, solver, 1).x
    units = 1e-5 * torch.eye(len(d), dtype=torch.float64)
    quotients = [(reached(problem.x0 + u) - reached(problem.x0 - u)) / 2e-5 for u in units]
    torch.testing.assert_close(d, torch.stack(quotients), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("beta", [0.1, Momentum(0.1), Adam(0.1)])
def test_the_v_of_reverse_is_the_one_in_its_direction(beta):
    """On a quadratic J is the same at every y, so d = grad_x f - J v whatever moved y."""
    problem = Quadratic()
    state = walk(problem, SOLVERS["reverse"](alpha=1.0, beta=beta, inner=5, K=5), 1)
    torch.testing.assert_close(problem.x0 - state.x, problem.rho * problem.x0 + problem.B.T @ state.v)
    assert not any(
        part.requires_grad for part in (state.x, state.y, state.v, *state.memory.get("y", ())) if hasattr(part, "grad")
    )


def test_adam_backwards_has_no_hole_where_a_gradient_is_zero():
    problem = Quadratic(dim_y=4)
    problem.A = torch.diag(torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=torch.float64))
    problem.B[0], problem.b[0] = 0.0, 0.0  # nothing ever pulls at the first entry of y
    state = walk(problem, SOLVERS["reverse"](beta=Adam(0.1), inner=4, K=4), 3)
    assert state.x.isfinite().all()


# Constraints on x


class Boxed(Quadratic):
    def __init__(self, low, high, **options):
        super().__init__(**options)
        self.low, self.high = low, high

    def start(self, generator):
        x, y = super().start(generator)
        return self.project_x(x), y

    def project_x(self, x):
        return x.clamp(self.low, self.high)


def curvature(problem, S):
    """rho I + B' S A^-1 B, the derivative of the direction of x of a method that sees v = S grad_y f."""
    return problem.rho * torch.eye(len(problem.x0)).double() + problem.B.T @ S @ torch.linalg.solve(
        problem.A, problem.B
    )


@pytest.mark.parametrize("name", METHODS)
def test_no_method_leaves_the_box_and_each_ends_on_its_edge(name):
    """The minimiser lies outside, beyond the edge that every bilevel method must stop at; the control goes to 0."""
    edge = 0.3 * Quadratic(dim_x=1, dim_y=4).minimiser.item()
    low, high = sorted((edge, -9 * edge))
    problem, solver = Boxed(low, high, dim_x=1, dim_y=4), small(name, alpha=0.3)
    states = [solver.init(problem, x=torch.tensor([-2 * edge], dtype=torch.float64))]
    for _ in range(40):
        states.append(solver.step(problem, states[-1]))
    path = [state.x.item() for state in states]
    assert all(low <= x <= high for x in path)
    assert path[-1] == edge if name != "alternating" else abs(path[-1]) < 1e-2


@pytest.mark.parametrize("name", ["FdeHBO", "FMBO", "SOBA", "FSLA", "AmIGO", "AID-CG", "MyMethod"])
@pytest.mark.parametrize("alpha", [0.4, Momentum(0.15, 0.6)])
def test_the_constrained_minimiser_is_found(name, alpha):
    """With x_1 on its edge e, the other solves C_22 (x_2 - m_2) = -C_21 (e - m_1), m the free minimiser of Phi."""
    free = Quadratic(dim_x=2, dim_y=4, seed=3)
    m, C = free.minimiser, curvature(free, torch.linalg.inv(free.A))
    e = m[0] - 0.3
    expected = torch.stack((e, m[1] - C[1, 0] * (e - m[0]) / C[1, 1]))
    box = torch.stack((e, m[1] + 9)), torch.stack((m[0] - 9, m[1] - 9))
    problem = Boxed(box[1], box[0], dim_x=2, dim_y=4, seed=3)
    state = walk(problem, small(name, alpha=alpha, beta=0.3, lam=0.3, K=4), 120)
    torch.testing.assert_close(state.x, expected, rtol=1e-6, atol=1e-6)
    assert (expected - m).norm() > 0.29
    assert expected[1] != m[1]
