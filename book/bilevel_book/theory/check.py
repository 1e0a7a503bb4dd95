"""A statement on one instance, truth <= bound, and what instances are made of: points, steps, errors, distances."""

from typing import NamedTuple

from torch import Tensor

from bilevel_book.theory.families import LogCoshFamily
from bilevel_core.directions import Directions, Point, project


class Check(NamedTuple):
    """A statement on one instance: it says truth <= bound."""

    truth: float
    bound: float

    def holds(self, tol: float = 1e-9, slack: float = 1e-12) -> bool:
        """Whether truth <= bound up to rounding."""
        return self.truth <= self.bound + tol * (abs(self.truth) + abs(self.bound)) + slack


def sq(z: Tensor) -> float:
    """||z||^2."""
    return (z * z).sum().item()


def distance(z1: Tensor, z2: Tensor) -> float:
    """||z1 - z2||."""
    return (z1 - z2).norm().item()


def squared_distance(one: Point, two: Point) -> float:
    """||(x1, y1) - (x2, y2)||^2: v is left out."""
    return sq(one.x - two.x) + sq(one.y - two.y)


class Step(NamedTuple):
    """One step of FMBO or FdeHBO from `at` to `to`, with estimators h and step sizes alpha, beta, lam."""

    at: Point
    to: Point
    h: Directions
    alpha: float
    beta: float
    lam: float


def take_step(problem: LogCoshFamily, at: Point, h: Directions, alpha: float, beta: float, lam: float) -> Step:
    """x - alpha h_x, y - beta h_y, P(v - lam h_v), all from the point `at`."""
    v = project(at.v - lam * h.v, problem.constants.r_v)
    return Step(at, Point(at.x - alpha * h.x, at.y - beta * h.y, v), h, alpha, beta, lam)


def errors(problem: LogCoshFamily, step: Step, delta: float | None = None) -> Directions:
    """(e_y, e_v, e_x): the estimators minus the true directions, or minus those seen through differences."""
    return Directions(*(h - d.mean(0) for h, d in zip(step.h, problem.directions(*step.at, delta), strict=True)))


def bound_on_move(problem: LogCoshFamily, step: Step) -> float:
    """alpha^2 ||h_x||^2 + 2 beta^2 (||e_y||^2 + ||grad_y g||^2), at least ||dx||^2 + ||dy||^2 of the step."""
    g_y = problem.g_y(step.at.x, step.at.y).mean(0)
    return step.alpha**2 * sq(step.h.x) + 2 * step.beta**2 * (sq(errors(problem, step).y) + sq(g_y))
