"""How noisy the direction of x is along a run, measured by fresh draws at the run's own states.

    plain      the variance of d_x(x_t, y_t, v_t) over fresh samples
    momentum   that of the estimate h_t = d_x + (1 - eta) (h_{t-1} - d_x at the point before), with the run's h_{t-1}
    inherited  || E h_t - E d_x ||^2, the error that h_t has from h_{t-1} and that no fresh sample shows

A variance is E || z - E z ||^2. Without momentum, eta = 1, h_t is the plain direction.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from tqdm.auto import tqdm

from bilevel_book.experiments.environment import environment, one_thread
from bilevel_book.experiments.files import load
from bilevel_book.experiments.plan import Plan, Run
from bilevel_book.experiments.report import REPRESENTATION
from bilevel_book.experiments.tables import StoredRun, as_csv, sha256_of, table_file, write_table
from bilevel_book.paths import RESULTS, Named
from bilevel_core.problem import BilevelProblem, seeded
from bilevel_core.solvers.fmbo import FMBO, MomentumState

DRAWS = 200
SHARES = (0.1, 0.25, 0.5)  # of the steps of a run, where its state is looked at
GROUPS = ("stated", "stated_off", "alike", "alike_off")


def variances(problem: BilevelProblem, solver: FMBO, state: MomentumState, draws: int = DRAWS) -> dict[str, float]:
    """The three numbers at one state, over draws that the run has never made."""
    plain_solver = replace(solver, eta=1.0)
    fresh = [state.replace(rng=seeded(10_000 + k).get_state()) for k in range(draws)]
    plain_mean, plain = _moments(lambda k: plain_solver.step(problem, fresh[k]).h.x, draws)
    mean, momentum = plain_mean, plain
    if solver.momentum_weight(state.t) < 1:
        mean, momentum = _moments(lambda k: solver.step(problem, fresh[k]).h.x, draws)
    return {"plain": plain, "momentum": momentum, "inherited": (mean - plain_mean).square().sum().item()}


def _moments(draw: Callable[[int], Tensor], draws: int) -> tuple[Tensor, float]:
    """The mean of so many vectors, and their variance: the mean square of the distance from it, unbiased."""
    vectors = torch.stack([draw(k) for k in range(draws)])
    return vectors.mean(0), vectors.var(0).sum().item()


def measure_variance(experiment: Named, results: Path = RESULTS) -> None:
    """Look at the first run of the paper's method in each group, and store what is found as the group `variance`."""
    plan = Plan(load(experiment), "next", results)
    method = "FdeHBO" if plan.file.name == REPRESENTATION else "FMBO"
    runs = [next(run for run in plan.runs(group) if run.label == method) for group in GROUPS]
    with one_thread():
        found = [_along(run) for run in tqdm(runs, unit="run")]
    write_table(found, table_file(results, plan.file.name, "variance"))


def _along(run: Run) -> StoredRun:
    problem, solver = run.make_problem(), run.make_solver()
    state, rows = solver.init(problem, run.seed), list[dict[str, Any]]()
    for at in (round(share * run.budget["steps"]) for share in SHARES):
        while state.t < at:
            state = solver.step(problem, state)
        rows.append({"step": at} | variances(problem, solver, state))
    history = as_csv(pd.DataFrame(rows).assign(cpu_seconds=0.0, wall_seconds=0.0))
    facts = {"run": run.as_json | {"label": run.group}, "stop": "steps", "diverged_at": None, "draws": DRAWS}
    return StoredRun(history, facts | environment() | {"sha256": sha256_of(history)})
