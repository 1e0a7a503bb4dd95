"""What happens to v without the projection, on data hyper-cleaning: `python benchmarks/unprojected_v.py`.

Writes results/projection/unprojected_v.csv, from which Chapter 5 plots: one row for every 50 steps of FMBO, with
lam, eta and r_v, ||v||, test accuracy, and how well wrong labels are found (auc). Every 500 steps also the range over
20 minibatches of the largest eigenvalue of H, the Hessian of g in y; at the end the norm of v*(x, y), the solution of
H v = grad_y f on all the data. About five minutes on one core.
"""

from pathlib import Path

import pandas as pd
import torch

from bilevel_core import FMBO
from bilevel_core.directions import grad_y, hessian_vector
from bilevel_core.hypergradient import conjugate_gradients
from bilevel_core.problems import HyperCleaning

STEPS, EVERY = 3000, 50
INF = float("inf")
RUNS = ((0.3, 0.1, INF), (0.3, 0.1, 10.0), (0.3, 0.1, 1.0), (0.3, 1.0, INF), (0.1, 0.1, INF))  # lam, eta, r_v
FILE = Path(__file__).resolve().parent.parent / "results" / "projection" / "unprojected_v.csv"


def top_eigenvalue(problem: HyperCleaning, x: torch.Tensor, y: torch.Tensor, batch: torch.Tensor) -> float:
    """The largest eigenvalue of H on one batch, by 15 steps of power iteration."""
    u = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype)
    for _ in range(15):
        u = hessian_vector(problem, x, y, u / u.norm(), batch)
    return u.norm().item()


def solution_of(problem: HyperCleaning, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """v*(x, y) on all the data, to a relative residual of 1e-3."""
    data = problem.full()
    f_y = grad_y(problem.upper, x, y, data.upper)
    return conjugate_gradients(lambda u: hessian_vector(problem, x, y, u, data.lower), f_y, 1e-3)


def main() -> None:
    torch.set_num_threads(1)
    problem, rows = HyperCleaning(noise=0.1), []
    for lam, eta, r_v in RUNS:
        solver = FMBO(alpha=0.3, beta=0.3, lam=lam, eta=eta, r_v=r_v)
        state = solver.init(problem, seed=0)
        for t in range(STEPS + 1):
            if t % EVERY == 0:
                numbers = problem.evaluate(state.x, state.y)
                row = {"lam": lam, "eta": eta, "r_v": r_v, "step": t, "norm_v": state.v.norm().item()}
                row |= {name: numbers[name] for name in ("test_accuracy", "auc")}
                if t % 500 == 0:
                    generator = torch.Generator().manual_seed(t)
                    batches = [problem.sample(generator).lower for _ in range(20)]
                    tops = [top_eigenvalue(problem, state.x, state.y, batch) for batch in batches]
                    row |= {"top_min": min(tops), "top_max": max(tops)}
                if t == STEPS:
                    row["norm_v_star"] = solution_of(problem, state.x, state.y).norm().item()
                rows.append(row)
            state = solver.step(problem, state)
    FILE.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(FILE, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
