"""The live widgets, one class each: a sentence that describes it, and its dials."""

import base64
from typing import Any

import torch

from bilevel_book.digits import Digits
from bilevel_book.widgets.base import Choice, Dial, Live, Whole
from bilevel_core.problem import seeded
from bilevel_core.problems import Quadratic
from bilevel_core.solvers import SOLVERS


def steps(start: int, most: int) -> Whole:
    return Whole(start, 1, most, "T, steps", log=True)


def options(alpha: float, beta: float, lam: float, eta: float, delta: float) -> tuple[Dial, ...]:
    """The dials of a method, as constants."""
    return (
        Dial(alpha, 0.001, 2, "α, step of x", log=True),
        Dial(beta, 0.01, 5, "β, step of y", log=True),
        Dial(lam, 0.01, 5, "λ, step of v", log=True),
        Dial(eta, 0.005, 1, "η, new weight", log=True),
        Dial(delta, 1e-9, 3, "δ, difference", log=True),
    )


class Run(Live):
    method = Choice([*SOLVERS], "method")
    steps = steps(300, 5000)
    alpha, beta, lam, eta, delta = options(0.03, 0.3, 0.3, 0.3, 0.1)
    r_v = Dial(2, 0.01, 100, "rᵥ, radius for v", log=True)
    noise = Dial(0.05, 0, 2, "σ, noise")
    seed = Whole(0, 0, 999, "seed")
    x0 = Dial(-0.4, -2.6, 2.2, "x₀, start of x")
    y0 = Dial(1.5, -2.3, 2.3, "y₀, start of y")


class Valley(Run):
    """A valley seen from above with the path of a run from a start that can be dragged, its floor y*(x), and below it
    the objective with the right and the wrong slope where the run ends."""

    name, sight = "valley", "method steps alpha noise seed"


class Everything(Run):
    """The paths of four methods in a valley, with the slope of the objective and the adjoint vector against the step;
    nine dials change the run."""

    name, sight = "everything", "method steps noise seed alpha beta lam eta delta r_v"


class Delta(Live):
    """A point in a valley with two ends a step delta v away, the gradient between them, and the U-shaped error of the
    central difference against delta, in float32 and float64."""

    name, sight = "delta", "dtype delta v"
    dtype = Choice(["float32", "float64"], "type of the numbers")
    delta = Dial(0.3, 1e-12, 1, "δ, difference", log=True)
    v = Dial(1, 0.1, 10, "v, the direction", log=True)
    x0 = Dial(-0.6, -2.6, 2.2, "x")
    y0 = Dial(0.7, -2.3, 2.3, "y")


class Hypergradient(Live):
    """The objective with its tangent and the line of the direct term at a point that can be dragged; below, arrows for
    the slope by the formula, through steps of y, and by differences of the objective."""

    name, sight = "hypergradient", "x0 steps beta delta"
    x0 = Dial(-0.4, -2.6, 2.2, "x")
    steps = Whole(20, 0, 60, "K, steps of y")
    beta = Dial(0.3, 0.01, 1, "β, step of y", log=True)
    delta = Dial(0.1, 0.001, 1, "δ, difference", log=True)


class Bowl(Live):
    """Level lines of a bowl, with gradient steps for v from a start that can be dragged, and the distance to the lowest
    point against the step."""

    name, sight = "bowl", "lam L steps"
    lam = Dial(0.1, 0.005, 1, "λ, step of v", log=True)
    L = Dial(4, 1, 20, "L, curvature", log=True)
    steps = steps(20, 200)
    v1 = Dial(-1, -2.2, 3.8, "v₀, first")
    v2 = Dial(0, -1.5, 3.1, "v₀, second")


class Momentum(Live):
    """A plain sample, an average and recursive momentum follow a moving gradient, in one run and by their errors over
    200 seeds."""

    name, sight = "momentum", "eta s noise tau seed"
    eta = Dial(0.1, 0.01, 1, "η, new weight", log=True)
    s = Dial(0.1, 0.003, 1, "s, length of a step", log=True)
    noise = Dial(0.5, 0, 2, "σ, noise")
    tau = Dial(0.5, 0, 2, "τ, slope noise")
    seed = Whole(0, 0, 999, "seed")


class OnQuadratic(Live):
    """A problem `Quadratic(*size, seed)`: what it has drawn goes to the module."""

    size: tuple[int, int] = (5, 10)
    problem_seed = 0

    def make(self) -> dict[str, Any]:
        problem, n = Quadratic(*self.size, seed=self.problem_seed), self.size[1]
        rotation, _ = torch.linalg.qr(torch.randn(n, n, generator=seeded(self.problem_seed), dtype=torch.float64))
        return {"rotation": rotation.tolist()} | {name: vars(problem)[name].tolist() for name in ("B", "b", "c", "x0")}


class Ball(OnQuadratic):
    """The path of the two numbers of v in a disc, with the ball and without, and the norm of the hypergradient against
    the step."""

    name, sight, size, problem_seed = "ball", "r_v lam noise eta steps seed", (1, 2), 10
    r_v = Dial(1.5, 0.05, 10, "rᵥ, radius for v", log=True)
    alpha, beta, lam, eta, delta = options(0.1, 0.3, 0.3, 0.3, 0.01)
    noise = Dial(0.5, 0, 2, "σ, noise")
    seed = Whole(0, 0, 999, "seed")
    steps = steps(200, 1000)


class Race(OnQuadratic):
    """Four methods on a track and the gap of the objective against the gradients that they have spent."""

    name, sight = "race", "budget price noise L alpha eta seed"
    budget = Whole(2000, 20, 20000, "gradients", log=True)
    price = Dial(2, 1, 5, "price of Hv, Jv")
    L = Dial(3, 1, 30, "L, curvature", log=True)
    alpha, beta, lam, eta, delta = options(0.1, 0.2, 0.2, 0.1, 0.01)
    noise = Dial(0.3, 0, 2, "σ, noise")
    seed = Whole(0, 0, 999, "seed")


class Slopes(Live):
    """The average A(T) of the squared slope of the objective against T on logarithmic axes, for FdeHBO and SOBA, eight
    seeds of 10000 steps each."""

    name, sight = "slopes", "p q noise x0 seed"
    p = Dial(1 / 3, 1 / 6, 5 / 6, "p, of α, β, λ")
    q = Dial(2 / 3, 1 / 3, 1, "q, of η")
    noise = Dial(0.5, 0, 2, "σ, noise")
    x0 = Dial(-0.4, -2.6, 2.2, "x₀, start of x")
    seed = Whole(0, 0, 999, "seed")
    since = Whole(300, 10, 3000, "T₀, where the fit begins", log=True)


class Mislabel(Live):
    """200 handwritten digits, each as dark as its weight, those with a wrong label in a frame, and the mean weights of
    right and wrong labels against the step."""

    name, sight = "mislabel", "alpha delta"
    alpha = Dial(100, 10, 1000, "α, step of x", log=True)
    delta = Dial(0.01, 1e-4, 1, "δ, difference", log=True)

    def make(self) -> dict[str, Any]:
        digits = Digits(n=200, noise=0.1)
        pixels, (trusted, their_labels) = digits.pixels, digits.trusted
        return {
            "pixels": packed(pixels), "labels": digits.true.tolist(), "given": digits.given.tolist(),
            "trusted": packed(trusted), "trusted_labels": their_labels.tolist(), "C": digits.C,
            "first": 3, "steps": 150,
        }  # fmt: skip


def packed(pixels: torch.Tensor) -> str:
    """Images in sixteen shades of grey, two pixels a byte, without their constant."""
    shades = (pixels[:, :-1] * 15).round().byte().flatten()
    return base64.b64encode((16 * shades[::2] + shades[1::2]).numpy().tobytes()).decode()
