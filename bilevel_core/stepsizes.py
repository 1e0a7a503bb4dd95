"""Options for a method on a problem, from what `bilevel_core.curvature` measures at its start.

A step of y or v is 1 / (2 L), since L may grow as x moves. Then y follows x in about tau = 2 L / mu steps, and v
follows y in as many. alpha is the smaller of

    1 / (direct + tau implicit)                          half of where x becomes unstable
    0.6 ||x|| / (tau ||d_x|| + sqrt(tau) noise_x)        while y follows, x moves by 60 % of its size

By itself x is stable below 2 / direct. The loop from x to y to v and back, tau y' = x - y, tau v' = y - v, x' = -alpha
implicit v, is stable below 2 / (tau implicit), by the criterion of Routh and Hurwitz; a curvature below 0 makes nothing
unstable, and counts as 0. Steps decay from t = 300 on, as in the theorems. Where draws differ, or a method draws by
itself, half of an estimate is its past, and more from t = 30 on. Where no ball keeps v, 60 % become 30 %: if L grows
with x, nothing else does. These shares and times were chosen on fourteen problems.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

from bilevel_core.curvature import Curvature, measure
from bilevel_core.problem import BilevelProblem, check_problem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers import SOLVERS, Solver
from bilevel_core.solvers.base import Suggestions

DECAYING = ("alpha", "beta", "lam", "gamma")


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
        return f"{type(self.solver).__name__} with {given}, from {self.measured['gradients']} gradients at the start"

    def __repr__(self) -> str:
        rows = [(name, _shown(value), self.reasons[name]) for name, value in self.options.items()]
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        measured = ", ".join(f"{name} {value:.3g}" for name, value in self.measured.items())
        table = ["  ".join(map(str.ljust, row, wide)).rstrip() for row in rows]
        return "\n".join([f"{type(self.solver).__name__}, measured: {measured}", *table])


def suggest(problem: BilevelProblem, method: str | type[Solver[Any]], seed: int = 0) -> Suggestion:
    """Options for a method, by its name in SOLVERS or its class, measured at the problem's start;
    printed, they are a table.

    It costs 732 gradients, about fifty steps of FdeHBO. An option that cannot be measured, such as the step of an x on
    which nothing depends, keeps its default.
    """
    method = method if isinstance(method, type) else SOLVERS[method]
    check_problem(problem, seed)
    measured, defaults = measure(problem, seed), {f.name: f.default for f in fields(method)}
    noisy = method.is_random or measured.noise > 1e-3  # more than rounding
    rules = method.suggestions(_rules(defaults, measured, noisy), measured)
    asked_for = {key for key, default in defaults.items() if default is not None}  # exact products stay exact
    rules = {key: rule for key, rule in rules.items() if key in asked_for and 0 < rule[0] < math.inf}
    options: dict[str, Rate] = {}
    for key, (value, _) in rules.items():
        options[key] = value = float(f"{value:.2g}") if isinstance(value, float) else value
        if key in DECAYING or (noisy and key == "eta"):
            w, p = (30, 2 / 3) if key == "eta" else (300, 1 / 3 if "eta" in defaults else 1 / 2)
            options[key] = Power(value * w**p, w, p)
    return Suggestion(method(**options), options, measured._asdict(), {key: why for key, (_, why) in rules.items()})


def _rules(defaults: dict[str, Any], m: Curvature, noisy: bool) -> Suggestions:
    """A value for each option that many methods have, and why; not finite where it could not be measured."""
    tau = min(1000.0, max(1.0, 2 * m.L / m.mu if m.mu > 0 else math.inf))
    many = math.ceil(min(30, 4 * tau)), f"4 tau, tau = 2 L / mu = {tau:.2g}; at most 30"
    stable = _inverse(max(0.0, m.direct) + tau * max(0.0, m.implicit)), f"1 / (direct + tau implicit), tau = {tau:.2g}"
    moves = tau * m.slope + math.sqrt(tau) * m.noise_x
    share = 0.6 if "r_v" in defaults else 0.3
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
        **dict.fromkeys(("K", "Q"), many),
    }


def _inverse(value: float) -> float:
    return 1 / value if value else math.inf


def _shown(value: Rate) -> str:
    return f"{value(0):.2g} (1 + t / {value.w})^-{value.p:.2g}" if isinstance(value, Power) else f"{value:.2g}"
