"""What every method promises: its cost, exact resumes, progress with its defaults, clear errors."""

from dataclasses import fields, replace

import pandas as pd
import pytest
import torch

from bilevel_book.methods import PAPER, SOLVERS
from bilevel_book.mnist import HyperCleaning
from bilevel_core import run
from bilevel_core.counting import counting
from bilevel_core.problems import Quadratic
from core.families import LogCosh, Recording, walk
from core.my_method import MyMethod
from core.runs import CLOCKS, Ticking

METHODS = dict(SOLVERS) | {"MyMethod": MyMethod}
NO_BILEVEL = {"alternating"}


def test_the_names_are_those_of_the_paper_the_control_and_what_else_there_is():
    assert PAPER == (
        "FdeHBO", "FMBO", "SOBA", "FSLA", "AID-FP", "reverse", "stocBiO", "BSA", "AmIGO", "MRBO", "VRBO", "SUSTAIN",
        "PZOBO-S", "F2SA", "F3SA",
    )  # fmt: skip
    others = "alternating", "AID-CG", "BOME", "SRBA", "MA-SOBA", "MEHA", "SPABA", "S-TFBO", "F2SA-p", "SGHA"
    assert tuple(SOLVERS) == PAPER + others


@pytest.mark.checks(
    "introduction:products",
    "table-1:pzobo-s",
    "table-1:f2sa",
    "table-1:f3sa",
    "table-1:fdehbo",
    "contributions:one-hessian-product",
)
@pytest.mark.parametrize(
    ("name", "options", "first", "later"),
    [
        ("FSLA", {}, (2, 3, 1, 1), (2, 4, 1, 2)),
        ("AID-FP", {"inner": 3, "K": 4}, (3 + 2 + 3, 5, 3, 1), (8, 5, 3, 1)),
        ("AID-CG", {"inner": 3, "K": 4}, (3 + 2, 5, 4, 1), (5, 5, 4, 1)),
        ("AID-CG", {"inner": 3, "K": 99, "tol": 1e-9}, (5, 5, 10, 1), (5, 5, 10, 1)),  # H has 10 eigenvalues
        ("reverse", {"inner": 5, "K": 4}, (7, 7, 3, 4), (7, 7, 3, 4)),
        ("stocBiO", {"inner": 3, "Q": 4}, (9, 5, 4, 1), (9, 5, 4, 1)),
        ("BSA", {"inner": 3, "K": 1}, (5, 5, 0, 1), (5, 5, 0, 1)),
        ("AmIGO", {"inner": 3, "Q": 4}, (9, 5, 4, 1), (9, 5, 4, 1)),
        ("MRBO", {"Q": 4}, (6, 3, 4, 1), (6, 6, 8, 2)),
        ("SUSTAIN", {"K": 1}, (2, 3, 0, 1), (2, 6, 0, 2)),
        ("VRBO", {"Q": 2, "inner": 3, "large": 5, "period": 2}, (9 * 4, 13 * 3, 13 * 2, 13), (4 * 4, 8 * 3, 8 * 2, 8)),
        ("PZOBO-S", {"inner": 3, "Q": 4}, (5, 17, 0, 0), (5, 17, 0, 0)),
        ("F2SA", {"inner": 3}, (3 * 3 + 3, 12, 0, 0), (12, 12, 0, 0)),
        ("F3SA", {}, (4, 6, 0, 0), (4, 12, 0, 0)),
        ("MA-SOBA", {}, (2, 3, 1, 1), (2, 3, 1, 1)),
        ("S-TFBO", {}, (2, 3, 1, 1), (2, 3, 1, 1)),
        ("SRBA", {"period": 2}, (2, 3, 1, 1), (2, 6, 2, 2)),
        ("SRBA", {"period": 1}, (2, 3, 1, 1), (2, 3, 1, 1)),
        ("SPABA", {"chance": 0.0}, (2, 3, 1, 1), (2, 6, 2, 2)),
        ("F2SA-p", {"inner": 3}, (2 * 4, 2 * 2 * 4, 0, 0), (8, 16, 0, 0)),
        ("F2SA-p", {"inner": 3, "p": 3}, (8, 3 * 2 * 4 + 4, 0, 0), (8, 28, 0, 0)),
        ("SGHA", {}, (2, 7, 0, 0), (2, 7, 0, 0)),
        ("MEHA", {}, (2, 6, 0, 0), (2, 6, 0, 0)),
        ("BOME", {"inner": 3}, (3 + 2, 3 + 5, 0, 0), (5, 8, 0, 0)),
    ],
)
def test_oracle_calls_of_a_step_are_the_formula(name, options, first, later):
    """(samples, gradients, H v, J v) of the first step and of the second."""
    problem, solver = Quadratic(), SOLVERS[name](**options)
    state = solver.init(problem)
    for expected in (first, later):
        with counting() as calls:
            state = solver.step(problem, state)
        assert tuple(vars(calls).values()) == expected


@pytest.mark.slow  # as many draws as tell a mean of 4 from one of 4.5, which a longest product of K would have
@pytest.mark.parametrize("name", ["BSA", "SUSTAIN"])
def test_random_products_cost_half_of_the_longest_on_average(name):
    problem, solver = Quadratic(), SOLVERS[name](K=9, **({"eta": 1.0} if name == "SUSTAIN" else {"inner": 1}))
    with counting() as calls:
        walk(problem, solver, 600)
    assert calls.Hv / 600 == pytest.approx(4, abs=4 * (20 / 3 / 600) ** 0.5)  # k uniform on 0..8: variance 20/3


@pytest.mark.parametrize("name", METHODS)
def test_no_method_looks_at_a_point_it_has_not_visited(name):
    """The memory of a momentum method must not start at zero: its first correction would use a point never visited."""
    problem = Recording(LogCosh(noise=0.5))
    solver = METHODS[name]()
    if name == "PZOBO-S":
        solver = replace(solver, mu=1e-12)  # its perturbed points are meant to be new
    state = solver.init(problem)
    seen = [state.x]
    for _ in range(3):
        problem.asked.clear()
        state = solver.step(problem, state)
        if name in ("VRBO", "MEHA"):
            seen.append(state.x)  # their last part works at the new x
        assert all(
            any(torch.allclose(x, visited, rtol=0, atol=1e-9) for visited in seen) for _, x, _, _ in problem.asked
        )
        seen.append(state.x)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_resumes_bit_equal(name, tmp_path):
    short = {field.name: 2 for field in fields(METHODS[name]) if field.name in ("inner", "K", "Q", "large")}
    solver, options = METHODS[name](**short), {"steps": 12, "every": 4, "progress": False}
    whole = run(Quadratic(noise=0.5), solver, 3, **options)
    with counting() as calls:
        walk(Quadratic(), solver, 7)
    problem = Ticking(when=calls.samples // 3)  # somewhere in the middle
    part = run(problem, solver, 3, **options, checkpoint=tmp_path / "run.ckpt")
    assert part.stop == "interrupted"
    resumed = run(Ticking(), solver, 3, **options, checkpoint=tmp_path / "run.ckpt")
    assert torch.equal(whole.state.x, resumed.state.x)
    assert torch.equal(whole.state.y, resumed.state.y)
    assert torch.equal(whole.state.v, resumed.state.v)
    pd.testing.assert_frame_equal(
        whole.history.drop(columns=CLOCKS), resumed.history.drop(columns=CLOCKS), check_exact=True
    )


@pytest.mark.slow  # hundreds of steps, of which many have inner loops
@pytest.mark.parametrize("name", [name for name in METHODS if name not in NO_BILEVEL])
def test_defaults_cut_the_hypergradient_tenfold_under_noise(name):
    """In a part of the 2000 steps that we promise: the less, the more a step costs. Three methods cut it by less."""
    steps = {"MRBO": 150, "VRBO": 100, "BSA": 600, "SUSTAIN": 400, "SGHA": 300, "MEHA": 300}.get(name, 200)
    history = run(Quadratic(noise=0.5), METHODS[name](), steps=steps, every=steps, progress=False).history
    factor = {"PZOBO-S": 3, "BOME": 5, "S-TFBO": 2}.get(name, 10)
    assert history.hypergradient_norm.iloc[-1] < history.hypergradient_norm.iloc[0] / factor


@pytest.mark.slow
def test_full_batches_are_the_whole_data():
    problem = HyperCleaning(batch_size=10)
    solver = SOLVERS["AID-FP"](inner=2, K=2, full=True, alpha=0.1, beta=0.1)
    with counting() as calls:
        one = solver.step(problem, solver.init(problem))
    assert calls.samples == 3 * 20000 + 25000
    two = solver.step(problem, replace(solver.init(problem), rng=torch.Generator().manual_seed(9).get_state()))
    assert torch.equal(one.x, two.x)  # no randomness is left


@pytest.mark.parametrize("name", SOLVERS)
def test_help_says_what_a_method_is(name):
    """Formula, cost, and every option with its default, its words and what it allows."""
    text = SOLVERS[name].__doc__
    assert "Cost of a step" in text
    assert "_{t+1}" in text or "<-" in text or name == "FdeHBO"
    for field in fields(SOLVERS[name]):
        assert field.metadata["words"]
        assert f"{field.name} = {field.default!r}: {field.metadata['words']}; " in text
