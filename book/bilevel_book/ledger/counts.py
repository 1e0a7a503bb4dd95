"""Cost and structure of the methods: counted where they happen, or made to fail where they must not happen."""

from functools import cache

import torch
from torch import Tensor

from bilevel_book.experiments import paper_settings
from bilevel_book.labels import REPRESENTATION
from bilevel_book.ledger.claim import Claim, decided
from bilevel_book.ledger.registry import CONSTRUCTION, OWN_CODE, apart, judge
from bilevel_book.ledger.words import listed
from bilevel_book.methods import SOLVERS
from bilevel_book.walk import walk
from bilevel_core.counting import Calls, counting
from bilevel_core.problems import Quadratic
from bilevel_core.solvers import FdeHBO


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


class SecondDerivative(Exception):
    """A second derivative was asked for where there is none."""


class _Once(torch.autograd.Function):
    """The identity; its gradient may be taken, but not as something to be differentiated again."""

    @staticmethod
    def forward(ctx, z: Tensor) -> Tensor:
        return z.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        if torch.is_grad_enabled():  # only where the graph of the gradient is kept, for a second derivative
            raise SecondDerivative
        return gradient


class FirstOrderOnly(Quadratic):
    """A quadratic problem whose gradients exist and whose second derivatives raise an error."""

    def lower(self, x: Tensor, y: Tensor, batch) -> Tensor:
        return super().lower(_Once.apply(x), _Once.apply(y), batch)


@cache
def needs_second_derivatives(name: str) -> bool:
    """Whether a method asks for a second derivative in its first three steps."""
    try:
        walk(FirstOrderOnly(), SOLVERS[name](), 3)
    except SecondDerivative:
        return True
    return False


@judge
@apart(OWN_CODE)
def single_loop() -> Claim:
    gradients = [calls.gradients for calls in cost("FdeHBO", 5)]
    fixed = len(set(gradients[1:])) == 1 and "inner" not in FdeHBO.__dataclass_fields__
    return Claim(
        "FdeHBO has a single loop",
        "gradients counted in each of the first five steps; a method with an inner loop has an option for it",
        listed(gradients),
        decided(fixed),
    )


@judge
@apart(CONSTRUCTION)
def in_the_ball() -> Claim:
    r_v = 0.3
    largest = max(state.v.norm().item() for state in walk(Quadratic(noise=3.0), FdeHBO(r_v=r_v), 100))
    return Claim(
        "v is kept in a ball",
        f"largest norm of v in 100 noisy steps with radius {r_v}",
        f"{largest:.3f}",
        decided(largest <= r_v),
    )


@judge
@apart(OWN_CODE)
def momentum_on_all() -> Claim:
    problem = Quadratic(noise=1.0)
    on, off = (walk(problem, FdeHBO(eta=eta), 2)[-1] for eta in (0.5, 1.0))
    moved = {name: (getattr(on, name) - getattr(off, name)).norm().item() for name in "yvx"}
    return Claim(
        "y, v and x all have momentum",
        "how far each is, after two steps from the same samples, from where it is without momentum",
        "; ".join(f"{name}: {value:.2g}" for name, value in moved.items()),
        decided(all(value > 0 for value in moved.values())),
    )


@judge
@apart(OWN_CODE)
def first_order_only() -> Claim:
    calls, needs = cost("FdeHBO")[-1], {name: needs_second_derivatives(name) for name in ("FdeHBO", "FMBO")}
    return Claim(
        "FdeHBO computes no second derivative",
        "products counted in a step, and a run on a loss that raises an error when differentiated twice "
        "(FMBO, which needs products, must fail there)",
        f"{calls.Hv} H v and {calls.Jv} J v; "
        + ", ".join(f"{name} {'fails' if fails else 'runs'}" for name, fails in needs.items()),
        decided(calls.Hv == calls.Jv == 0 and not needs["FdeHBO"] and needs["FMBO"]),
    )


@judge
@apart(OWN_CODE)
def few_samples() -> Claim:
    shared, three = ([calls.samples for calls in cost("FdeHBO", 4, independent=many)] for many in (False, True))
    return Claim(
        "each step uses a fixed number of samples",
        "batches drawn in each of the first four steps, one draw for all estimators, and one for each",
        f"{listed(shared)}; {listed(three)}",
        decided(len(set(shared)) == len(set(three)) == 1),
    )


_ONE_PRODUCT = "counted; recursive momentum asks at two points. The number is fixed, so no order changes"


@judge
def one_product(method: str) -> Claim:
    calls = cost(method)[-1]
    return Claim(
        f"{method} makes one product a step",
        _ONE_PRODUCT,
        f"{calls.Hv} H v and {calls.Jv} J v",
        decided(calls.Hv == 1),
    )


@judge
def one_product_in_differences() -> Claim:
    """FdeHBO has differences of gradients where FMBO has products."""
    calls, products = cost("FdeHBO")[-1], cost("FMBO")[-1]
    return Claim(
        "FdeHBO makes one product a step",
        _ONE_PRODUCT,
        f"{calls.gradients} gradients, which stand for {products.Hv} H v and {products.Jv} J v and "
        f"{products.gradients} plain gradients",
        decided(products.Hv + products.Jv == 1),
    )


@judge
@apart(OWN_CODE)
def others_have_a_subloop() -> Claim:
    lengths = (3, 6, 12)
    mrbo = [cost("MRBO", Q=Q)[-1].Hv for Q in lengths]
    fmbo = cost("FMBO")[-1].Hv
    return Claim(
        "earlier momentum methods make more products the more accurate they are, FMBO does not",
        f"H v counted in a step: MRBO with a series of {', '.join(map(str, lengths))} terms, and FMBO",
        f"{listed(mrbo)}; {fmbo}",
        decided(mrbo == sorted(set(mrbo)) and fmbo < mrbo[0]),
    )


@judge
@apart(OWN_CODE)
def others_need_products() -> Claim:
    counts = {name: cost(name)[-1] for name in ("MRBO", "SUSTAIN", "VRBO")}
    return Claim(
        "the earlier methods with this complexity need products",
        "H v and J v counted in a step, with the defaults of the library",
        "; ".join(f"{name}: {calls.Hv} and {calls.Jv}" for name, calls in counts.items()),
        decided(all(calls.Hv + calls.Jv > 0 for calls in counts.values())),
    )


@judge
@apart(OWN_CODE)
def free_of_products(method: str) -> Claim:
    calls = cost(method)[-1]
    return Claim(
        f"{method}: free of Hessians and Jacobians",
        "products counted in a step, and a run on a loss that raises an error when differentiated twice",
        f"{calls.Hv} H v and {calls.Jv} J v",
        decided(calls.Hv == calls.Jv == 0 and not needs_second_derivatives(method)),
    )


@judge
@apart(OWN_CODE)
def batch_of_order_one(method: str) -> Claim:
    drawn = [calls.samples for calls in cost(method, 4)[1:]]
    return Claim(
        f"{method}: batch of order one",
        "batches drawn in steps two to four",
        listed(drawn),
        decided(len(set(drawn)) == 1),
    )


@judge
@apart(OWN_CODE)
def loops(method: str, count: int) -> Claim:
    """Two where y gets several steps for one of x."""
    inner = paper_settings(REPRESENTATION, method).get("inner", 1)
    return Claim(
        f"{method}: loops per iteration {count}",
        "steps of the lower level for one of the upper, as run in the first experiment",
        f"{inner}",
        decided((1 if inner == 1 else 2) == count),
    )
