"""The projection, finite differences, the lemmas and the conditions of the theorems: on random problems whose constants
are all known, and on the small examples against each misprint."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import torch

from bilevel_book.ledger.claim import Claim, decided
from bilevel_book.ledger.registry import judge
from bilevel_book.ledger.words import listed
from bilevel_book.theory import constants, statements
from bilevel_book.theory.examples import Kink, small_slope, straight_coupling
from bilevel_book.theory.families import LogCoshFamily, normal
from bilevel_book.theory.statements import Check, Point, Step, take_step
from bilevel_book.walk import walk
from bilevel_core.directions import Directions, hessian_vector
from bilevel_core.problems import Quadratic
from bilevel_core.solvers import FMBO, FdeHBO


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


def broken(checks: Iterable[Check]) -> tuple[int, int]:
    """How many of the checks fail, of how many."""
    kept = [check.holds(1e-7, 1e-9) for check in checks]
    return kept.count(False), len(kept)


def slope_of_R_moves(problem: LogCoshFamily, one: Point, two: Point) -> Check:
    """eq:r_error_v: ||grad_v R(z1, v) - grad_v R(z2, v)|| <= L_R ||z1 - z2|| for v in the ball, z = (x, y)"""
    d1, d2 = (problem.directions(at.x, at.y, one.v).v.mean(0) for at in (one, two))
    apart = torch.cat((one.x - two.x, one.y - two.y)).norm().item()
    return Check((d1 - d2).norm().item(), problem.constants.L_R * apart)


def _bounded(name: str, checks: Iterable[Check]) -> Claim:
    bad, total = broken(checks)
    return Claim(
        f"bounded while v is in the ball: {name}",
        "times that the bound fails on random problems on which every constant is known",
        f"{bad} of {total}",
        decided(bad == 0),
    )


@judge
def ball_bounds_error_of_differences() -> Claim:
    checks = (statements.hessian_difference_as_printed(p, at, 0.1) for p, at in instances(40))
    return _bounded("error of a difference", checks)


@judge
def ball_bounds_variance() -> Claim:
    checks = (statements.surrogate_variance(p, at) for p, at in instances(40))
    return _bounded("variance of the hypergradient estimate", checks)


@judge
def ball_bounds_change_of_slope() -> Claim:
    checks = (slope_of_R_moves(p, at, at._replace(x=at.x + 0.1, y=at.y - 0.1)) for p, at in instances(40))
    return _bounded("change of the slope of the linear-system loss", checks)


@judge
def projection_helps() -> Claim:
    many = [(p, p.v_star(at.x, at.y), 3 * p.constants.r_v * at.v / at.v.norm()) for p, at in instances(40)]
    bad, total = broken(statements.projection(w, v_star, p.constants.r_v) for p, v_star, w in many)
    return Claim(
        "the projection brings $v$ closer to $v^*$",
        r"times that it leads away, on random problems with radius $\sqrt{C_{f_y}}/\mu_g$, from outside the ball",
        f"{bad} of {total}",
        decided(bad == 0),
    )


def biases(delta: float = 0.5) -> dict[str, float]:
    """How far the mean of each direction, seen through differences, is from the true one, in a random problem."""
    problem, at = instances(1)[0]
    true, seen = problem.directions(*at), problem.directions(*at, delta)
    return {name: (getattr(seen, name) - getattr(true, name)).mean(0).norm().item() for name in "yvx"}


@judge
def biased(variables: list[str]) -> Claim:
    """Whether the estimates for these variables are all biased."""
    measured = {name: value for name, value in biases().items() if name in variables}
    return Claim(
        f"differences make the estimates for {', '.join(variables[:-1])} and {variables[-1]} biased",
        "bias of each in a random problem, delta = 0.5",
        "; ".join(f"{name}: {value:.2g}" for name, value in measured.items()),
        decided(all(value > 1e-9 for value in measured.values())),
    )


@judge
def rounding_matters() -> Claim:
    problem = Quadratic(dtype=torch.float32)
    generator = torch.Generator().manual_seed(0)
    x, y = problem.start(generator)
    v, batch = torch.randn(y.shape, generator=generator), problem.sample(generator).lower
    exact, deltas = hessian_vector(problem, x, y, v, batch), (1e-1, 1e-3, 1e-5, 1e-7)
    errors = [((hessian_vector(problem, x, y, v, batch, d) - exact).norm() / exact.norm()).item() for d in deltas]
    return Claim(
        "rounding spoils differences when delta is small",
        "relative error of H v in single precision on a quadratic, where differences are otherwise exact, "
        f"for delta = {', '.join(f'{d:g}' for d in deltas)}",
        ", ".join(f"{error:.0e}" for error in errors),
        decided(errors == sorted(errors) and errors[-1] > 0.01),
    )


@judge
def large_v_large_error() -> Claim:
    sizes = (1.0, 10.0, 100.0)
    errors = [statements.difference_at_kink(Kink(), torch.tensor([s]).double(), 0.01).truth for s in sizes]
    return Claim(
        "the error of a difference grows without bound with v",
        f"error where H has a kink, delta = 0.01, norm of v {listed(sizes)}",
        listed(errors),
        decided(errors[-1] > 1000 * errors[0]),
    )


@judge
def no_dimension() -> Claim:
    dims = (1, 4, 16)
    bad = {
        d: broken(statements.hessian_difference_as_printed(p, at, 0.1) for p, at in instances(20, dim_y=d))
        for d in dims
    }
    return Claim(
        "the bound on that error does not depend on the dimension of y",
        "times that the same bound fails, in dimension " + listed(dims),
        "; ".join(f"{b} of {n}" for b, n in bad.values()),
        decided(all(b == 0 for b, _ in bad.values())),
    )


def _shrinks(text: str, label: str, check: Callable[..., Check]) -> Claim:
    bad, total = broken(check(p, step, eta, 0.05) for p, step in random_steps(20) for eta in (0.01, 0.3, 0.9))
    return Claim(text, f"times that {label} fails on random problems and steps", f"{bad} of {total}", decided(bad == 0))


@judge
def hypergradient_error_shrinks() -> Claim:
    text = "the error of the hypergradient estimate shrinks as said"
    return _shrinks(text, "Proposition 1", statements.upper_error_free)


@judge
def linear_system_error_shrinks() -> Claim:
    text = "the error of the linear-system estimate shrinks as said"
    return _shrinks(text, "Proposition 2", statements.helper_error_free_as_printed)


@judge
def contraction() -> Claim:
    H, u = torch.diag(torch.tensor([1.0, 10.0])).double(), torch.tensor([1.0, 0.0]).double()
    printed = statements.contraction_as_printed(H, u, 0.01)
    repaired = statements.contraction(H, u, 0.01)
    return Claim(
        "$v$ comes closer to $v^*$ by the printed factor",
        "squared distance after one step on a system with eigenvalues 1 and 10, step 0.01, from distance 1; it is at "
        r"most the factor. The repair is the factor $(1-\lambda_t\mu_g)^2$",
        f"{printed.truth:.4f}, printed factor {printed.bound:.4f}, repaired {repaired.bound:.4f}",
        decided(printed.holds()),
    )


@judge
def radius() -> Claim:
    problem = small_slope()
    k = problem.constants

    def slope(r_v: float) -> float:
        end = walk(problem, FMBO(alpha=2.0, beta=0.5, lam=0.5, eta=0.5, r_v=r_v), 80)[-1]
        return problem.hypergradient(end.x).norm().item()

    printed, repaired = k.C_fy / k.mu, k.r_v
    at_printed, at_repaired = slope(printed), slope(repaired)
    return Claim(
        r"the radius may be $C_{f_y}/\mu_g$",
        "norm of the hypergradient where FMBO stops in a small example without noise; it should be zero. The repair "
        r"is $\sqrt{C_{f_y}}/\mu_g$",
        f"{at_printed:.3f} with radius {printed:g}; repaired, {repaired:g}: {at_repaired:.3f}",
        decided(at_printed < 0.01),
    )


@judge
def delta_condition() -> Claim:
    problem = straight_coupling()
    k = problem.constants
    printed, repaired = (limit(k, 0.5, 0.5) for limit in (statements.delta_limit_as_printed, statements.delta_limit))
    tried = min(3.0, printed)

    def slope(delta: float) -> float:
        solver = FdeHBO(alpha=0.3, beta=0.4, lam=0.4, eta=0.5, delta=delta, r_v=k.r_v)
        return problem.hypergradient(walk(problem, solver, 200)[-1].x).norm().item()

    at_printed, at_repaired = slope(tried), slope(repaired)
    return Claim(
        r"the printed condition on $\delta_\epsilon$ is enough",
        "norm of the hypergradient where FdeHBO stops in a small example with constant J; it should be zero. The "
        "repair has $L_{g_{yy}}$ beside $L_{g_{xy}}$",
        f"allowed up to {printed:g}: {at_printed:.4f} with delta = {tried:g}; repaired, up to {repaired:.3g}: "
        f"{at_repaired:.4f} there",
        decided(at_printed < 0.01),
    )


@judge
def constants_close(method: str) -> Claim:
    """Whether the constants of the appendix leave no coefficient of the potential's change positive."""
    unit = constants.ProblemConstants()

    def positive(c: constants.ProofConstants) -> int:
        return sum(value > 1e-9 for value in constants.balances(unit, c).values())

    as_printed = constants.printed(unit, method)
    printed, granted = positive(as_printed), positive(constants.large_enough(unit, as_printed))
    repaired = positive(constants.corrected(unit, method))
    return Claim(
        f"the constants of the appendix make the potential of {method} fall",
        "how many of the seven coefficients of its change are positive, with all constants 1 and L = 2: as printed, "
        "with the missing conditions on w granted, and with the repair, which is in section B of the erratum",
        f"{printed} as printed, {granted} of them with w large enough, {repaired} repaired",
        decided(printed == 0),
    )
