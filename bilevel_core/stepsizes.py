"""Options for a method on a problem, from how the problem curves at its start. First-order gradients are enough.

A step of y or v is 1 / (2 L), since L may grow as x moves. Then y follows x in about tau = 2 L / mu steps, and v
follows y in as many. alpha is the smaller of

    1 / (direct + tau implicit)                          half of where x becomes unstable
    0.4 ||x|| / (tau ||d_x|| + sqrt(tau) noise_x)        while y follows, x moves by 40 % of its size

By itself x is stable below 2 / direct. The loop from x to y to v and back, tau y' = x - y, tau v' = y - v, x' = -alpha
implicit v, is stable below 2 / (tau implicit), by the criterion of Routh and Hurwitz. Steps decay from t = 300 on, as
in the theorems; where draws differ, half of an estimate is its past, and more from t = 30 on; where no ball keeps v,
40 % become 20 %. These shares and times were chosen on fourteen problems.

mu is that of the way y goes when x moves. Elsewhere g may be flatter: (I - H / L)^30 u, for a random u, lies where it
is flattest, and a warning says what that probe finds.
"""

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from bilevel_core.counting import counting
from bilevel_core.directions import Directions, finite_difference, grad_y, hessian_vector
from bilevel_core.problem import BilevelProblem, Samples, check_problem, seeded
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers import SOLVERS, Solver
from bilevel_core.solvers.base import Suggestions

DECAYING = ("alpha", "beta", "lam", "gamma")  # options that are steps
POWER_STEPS = 10  # power iterations for L before y and v move
SOLVE_STEPS = 30  # steps of y and v towards y* and v*
FOLLOW_STEPS = 20  # steps of y and v after x has moved
DRAWS = 5  # for a mean and its noise
INERTIA = 0.8  # of the speed of y and v, kept from step to step
FLATTER = 10  # times less curvature than along the way of y is worth a warning
UNEVEN = 1e4  # times more curvature in one direction than in another likewise: data with columns of different units


class Curvature(NamedTuple):
    """A problem at its start, as `measure` sees it, with means over a few draws."""

    L: float  # the largest curvature of g on a batch
    mu: float  # the curvature of g along the way that y goes when x moves
    flattest: float  # the curvature of g that a random probe finds, where it is flattest
    ratio: float  # the curvature of f over that of g, along v
    norm_v: float  # ||v||
    delta: float  # for finite differences: moves y along v by the cube root of the machine epsilon, times its size
    dim_x: int
    size_x: float  # ||x||, or the root of its dimension where x = 0
    slope: float  # ||d_x||
    noise_x: float  # the standard deviation of d_x on a draw
    noise: float  # the largest of those of d_y, d_v and d_x, over the mean
    direct: float  # the curvature of Phi along d_x while y and v stand still
    implicit: float  # what it changes by when they have followed
    gradients: int  # what all this cost


def measure(problem: BilevelProblem, seed: int = 0) -> Curvature:
    """Follow y and v to y*(x) and v*(x) at the first x, by steps 1 / L with inertia, while power iterations find L;
    then move x against d_x by a hundredth of its size and follow them again."""
    generator = seeded(seed)
    x, y = (z.detach().clone() for z in problem.start(generator))
    L, v, u = 0.0, torch.zeros_like(y), torch.randn(y.shape, generator=generator, dtype=y.dtype).to(y.device)
    w = torch.randn(y.shape, generator=generator, dtype=y.dtype).to(y.device)
    here: tuple[Tensor, ...] = y, v, v, v  # with their speeds

    def delta(y: Tensor, v: Tensor) -> float:
        h = torch.finfo(y.dtype).eps ** (1 / 3) * max(1.0, y.norm().item()) / (v.norm().item() or 1.0)
        return h if 0 < h < math.inf else 1.0  # y and v may blow up: then all that is measured is nan

    def product(y: Tensor, z: Tensor, samples: Samples) -> Tensor:
        return hessian_vector(problem, x, y, z, samples.lower, delta(y, z))

    def directions(x: Tensor, y: Tensor, v: Tensor) -> Directions:
        on_draws = [finite_difference(problem, x, y, v, each, delta(y, v)) for each in draws]
        return Directions(*map(torch.stack, zip(*on_draws, strict=True)))

    def followed(x: Tensor, at: tuple[Tensor, ...], samples: Samples) -> tuple[Tensor, ...]:
        y, v, speed_y, speed_v = at
        d, step = finite_difference(problem, x, y, v, samples, delta(y, v)), 1 / (L or math.inf)
        speed_y, speed_v = INERTIA * speed_y - step * d.y, INERTIA * speed_v - step * d.v
        return y + speed_y, v + speed_v, speed_y, speed_v

    with counting() as calls:
        for t in range(POWER_STEPS + SOLVE_STEPS):
            samples = problem.sample(generator)
            u = product(here[0], normalize(u, dim=0), samples)
            L = max(u.norm().item(), L if t > POWER_STEPS / 2 else 0.0)
            if t >= POWER_STEPS:
                here = followed(x, here, samples)
                w = normalize(w - product(here[0], w, samples) / (L or math.inf), dim=0)
        draws = [problem.sample(generator) for _ in range(DRAWS)]
        found = directions(x, *here[:2])
        mean, size_x = found.x.mean(0), x.norm().item() or math.sqrt(len(x))
        down, far = -normalize(mean, dim=0), size_x / 100
        x_moved, there = x + far * down, here
        direct = directions(x_moved, *here[:2]).x.mean(0) - mean
        for _ in range(FOLLOW_STEPS):
            samples = problem.sample(generator)
            here, there = followed(x, here, samples), followed(x_moved, there, samples)
        (y, v, _, _), (y_moved, v_moved, _, _) = here, there
        turn = (directions(x_moved, y_moved, v_moved).x - directions(x, y, v).x).mean(0)
        way, h = normalize(y_moved - y, dim=0), delta(y, v)
        mu, flattest, curve_v = (sum((z @ product(y, z, each)).item() for each in draws) / DRAWS for z in (way, w, v))
        ahead, behind = (grad_y(problem.upper, x, y + step * v, draws[0].upper) for step in (h, -h))
    ratio = (v @ (ahead - behind)).item() / (2 * h * curve_v or 1.0)
    noise_y, noise_v, noise_x = ((d - d.mean(0)).norm().item() / math.sqrt(DRAWS - 1) for d in found)
    noise = max(n / (d.mean(0).norm().item() or 1.0) for n, d in zip((noise_y, noise_v, noise_x), found, strict=True))
    # A mean over draws is longer than what it estimates, by its share of the noise.
    slope = math.sqrt(max(mean.norm().item() ** 2 - noise_x**2 / DRAWS, mean.norm().item() ** 2 / 100))
    first, then, norm_v = (down @ direct).item() / far, (down @ (turn - direct)).item() / far, v.norm().item()
    return Curvature(
        L, mu, flattest, ratio, norm_v, h, len(x), size_x, slope, noise_x, noise, first, then, calls.gradients
    )


@dataclass(frozen=True, repr=False)
class Suggestion:
    """A method ready to run, the options it was given, what was measured, and why each option is what it is."""

    solver: Solver[Any]
    options: dict[str, Rate]
    measured: dict[str, float]
    reasons: dict[str, str]

    @property
    def line(self) -> str:
        """One sentence, for those who do not want the table."""
        given = ", ".join(f"{name} = {_shown(value)}" for name, value in self.options.items()) or "its defaults"
        line = f"{type(self.solver).__name__} with {given}, from {self.measured['gradients']} gradients at the start"
        return "; ".join([line, *self.warnings])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the probe of the flattest direction says about the lower level, if it is worth saying."""
        L, mu, flattest = (self.measured[name] for name in ("L", "mu", "flattest"))
        found = (
            f"the curvature of g is {L:.2g} at most, {mu:.2g} along the way of y, and {flattest:.2g} for a random probe"
        )
        uneven = f"{found}: standardise the inputs (mean 0, variance 1), or add a ridge"
        flat = f"{found}: there y follows more slowly than the steps allow for; add a ridge, or judge x by a refit"
        is_uneven, is_flat = UNEVEN * max(0.0, min(mu, flattest)) < L, flattest < mu / FLATTER
        return (uneven,) if is_uneven else (flat,) if is_flat else ()

    def __repr__(self) -> str:
        rows = [(name, _shown(value), self.reasons[name]) for name, value in self.options.items()]
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        measured = ", ".join(f"{name} {value:.3g}" for name, value in self.measured.items())
        table = ["  ".join(map(str.ljust, row, wide)).rstrip() for row in rows]
        return "\n".join([f"{type(self.solver).__name__}, measured: {measured}", *table])


def suggest(problem: BilevelProblem, method: str | type[Solver[Any]], seed: int = 0) -> Suggestion:
    """Options for a method, by its name in SOLVERS or its class, measured at the problem's start by 802 gradients. What
    cannot be measured keeps its default."""
    method = method if isinstance(method, type) else SOLVERS[method]
    check_problem(problem, seed)
    measured, defaults = measure(problem, seed), {f.name: f.default for f in fields(method)}
    noisy = method.is_random or measured.noise > 1e-3  # more than rounding
    rules = method.suggestions(_rules(defaults, measured, noisy), measured)
    options: dict[str, Rate] = {}
    for key, (value, _) in rules.items():
        if defaults.get(key) is not None and 0 < value < math.inf:  # exact products, delta = None, stay exact
            options[key] = value = float(f"{value:.2g}") if isinstance(value, float) else value
            if key in DECAYING or (noisy and key == "eta"):
                w, p = (30, 2 / 3) if key == "eta" else (300, 1 / 3 if "eta" in defaults else 1 / 2)
                options[key] = Power(value * w**p, w, p)
    return Suggestion(method(**options), options, measured._asdict(), {key: rules[key][1] for key in options})


def _rules(defaults: dict[str, Any], m: Curvature, noisy: bool) -> Suggestions:
    """A value for each option that many methods have, and why; not finite where it could not be measured."""
    tau = min(1000.0, max(1.0, 2 * m.L / m.mu if m.mu > 0 else math.inf))
    stable = _inverse(max(0.0, m.direct) + tau * max(0.0, m.implicit)), f"1 / (direct + tau implicit), tau = {tau:.2g}"
    moves = tau * m.slope + math.sqrt(tau) * m.noise_x
    share = 0.4 if "r_v" in defaults else 0.2
    careful = share * m.size_x * _inverse(moves), f"{share:.0%} of x in tau = {tau:.2g} steps"
    step = _inverse(2 * m.L), "1 / (2 L)"
    return {
        "alpha": min(stable, careful),
        **dict.fromkeys(("beta", "lam", "gamma"), step),
        "eta_series": (step[0] / 2, "1 / (4 L), since it does not decay"),
        "eta": (0.5, "draws differ") if noisy else (1.0, "draws do not differ: no momentum"),
        "r_v": (4 * m.norm_v, "4 ||v||"),
        "delta": (m.delta, "moves y by eps^(1/3) of its size"),
        "inner": (math.ceil(min(10, tau)), f"tau = 2 L / mu = {tau:.2g}, at most 10"),
        **dict.fromkeys(("K", "Q"), (math.ceil(min(30, 4 * tau)), f"4 tau, tau = 2 L / mu = {tau:.2g}; at most 30")),
    }


def _inverse(value: float) -> float:
    return 1 / value if value else math.inf


def _shown(value: Rate) -> str:
    return f"{value(0):.2g} (1 + t / {value.w})^-{value.p:.2g}" if isinstance(value, Power) else f"{value:.2g}"
