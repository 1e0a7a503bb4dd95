"""Cost and structure of the methods: counted where they happen, or made to fail where they must not happen."""

from functools import cache

import torch
from torch import Tensor

from bilevel_book.ledger.evidence import Evidence, Judge, found, listed
from bilevel_book.verdicts import Claim
from bilevel_core.counting import Calls, counting
from bilevel_core.problem import BilevelProblem
from bilevel_core.problems import Quadratic
from bilevel_core.solvers import SOLVERS, FdeHBO, Solver, State


def walk(problem: BilevelProblem, solver: Solver, steps: int) -> list[State]:
    """The states after each step."""
    states = [solver.init(problem)]
    for _ in range(steps):
        states.append(solver.step(problem, states[-1]))
    return states[1:]


@cache
def cost(name: str, steps: int = 3, **options: float) -> list[Calls]:
    """What each of the first steps of a method asks of a problem."""
    problem, solver = Quadratic(), SOLVERS[name](**options)
    state, calls = solver.init(problem), []
    for _ in range(steps):
        with counting() as each:
            state = solver.step(problem, state)
        calls.append(each)
    return calls


class _Once(torch.autograd.Function):
    """The identity; its gradient may be taken, but not as something to be differentiated again."""

    @staticmethod
    def forward(ctx, z: Tensor) -> Tensor:
        return z.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        if torch.is_grad_enabled():  # only where the graph of the gradient is kept, for a second derivative
            raise RuntimeError("a second derivative was asked for")
        return gradient


class FirstOrderOnly(Quadratic):
    """A quadratic problem whose gradients exist and whose second derivatives raise an error."""

    def lower(self, x: Tensor, y: Tensor, batch) -> Tensor:
        return super().lower(_Once.apply(x), _Once.apply(y), batch)


@cache
def needs_second_derivatives(name: str) -> bool:
    """Whether a method fails where second derivatives cannot be taken."""
    try:
        walk(FirstOrderOnly(), SOLVERS[name](), 3)
    except RuntimeError:
        return True
    return False


def single_loop(evidence: Evidence) -> list[Claim]:
    gradients = [calls.gradients for calls in cost("FdeHBO", 5)]
    fixed = len(set(gradients[1:])) == 1 and "inner" not in FdeHBO.__dataclass_fields__
    return [
        found(
            "FdeHBO has a single loop",
            "gradients counted in each of the first five steps; a method with an inner loop has an option for it",
            listed(gradients),
            fixed,
        )
    ]


def in_the_ball(evidence: Evidence) -> list[Claim]:
    r_v = 0.3
    largest = max(state.v.norm().item() for state in walk(Quadratic(noise=3.0), FdeHBO(r_v=r_v), 100))
    return [
        found(
            "v is kept in a ball",
            f"largest norm of v in 100 noisy steps with radius {r_v}",
            f"{largest:.3f}",
            largest <= r_v,
        )
    ]


def momentum_on_all(evidence: Evidence) -> list[Claim]:
    problem = Quadratic(noise=1.0)
    on, off = (walk(problem, FdeHBO(eta=eta), 2)[-1] for eta in (0.5, 1.0))
    moved = {name: (getattr(on, name) - getattr(off, name)).norm().item() for name in "yvx"}
    return [
        found(
            "y, v and x all have momentum",
            "how far each is, after two steps from the same samples, from where it is without momentum",
            "; ".join(f"{name}: {value:.2g}" for name, value in moved.items()),
            all(value > 0 for value in moved.values()),
        )
    ]


def first_order_only(evidence: Evidence) -> list[Claim]:
    calls = cost("FdeHBO")[-1]
    return [
        found(
            "FdeHBO computes no second derivative",
            "products counted in a step, and a run on a loss that raises an error when differentiated twice "
            "(FMBO, which needs products, must fail there)",
            f"{calls.Hv} H v and {calls.Jv} J v; FdeHBO {'fails' if needs_second_derivatives('FdeHBO') else 'runs'}, "
            f"FMBO {'fails' if needs_second_derivatives('FMBO') else 'runs'}",
            calls.Hv == calls.Jv == 0 and not needs_second_derivatives("FdeHBO") and needs_second_derivatives("FMBO"),
        )
    ]


def few_samples(evidence: Evidence) -> list[Claim]:
    shared, three = ([calls.samples for calls in cost("FdeHBO", 4, independent=many)] for many in (False, True))
    return [
        found(
            "each step uses a fixed number of samples",
            "batches drawn in each of the first four steps, one draw for all estimators, and one for each",
            f"{listed(shared)}; {listed(three)}",
            len(set(shared)) == len(set(three)) == 1,
        )
    ]


def one_product(name: str) -> Judge:
    def judge_it(evidence: Evidence) -> list[Claim]:
        calls = cost(name)[-1]
        if name == "FdeHBO":
            as_products = cost("FMBO")[-1]
            numbers = (
                f"{calls.gradients} gradients, which stand for {as_products.Hv} H v and {as_products.Jv} J v "
                f"and {as_products.gradients} plain gradients"
            )
            products = as_products.Hv + as_products.Jv
        else:
            numbers, products = f"{calls.Hv} H v and {calls.Jv} J v", calls.Hv
        return [
            found(
                f"{name} makes one product a step",
                "counted; recursive momentum asks at two points. The number is fixed, so no order changes",
                numbers,
                products == 1,
            )
        ]

    return judge_it


def others_have_a_subloop(evidence: Evidence) -> list[Claim]:
    lengths = (3, 6, 12)
    mrbo = [cost("MRBO", Q=Q)[-1].Hv for Q in lengths]
    fmbo = cost("FMBO")[-1].Hv
    return [
        found(
            "earlier momentum methods make more products the more accurate they are, FMBO does not",
            f"H v counted in a step: MRBO with a series of {', '.join(map(str, lengths))} terms, and FMBO",
            f"{listed(mrbo)}; {fmbo}",
            mrbo == sorted(set(mrbo)) and fmbo < mrbo[0],
        )
    ]


def others_need_products(evidence: Evidence) -> list[Claim]:
    counts = {name: cost(name)[-1] for name in ("MRBO", "SUSTAIN", "VRBO")}
    return [
        found(
            "the earlier methods with this complexity need products",
            "H v and J v counted in a step, with the defaults of the library",
            "; ".join(f"{name}: {calls.Hv} and {calls.Jv}" for name, calls in counts.items()),
            all(calls.Hv + calls.Jv > 0 for calls in counts.values()),
        )
    ]
