"""What a direction costs, as ratios measured side by side in one run: `python benchmarks/cost_per_step.py`.

Floor of finite differences: one forward and backward pass over the upper and the lower batch.
Naive finite differences: each of the seven gradients by a call of its own.
Floor of exact products on hyper-cleaning: the six matrix products that any implementation of a point must do, on
pixels that it has to gather. A step of FMBO with momentum takes the directions at two points: its floor is twice that.
"""

import torch

from bilevel_core import FMBO
from bilevel_core.directions import exact, finite_difference, grad_x, grad_y
from bilevel_core.problem import BilevelProblem
from bilevel_core.problems import HyperCleaning, HyperRepresentation
from clock import side_by_side
from floors import bare_products


def a_point(problem: BilevelProblem):
    generator = torch.Generator().manual_seed(0)
    x, y = problem.start(generator)
    v = torch.randn(y.shape, generator=generator, dtype=y.dtype) / len(y) ** 0.5
    return x, y + v, v, problem.sample(generator)


def one_pass(problem: BilevelProblem, x, y, samples):
    x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
    loss = problem.upper(x, y, samples.upper) + problem.lower(x, y, samples.lower)
    return torch.autograd.grad(loss, (x, y))


def naive(problem: BilevelProblem, x, y, v, samples, delta):
    up, down, lower = y + delta * v, y - delta * v, samples.lower
    Hv = (grad_y(problem.lower, x, up, lower) - grad_y(problem.lower, x, down, lower)) / (2 * delta)
    Jv = (grad_x(problem.lower, x, up, lower) - grad_x(problem.lower, x, down, lower)) / (2 * delta)
    d_y = grad_y(problem.lower, x, y, lower)
    return d_y, Hv - grad_y(problem.upper, x, y, samples.upper), grad_x(problem.upper, x, y, samples.upper) - Jv


def report(title: str, times: dict[str, float]) -> None:
    floor = next(iter(times.values()))
    print(title)
    for name, seconds in times.items():
        print(f"  {name:34s} {1e3 * seconds:8.2f} ms   {seconds / floor:5.2f} x")


def main() -> None:
    torch.set_num_threads(1)
    lenet = HyperRepresentation()
    x, y, v, samples = a_point(lenet)
    candidates = {
        "floor: one pass over both batches": lambda: one_pass(lenet, x, y, samples),
        "finite_difference": lambda: finite_difference(lenet, x, y, v, samples, 0.1),
        "finite differences, naive": lambda: naive(lenet, x, y, v, samples, 0.1),
        "exact": lambda: exact(lenet, x, y, v, samples),
    }
    report("LeNet, batches of 256, the directions at one point", side_by_side(candidates, 15))

    cleaning = HyperCleaning()
    a, w, u, drawn = a_point(cleaning)
    candidates = {
        "floor: bare matrix products": lambda: bare_products(cleaning, w, u, drawn),
        "exact": lambda: exact(cleaning, a, w, u, drawn),
        "finite_difference": lambda: finite_difference(cleaning, a, w, u, drawn, 0.1),
    }
    report("Hyper-cleaning, batches of 100, the directions at one point", side_by_side(candidates, 300))

    solver = FMBO(alpha=0.3, beta=0.3, lam=0.3, eta=0.5, r_v=10.0)
    state = solver.step(cleaning, solver.init(cleaning))
    candidates = {
        "floor: bare matrix products, twice": lambda: [bare_products(cleaning, w, u, drawn) for _ in range(2)],
        "step of FMBO": lambda: solver.step(cleaning, state),
    }
    report("Hyper-cleaning, batches of 100, one step", side_by_side(candidates, 300))


if __name__ == "__main__":
    main()
