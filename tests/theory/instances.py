"""Random instances for the statements of the paper: hypothesis draws the scales and a seed, torch the vectors."""

from typing import NamedTuple

import torch
from hypothesis import strategies as st

from bilevel_book.theory.families import LogCoshFamily, normal
from bilevel_book.theory.statements import Point, Step, sq, take_step
from bilevel_core.directions import Directions, project


def number(value: float) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64)


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    """10 to a power between low and high."""
    return st.floats(low, high).map(lambda exponent: 10**exponent)


class Instance(NamedTuple):
    """A problem, two points with v in the ball, and the generator for whatever else is random."""

    problem: LogCoshFamily
    at: Point
    other: Point
    generator: torch.Generator


@st.composite
def instances(draw) -> Instance:
    """Scales over two orders of magnitude: constants below and above 1, g nearly quadratic and strongly bent."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    problem = LogCoshFamily.random(
        generator,
        dim_x=draw(st.integers(1, 3)),
        dim_y=draw(st.integers(1, 3)),
        mu=draw(powers(-1, 0.5)),
        coupling=draw(powers(-2, 1)),
        bending=draw(powers(-3, 0.5)),
        scale_f=draw(powers(-1.5, 0.5)),
        scale_f_x=draw(st.sampled_from([1.0, 1e-3])),
    )
    x = normal(len(problem.first[0]), generator=generator)
    at = _near(Point(x, problem.y_star(x), None), problem, 0.0, draw(powers(-2, 0.5)), generator)
    return Instance(problem, at, _near(at, problem, draw(powers(-3, 0.3)), draw(powers(-3, 0.3)), generator), generator)


def _near(point: Point, problem: LogCoshFamily, far_x: float, far_y: float, generator: torch.Generator) -> Point:
    x = point.x + far_x * normal(len(point.x), generator=generator)
    y = point.y + far_y * normal(len(point.y), generator=generator)
    r_v = problem.constants.r_v
    return Point(x, y, project(2 * r_v * normal(len(y), generator=generator), r_v))


@st.composite
def steps(draw) -> tuple[LogCoshFamily, Step]:
    """One step whose estimators are the directions plus errors of any size; lam and beta up to 1 / (mu + L)."""
    problem, at, _, generator = draw(instances())
    k, size = problem.constants, draw(powers(-2, 1))
    true = problem.directions(*at)
    h = Directions(*(d.mean(0) + size * normal(d.shape[1], generator=generator) for d in true))
    if draw(st.booleans()):  # x moves where the algorithm without error would send it
        h = h._replace(x=true.x.mean(0))
    fraction = st.floats(0, 1)
    return problem, take_step(
        problem,
        at,
        h,
        alpha=draw(fraction) / (3 * k.L_Phi),
        beta=draw(fraction) / (k.mu + k.L),
        lam=draw(fraction) / (k.mu + k.L),
    )


def step_with_its_squares(generator: torch.Generator) -> tuple[LogCoshFamily, Step, dict[str, float]]:
    """A step on which nothing is zero, and the squares of which the paper's bounds are made."""
    problem = LogCoshFamily.random(generator)
    x, y, v = (z + 0.3 for z in (*problem.first, problem.v_star(*problem.first)))
    d = problem.directions(x, y, v)
    errors = Directions(y=0.3, v=0.5, x=0.7)
    h = Directions(*(each.mean(0) + e for each, e in zip(d, errors, strict=True)))
    squares = {name: 2 * e**2 for name, e in errors._asdict().items()}  # two entries each
    squares |= {"h": sq(h.x), "slope": sq(d.y.mean(0)), "gap_y": sq(y - problem.y_star(x))}
    squares |= {"gap_v": sq(v - problem.v_star(x, y)), "Phi": sq(problem.hypergradient(x))}
    return problem, take_step(problem, Point(x, y, v), h, alpha=0.11, beta=0.13, lam=0.17), squares


def rounding(problem: LogCoshFamily, at: Point, delta: float) -> float:
    """How large the rounding error of a central difference may be: eps times the gradients, over delta."""
    size = sum(z.norm().item() for z in at) + delta * at.v.norm().item() + 5
    return 8 * torch.finfo(at.v.dtype).eps * problem.constants.L * size / delta
