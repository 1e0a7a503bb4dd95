"""What each defect of released code does to hyper-cleaning: the runs of Chapter 11, in results/released.

python benchmarks/released_code.py          ten CPU minutes on one core; what is stored is not done again

Each run has one switch on, "correct" has none, "all" has those that stood in one version together. Two groups of
stocBiO: `published` has the steps of the paper, `cleaning` an outer step large enough that the weights move and an
eta small enough that the sum is stable. A run that is interrupted begins anew, since the labels that it changed are
gone with it.
"""

import tempfile
from pathlib import Path

from bilevel_book.released.solvers import ReleasedMRBO, ReleasedStocBiO
from bilevel_core.experiments import Run, is_stored, load, perform, results_folder, store
from bilevel_core.solvers import SOLVERS

SOLVERS |= {"stocBiO": ReleasedStocBiO, "MRBO": ReleasedMRBO}  # for this process: the same methods, with switches

RENOISE, TRAINING = {"renoise": True}, {"upper_from": "training"}
STOCBIO = {  # the switches of the method, and those of the problem
    "correct": ({}, {}),
    "labels re-noised": ({}, RENOISE),
    "one upper batch in five from training": ({}, {"upper_from": "mixed"}),
    "all upper batches from training": ({}, TRAINING),
    "loss averaged before weighting": ({}, {"averaged": True}),
    "weights of other images": ({"strangers": True}, {}),
    "series of the release": ({"series": True}, {}),
    "weights never stored": ({"unstored": True}, {}),
    "all": ({"strangers": True, "series": True}, RENOISE | {"upper_from": "mixed"}),
}
DECAY = {"eta": {"c": 0.9, "w": 1.0, "p": 2 / 3}}  # from the first value of the release
MRBO = {
    "correct": ({}, {}),
    "decay from 0.9": (DECAY, {}),
    "decay reset": (DECAY | {"resets": True}, {}),
    "steps taken twice": ({"twice": True}, {}),
    "labels re-noised": ({}, RENOISE),
    "all": (DECAY | {"resets": True, "twice": True}, RENOISE | TRAINING),
}
PLAIN = {"correct": ({}, {}), "labels re-noised": ({}, RENOISE)}


def runs() -> list[Run]:
    main = load("hyper-cleaning")["main"]
    shared = load("hyper-cleaning")["options"]

    def of(group, solver, variants, steps, every, seed=0, **changed):
        settings = {name: value for name, value in main[solver].items() if name != "problem"} | changed
        images = shared | main[solver].get("problem", {})
        budget = {"steps": steps, "every": every}
        return [
            Run("released", group, label, solver, settings | method, "ReleasedCleaning", images | problem, seed, budget)
            for label, (method, problem) in variants.items()
        ]

    others = {label: switches for label, switches in STOCBIO.items() if label not in PLAIN}
    return [
        *of("published", "stocBiO", PLAIN, 50, 1),
        *of("published", "stocBiO", others, 25, 1),
        *of("published", "stocBiO", PLAIN, 25, 1, seed=1),
        *of("cleaning", "stocBiO", STOCBIO, 60, 5, alpha=3000.0, inner=50, eta_series=0.1),
        *of("MRBO", "MRBO", MRBO, 250, 5),
        *of("FMBO", "FMBO", PLAIN, 2000, 20),
        *of("AID-FP", "AID-FP", PLAIN, 9, 1),
    ]


def main() -> None:
    folder: Path = results_folder() / "released"
    for one in runs():
        if not is_stored(one, folder):
            with tempfile.TemporaryDirectory() as scratch:  # no checkpoint survives: see above
                _, history, about = perform(one, scratch)
            store(one, history, about, folder)
            end = history.iloc[-1]
            print(
                f"{one.name}: {end.cpu_seconds:.0f} s, train loss {end.train_loss:.2f}, auc {end.auc:.2f}", flush=True
            )


if __name__ == "__main__":
    main()
