"""Cost and structure of the methods: counted where they happen, or made to fail where they must not happen."""

from functools import cache

import torch
from torch import Tensor

from bilevel_book.experiments import paper_settings
from bilevel_book.experiments.report import REPRESENTATION
from bilevel_book.ledger.claim import CONSTRUCTION, OWN_CODE, Claim, listed, supported_if
from bilevel_book.methods import SOLVERS
from bilevel_book.walk import walk
from bilevel_core.counting import Calls, counting
from bilevel_core.problems import Quadratic
from bilevel_core.solvers import FdeHBO

ONE_PRODUCT = "counted; recursive momentum asks at two points. The number is fixed, so no order changes"


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


class _DifferentiableOnce(torch.autograd.Function):
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
        return super().lower(_DifferentiableOnce.apply(x), _DifferentiableOnce.apply(y), batch)


@cache
def needs_second_derivatives(name: str) -> bool:
    """Whether a method asks for a second derivative in its first three steps."""
    try:
        walk(FirstOrderOnly(), SOLVERS[name](), 3)
    except SecondDerivative:
        return True
    return False


def single_loop() -> Claim:
    text = "FdeHBO has a single loop"
    measure = "gradients counted in each of the first five steps; a method with an inner loop has an option for it"
    gradients = [calls.gradients for calls in cost("FdeHBO", 5)]
    fixed = len(set(gradients[1:])) == 1 and "inner" not in FdeHBO.__dataclass_fields__
    return Claim(text, measure, listed(gradients), supported_if(fixed), OWN_CODE)


def in_the_ball() -> Claim:
    r_v = 0.3
    measure = f"largest norm of v in 100 noisy steps with radius {r_v}"
    largest = max(state.v.norm().item() for state in walk(Quadratic(noise=3.0), FdeHBO(r_v=r_v), 100))
    return Claim("v is kept in a ball", measure, f"{largest:.3f}", supported_if(largest <= r_v), CONSTRUCTION)


def momentum_on_all() -> Claim:
    measure = "how far each is, after two steps from the same samples, from where it is without momentum"
    on, off = (walk(Quadratic(noise=1.0), FdeHBO(eta=eta), 2)[-1] for eta in (0.5, 1.0))
    moved = {"y": on.y - off.y, "v": on.v - off.v, "x": on.x - off.x}
    numbers = "; ".join(f"{name}: {by.norm().item():.2g}" for name, by in moved.items())
    verdict = supported_if(all(by.norm() > 0 for by in moved.values()))
    return Claim("y, v and x all have momentum", measure, numbers, verdict, OWN_CODE)


def first_order_only() -> Claim:
    measure = (
        "products counted in a step, and a run on a loss that raises an error when differentiated twice "
        "(FMBO, which needs products, must fail there)"
    )
    calls, needs = cost("FdeHBO")[-1], {name: needs_second_derivatives(name) for name in ("FdeHBO", "FMBO")}
    runs = ", ".join(f"{name} {'fails' if fails else 'runs'}" for name, fails in needs.items())
    verdict = supported_if(calls.Hv == calls.Jv == 0 and not needs["FdeHBO"] and needs["FMBO"])
    return Claim("FdeHBO computes no second derivative", measure, f"{products(calls)}; {runs}", verdict, OWN_CODE)


def products(calls: Calls) -> str:
    return f"{calls.Hv} H v and {calls.Jv} J v"


def few_samples() -> Claim:
    measure = "batches drawn in each of the first four steps, one draw for all estimators, and one for each"
    shared, three = ([calls.samples for calls in cost("FdeHBO", 4, independent=many)] for many in (False, True))
    verdict = supported_if(len(set(shared)) == len(set(three)) == 1)
    numbers = f"{listed(shared)}; {listed(three)}"
    return Claim("each step uses a fixed number of samples", measure, numbers, verdict, OWN_CODE)


def one_product(method: str) -> Claim:
    calls = cost(method)[-1]
    return Claim(f"{method} makes one product a step", ONE_PRODUCT, products(calls), supported_if(calls.Hv == 1))


def one_product_in_differences() -> Claim:
    """FdeHBO has differences of gradients where FMBO has products."""
    calls, exact = cost("FdeHBO")[-1], cost("FMBO")[-1]
    numbers = f"{calls.gradients} gradients, which stand for {products(exact)} and {exact.gradients} plain gradients"
    return Claim("FdeHBO makes one product a step", ONE_PRODUCT, numbers, supported_if(exact.Hv + exact.Jv == 1))


def others_have_a_subloop() -> Claim:
    text = "earlier momentum methods make more products the more accurate they are, FMBO does not"
    lengths = (3, 6, 12)
    measure = f"H v counted in a step: MRBO with a series of {listed(lengths)} terms, and FMBO"
    mrbo, fmbo = [cost("MRBO", Q=Q)[-1].Hv for Q in lengths], cost("FMBO")[-1].Hv
    verdict = supported_if(mrbo == sorted(set(mrbo)) and fmbo < mrbo[0])
    return Claim(text, measure, f"{listed(mrbo)}; {fmbo}", verdict, OWN_CODE)


def others_need_products() -> Claim:
    text = "the earlier methods with this complexity need products"
    measure = "H v and J v counted in a step, with the defaults of the library"
    counts = {name: cost(name)[-1] for name in ("MRBO", "SUSTAIN", "VRBO")}
    numbers = "; ".join(f"{name}: {calls.Hv} and {calls.Jv}" for name, calls in counts.items())
    return Claim(text, measure, numbers, supported_if(all(c.Hv + c.Jv > 0 for c in counts.values())), OWN_CODE)


def free_of_products(method: str) -> Claim:
    measure = "products counted in a step, and a run on a loss that raises an error when differentiated twice"
    calls = cost(method)[-1]
    verdict = supported_if(calls.Hv == calls.Jv == 0 and not needs_second_derivatives(method))
    return Claim(f"{method}: free of Hessians and Jacobians", measure, products(calls), verdict, OWN_CODE)


def batch_of_order_one(method: str) -> Claim:
    drawn = [calls.samples for calls in cost(method, 4)[1:]]
    verdict, measure = supported_if(len(set(drawn)) == 1), "batches drawn in steps two to four"
    return Claim(f"{method}: batch of order one", measure, listed(drawn), verdict, OWN_CODE)


def loops(method: str, count: int) -> Claim:
    """Two where y gets several steps for one of x."""
    measure = "steps of the lower level for one of the upper, as run in the first experiment"
    inner = paper_settings(REPRESENTATION, method).get("inner", 1)
    verdict = supported_if((1 if inner == 1 else 2) == count)
    return Claim(f"{method}: loops per iteration {count}", measure, f"{inner}", verdict, OWN_CODE)
