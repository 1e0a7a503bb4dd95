"""The projection, finite differences, the lemmas and the conditions of the theorems: on random problems whose constants
are all known, and on the small examples against each misprint."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import torch

from bilevel_book.ledger.claim import Claim, Printed, listed, true_if
from bilevel_book.theory import proof, statements
from bilevel_book.theory.constants import ProblemConstants, printed
from bilevel_book.theory.examples import STEEP, Coin, change_of_potential, small_slope
from bilevel_book.theory.families import LogCoshFamily, normal
from bilevel_book.theory.statements import Check, Point, Step, take_step
from bilevel_book.walk import walk
from bilevel_core.directions import Directions, hessian_vector
from bilevel_core.problems import Quadratic
from bilevel_core.solvers import FMBO


@cache
def instances(count: int, dim_y: int = 2) -> tuple[tuple[LogCoshFamily, Point], ...]:
    """Random problems, each with a random point whose v lies in the ball."""
    generator, made = torch.Generator().manual_seed(0), []
    for _ in range(count):
        problem = LogCoshFamily.random(generator, dim_y=dim_y)
        v = normal(dim_y, generator=generator)
        v = problem.constants.r_v * torch.rand((), generator=generator) * v / v.norm()
        made.append((problem, Point(*problem.first, v)))
    return tuple(made)


def random_steps(count: int) -> Iterator[tuple[LogCoshFamily, Step]]:
    """Random steps of FMBO and FdeHBO, from estimates that are off."""
    generator = torch.Generator().manual_seed(1)
    for problem, at in instances(count):
        h = Directions(*(d.mean(0) + normal(d.shape[1], generator=generator) / 3 for d in problem.directions(*at)))
        alpha, beta, lam = (torch.rand(3, generator=generator) / (problem.constants.mu + problem.constants.L)).tolist()
        yield problem, take_step(problem, at, h, alpha, beta, lam)


def count_failures(checks: Iterable[Check]) -> tuple[int, int]:
    """How many of the checks fail, of how many."""
    kept = [check.holds(1e-7, 1e-9) for check in checks]
    return kept.count(False), len(kept)


def never_fails(text: str, measure: str, checks: Iterable[Check]) -> Claim:
    """A claim that holds if none of the checks fails."""
    failures, total = count_failures(checks)
    return Claim(text, measure, f"{failures} of {total}", true_if(failures == 0))


def gradient_of_R_moves(problem: LogCoshFamily, one: Point, two: Point) -> Check:
    """eq:r_error_v: ||grad_v R(z1, v) - grad_v R(z2, v)|| <= M_v ||z1 - z2|| for v in the ball, z = (x, y)"""
    d1, d2 = (problem.directions(at.x, at.y, one.v).v.mean(0) for at in (one, two))
    apart = torch.cat((one.x - two.x, one.y - two.y)).norm().item()
    return Check((d1 - d2).norm().item(), problem.constants.M_v * apart)


def _bounded(name: str, checks: Iterable[Check]) -> Claim:
    measure = "times that the bound fails on random problems on which every constant is known"
    return never_fails(f"bounded while v is in the ball: {name}", measure, checks)


def ball_bounds_error_of_differences() -> Claim:
    checks = (statements.hessian_difference_as_printed(p, at, 0.1) for p, at in instances(40))
    return _bounded("error of a difference", checks)


def ball_bounds_variance() -> Claim:
    checks = (statements.surrogate_variance(p, at) for p, at in instances(40))
    return _bounded("variance of the hypergradient estimate", checks)


def ball_bounds_change_of_slope() -> Claim:
    checks = (gradient_of_R_moves(p, at, at._replace(x=at.x + 0.1, y=at.y - 0.1)) for p, at in instances(40))
    return _bounded("change of the slope of the linear-system loss", checks)


def projection_helps() -> Claim:
    text = "the projection brings $v$ closer to $v^*$"
    measure = r"times that it leads away, on random problems with radius $\sqrt{C_{f_y}}/\mu_g$, from outside the ball"
    outside = [(p, p.v_star(at.x, at.y), 3 * p.constants.r_v * at.v / at.v.norm()) for p, at in instances(40)]
    return never_fails(text, measure, (statements.projection(w, v_star, p.constants.r_v) for p, v_star, w in outside))


def biased(variables: list[str]) -> Claim:
    """Whether the means of the directions of these variables, seen through differences, are all off."""
    text = f"differences make the estimates for {', '.join(variables[:-1])} and {variables[-1]} biased"
    problem, at = instances(1)[0]
    true, seen = problem.directions(*at)._asdict(), problem.directions(*at, 0.5)._asdict()
    off = {name: (seen[name] - true[name]).mean(0).norm().item() for name in variables}
    numbers = "; ".join(f"{name}: {value:.2g}" for name, value in off.items())
    return Claim(text, "bias of each in a random problem, delta = 0.5", numbers, true_if(min(off.values()) > 1e-9))


def rounding_matters() -> Claim:
    deltas = (1e-1, 1e-3, 1e-5, 1e-7)
    measure = (
        "relative error of H v in single precision on a quadratic, where differences are otherwise exact, "
        f"for delta = {', '.join(f'{d:g}' for d in deltas)}"
    )
    problem, generator = Quadratic(dtype=torch.float32), torch.Generator().manual_seed(0)
    x, y = problem.start(generator)
    v, batch = torch.randn(y.shape, generator=generator), problem.sample(generator).lower
    exact = hessian_vector(problem, x, y, v, batch)
    errors = [((hessian_vector(problem, x, y, v, batch, d) - exact).norm() / exact.norm()).item() for d in deltas]
    numbers, verdict = ", ".join(f"{e:.0e}" for e in errors), true_if(errors == sorted(errors) and errors[-1] > 0.01)
    return Claim("rounding spoils differences when delta is small", measure, numbers, verdict)


def large_v_large_error() -> Claim:
    sizes = (1.0, 10.0, 100.0)
    measure = f"error where H has a kink, delta = 0.01, norm of v {listed(sizes)}"
    kink, zero = Coin(reach=2.0), torch.zeros(1).double()
    errors = [statements.hessian_difference(kink, Point(zero, zero, zero + size), 0.01).truth for size in sizes]
    verdict = true_if(errors[-1] > 1000 * errors[0])
    return Claim("the error of a difference grows without bound with v", measure, listed(errors), verdict)


def no_dimension() -> Claim:
    text, dims = "the bound on that error does not depend on the dimension of y", (1, 4, 16)
    measure = f"times that the same bound fails, in dimension {listed(dims)}"
    found = [
        count_failures(statements.hessian_difference_as_printed(p, at, 0.1) for p, at in instances(20, dim_y=d))
        for d in dims
    ]
    numbers = "; ".join(f"{failures} of {total}" for failures, total in found)
    return Claim(text, measure, numbers, true_if(all(failures == 0 for failures, _ in found)))


def _shrinks(what: str, label: str, check: Callable[..., Check]) -> Claim:
    checks = (check(p, step, eta, 0.05) for p, step in random_steps(20) for eta in (0.01, 0.3, 0.9))
    measure = f"times that {label} fails on random problems and steps"
    return never_fails(f"the error of the {what} estimate shrinks as said", measure, checks)


def hypergradient_error_shrinks() -> Claim:
    return _shrinks("hypergradient", "Proposition 1", statements.upper_error_free)


def linear_system_error_shrinks() -> Claim:
    return _shrinks("linear-system", "Proposition 2", statements.adjoint_error_free_as_printed)


def contraction() -> Claim:
    measure = (
        "squared distance after one step on a system with eigenvalues 1 and 10, step 0.01, from distance 1; it is at "
        r"most the factor. The repair is the factor $(1-\lambda_t\mu_g)^2$"
    )
    H, u = torch.diag(torch.tensor([1.0, 10.0])).double(), torch.tensor([1.0, 0.0]).double()
    printed, repaired = (rule(H, u, 0.01) for rule in (statements.contraction_as_printed, statements.contraction))
    numbers = f"{printed.truth:.4f}, printed factor {printed.bound:.4f}, repaired {repaired.bound:.4f}"
    return Claim("$v$ comes closer to $v^*$ by the printed factor", measure, numbers, true_if(printed.holds()))


def final_slope(problem: LogCoshFamily, solver: FMBO, steps: int) -> float:
    """The norm of the hypergradient where a run ends."""
    return problem.hypergradient(walk(problem, solver, steps)[-1].x).norm().item()


def radius() -> Claim:
    measure = (
        "norm of the hypergradient where FMBO stops in a small example without noise; it should be zero. The repair "
        r"is $\sqrt{C_{f_y}}/\mu_g$"
    )
    problem = small_slope()
    k = problem.constants
    printed, repaired = k.C_fy / k.mu, k.r_v
    at_printed, at_repaired = (
        final_slope(problem, FMBO(alpha=2.0, beta=0.5, lam=0.5, eta=0.5, r_v=r_v), 80) for r_v in (printed, repaired)
    )
    numbers = f"{at_printed:.3f} with radius {printed:g}; repaired, {repaired:g}: {at_repaired:.3f}"
    return Claim(r"the radius may be $C_{f_y}/\mu_g$", measure, numbers, true_if(at_printed < 0.01))


def delta_condition() -> Claim:
    measure = (
        r"$6\theta^2\delta_\epsilon^2$, which a fixed step adds to the bound of Theorem 13.1, times $T^{2/3}$, for "
        "unit constants and T = {}: it should stay bounded. The printed proof does not show it, and its "
        r"condition lacks $L_{g_{yy}}$ (E9 and E18 of the erratum)"
    )
    k, horizons = ProblemConstants(), (1e14, 1e18, 1e22)
    c = proof.theorem(k)
    added = []
    for T in horizons:
        delta = min(c.c_x, c.c_v) / (8 * k.L_gxy * k.r_v**2 * (c.w + T - 1) ** (2 / 3))
        added.append(6 * (k.theta * delta) ** 2 * T ** (2 / 3))
    text = r"$\delta_\epsilon$ of order $T^{-2/3}$ is small enough for the rate"
    found = Printed.GAP if added == sorted(added, reverse=True) else Printed.FALSE
    return Claim(text, measure.replace("{}", listed(horizons)), listed(added), found)


def constants_close(method: str) -> Claim:
    """Whether the potential with the constants of the appendix falls as lm:mergeV says, in one example."""
    measure = (
        r"change of the potential over the step size in the first step, for $g=\frac12y^2-20xy$ and $f=\log\cosh y$ "
        "without noise, with the missing conditions on w granted; differences are exact here, so that both methods are "
        "the same"
    )
    old, c = printed(STEEP), proof.theorem(STEEP)
    w = max(old.w, max(old.c_x, old.c_y, old.c_v) ** 1.5)
    rise, claimed = change_of_potential(old.a_y, old.a_v, old.c_beta, old.c_lam, w)
    repaired, _ = change_of_potential(c.a_y, c.a_v, c.c_beta, c.c_lam, c.w)
    numbers = f"{rise:+.1f}, claimed to be at most {claimed:.1f}; repaired by Theorem 13.1: {repaired:+.0f}"
    text = f"the constants of the appendix make the potential of {method} fall"
    return Claim(text, measure, numbers, true_if(rise <= claimed))
