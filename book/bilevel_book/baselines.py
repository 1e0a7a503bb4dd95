"""Wrong labels found without a bilevel method: the baselines of hyper-cleaning. Both score by a loss, high if wrong.

- Out of sample: the loss of an image's label for a classifier trained on the other folds. Its ranking is that of the
  self-confidence of confident learning (Northcutt, Jiang and Chuang 2021, JAIR 70), which needs no clean image either.
- Trimmed: train, drop the images with the largest losses, train on the rest, and so on (Shen and Sanghavi 2019, ICML).

The classifier is that of HyperCleaning, w = argmin of mean CE(w . image, label) + C ||w||^2. How many labels are wrong
is taken as known: as many images are called wrong and dropped.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from bilevel_book.experiments.environment import environment, one_thread
from bilevel_book.experiments.tables import json_lines
from bilevel_book.mnist.hyper_cleaning import HyperCleaning, area_under_curve, class_scores, log_likelihoods
from bilevel_core.checkpoint import write_atomically

SEEDS, NOISE, C = (0, 1, 2, 3, 4), 0.1, 0.001
FOLDS, ROUNDS = 5, 5
TOLERANCE = 1e-6  # of each number in the gradient that L-BFGS sees


def fit(pixels: Tensor, labels: Tensor, C: float, start: Tensor | None = None) -> Tensor:
    """The minimiser w, flat, by L-BFGS on W R, where R R' = X'X / 2n + 2 C is at least each block of the Hessian.

    So no curvature is above 1 (Boehning 1992, AISM 44). On w itself, L-BFGS takes five times as long.
    """
    n, d = pixels.shape
    R = torch.linalg.cholesky(pixels.T @ pixels / (2 * n) + 2 * C * torch.eye(d, dtype=pixels.dtype))
    scaled = torch.zeros(10, d, dtype=R.dtype) if start is None else start.view(10, d) @ R
    optimiser = torch.optim.LBFGS(
        [scaled.requires_grad_()], max_iter=1000, tolerance_grad=TOLERANCE, tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def unscaled() -> Tensor:
        return torch.linalg.solve_triangular(R, scaled, upper=False, left=False).flatten()

    def closure() -> float:
        optimiser.zero_grad()
        w = unscaled()
        value = C * (w @ w) - log_likelihoods(w, pixels, labels).mean()
        value.backward()
        return value.item()

    optimiser.step(closure)
    closure()
    if not (left := scaled.grad.abs().max().item()) <= TOLERANCE:
        raise ArithmeticError(f"no convergence, the gradient is still {left:.2g}: give pixels in float64")
    return unscaled().detach()


def out_of_sample(pixels: Tensor, labels: Tensor, C: float) -> Tensor:
    """The loss of each image for the classifier of the other folds; fold k has the images k, k + FOLDS, ..."""
    scores, fold, start = torch.empty_like(pixels[:, 0]), torch.arange(len(labels)) % FOLDS, None
    for k in range(FOLDS):
        out = fold == k
        start = fit(pixels[~out], labels[~out], C, start)  # sooner there from the last one; the minimiser is the same
        scores[out] = -log_likelihoods(start, pixels[out], labels[out])
    return scores


def trimmed(pixels: Tensor, labels: Tensor, C: float, fraction: float, rounds: int = ROUNDS) -> Tensor:
    """The loss of each image after rounds of training without the `fraction` of largest losses; 0 rounds: in sample."""
    w = fit(pixels, labels, C)
    for _ in range(rounds):
        keep = kept(-log_likelihoods(w, pixels, labels), round(fraction * len(labels)))
        w = fit(pixels[keep], labels[keep], C, w)
    return -log_likelihoods(w, pixels, labels)


def kept(scores: Tensor, dropped: int) -> Tensor:
    """All but those with the highest scores, in their order."""
    return scores.argsort(descending=True, stable=True)[dropped:].sort().values


def judged(problem: HyperCleaning, scores: Tensor) -> dict[str, float]:
    """How well scores find the wrong labels, as `HyperCleaning.evaluate` says it, and the accuracy without them."""
    wrong, (pixels, _) = problem.is_noisy, problem.lower_set
    keep = kept(scores, int(wrong.sum()))
    called = torch.ones_like(wrong).index_fill(0, keep, False)
    w = fit(pixels[keep], problem.noisy_labels[keep], problem.C)
    found = class_scores(w, problem.test_set.pixels).argmax(0) == problem.test_set.labels
    numbers = {"auc": area_under_curve(scores[wrong], scores[~wrong]), "f1": wrong[called].double().mean()}
    return {name: number.item() for name, number in (numbers | {"test_accuracy": found.double().mean()}).items()}


def reproduce(seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Judge both on the images of hyper-cleaning with that seed: a row for each, and the facts about both."""
    start, problem = time.process_time(), HyperCleaning(NOISE, seed, C=C, dtype=torch.float64)
    with one_thread():
        data = problem.lower_set.pixels, problem.noisy_labels, C
        scores = {"out of sample": out_of_sample(*data), "trimmed": trimmed(*data, NOISE)}
        rows = [{"label": label, "seed": seed} | judged(problem, score) for label, score in scores.items()]
    facts = {"noise": NOISE, "C": C, "folds": FOLDS, "rounds": ROUNDS, "tolerance": TOLERANCE}
    return rows, {"seed": seed} | facts | {"cpu_seconds": round(time.process_time() - start, 1)} | environment()


def store(results: Path, seeds: Sequence[int] = SEEDS) -> Path:
    """Store what `reproduce` gives as a table: hyper-cleaning/baselines.csv, and beside it a JSON of the facts."""
    found = [reproduce(seed) for seed in seeds]
    path = results / "hyper-cleaning" / "baselines.csv"
    table = pd.DataFrame([row for rows, _ in found for row in rows])
    write_atomically(path, table.to_csv(index=False, float_format="%.6g").encode())
    write_atomically(path.with_suffix(".json"), json_lines(facts for _, facts in found))
    return path
