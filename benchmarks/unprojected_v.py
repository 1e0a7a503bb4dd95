"""What happens to v without the projection, on data hyper-cleaning: `python benchmarks/unprojected_v.py`.

Writes results/projection/unprojected_v.csv, from which Chapter 5 plots: one row for every 50 steps of FMBO, with
eta and r_v, ||v||, test accuracy, how well wrong labels are found (auc), and the range over 20 minibatches of the
largest eigenvalue of the Hessian of g in y. About two minutes on one core.
"""

from pathlib import Path

import pandas as pd
import torch

from bilevel_core import FMBO
from bilevel_core.directions import hessian_vector
from bilevel_core.problems import HyperCleaning

STEPS, EVERY = 3000, 50
RUNS = ((0.1, float("inf")), (0.1, 10.0), (0.1, 1.0), (1.0, float("inf")))  # eta, r_v
FILE = Path(__file__).resolve().parent.parent / "results" / "projection" / "unprojected_v.csv"


def top_eigenvalue(problem: HyperCleaning, x: torch.Tensor, y: torch.Tensor, batch: torch.Tensor) -> float:
    """The largest eigenvalue of H on one batch, by 15 steps of power iteration."""
    u = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype)
    for _ in range(15):
        u = hessian_vector(problem, x, y, u / u.norm(), batch)
    return u.norm().item()


def main() -> None:
    torch.set_num_threads(1)
    problem, rows = HyperCleaning(noise=0.1), []
    for eta, r_v in RUNS:
        solver = FMBO(alpha=0.3, beta=0.3, lam=0.3, eta=eta, r_v=r_v)
        state = solver.init(problem, seed=0)
        for t in range(STEPS + 1):
            if t % EVERY == 0:
                numbers = problem.evaluate(state.x, state.y)
                row = {"eta": eta, "r_v": r_v, "step": t, "norm_v": state.v.norm().item()}
                row |= {name: numbers[name] for name in ("test_accuracy", "auc")}
                if t % 500 == 0:
                    generator = torch.Generator().manual_seed(t)
                    batches = [problem.sample(generator).lower for _ in range(20)]
                    tops = [top_eigenvalue(problem, state.x, state.y, batch) for batch in batches]
                    row |= {"top_min": min(tops), "top_max": max(tops)}
                rows.append(row)
            state = solver.step(problem, state)
    FILE.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(FILE, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
