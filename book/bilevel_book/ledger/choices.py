"""The assumptions ledger: every choice that the paper leaves open, the value taken here, and what another one changes.

Values are read from the experiments' files and from the methods, effects from the stored runs in which one thing was
changed.
"""

from dataclasses import dataclass

import pandas as pd

from bilevel_book.ledger.counts import cost
from bilevel_book.ledger.effects import (
    CLEANING,
    REPRESENTATION,
    batch,
    changed,
    of_fdehbo,
    of_fmbo,
    of_method,
    of_released,
    setting,
    together,
    without_momentum,
)
from bilevel_book.ledger.evidence import Evidence
from bilevel_core.experiments import load, paper_settings
from bilevel_core.experiments.report import spread, tuning_scores
from bilevel_core.problems import Quadratic, hyper_cleaning
from bilevel_core.solvers import FMBO, FdeHBO

SECTIONS = ("Algorithms", "Hyper-representation", "Hyper-cleaning")
NOT_MEASURED: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """What is left open, the value taken, why, and the measured effect of other values, in lines."""

    section: str
    what: str
    value: str
    why: str
    effect: tuple[str, ...]
    chapters: tuple[int, ...] = ()


def choices(evidence: Evidence) -> list[Choice]:
    """The ledger."""
    return [*_algorithms(evidence), *_representation(evidence), *_cleaning(evidence)]


def _algorithms(evidence: Evidence) -> list[Choice]:
    problem, section = Quadratic(), SECTIONS[0]
    first = FMBO().init(problem)
    return [
        Choice(
            section,
            "the first v",
            f"zero (norm {first.v.norm().item():g})",
            "the theorems need it in the ball, and nothing better is known at the start",
            NOT_MEASURED,
            (3, 7),
        ),
        Choice(
            section,
            "the first estimators",
            "plain gradients: eta is 1 at t = 0 "
            f"({cost('FdeHBO', 1)[0].gradients} gradients instead of {cost('FdeHBO', 2)[1].gradients})",
            "there is no earlier point; the print names none",
            NOT_MEASURED,
            (7,),
        ),
        Choice(
            section,
            "what the estimator of the linear system remembers",
            "its own past",
            "the print has that of the lower level, which is the gradient of another function",
            NOT_MEASURED,
            (7,),
        ),
        Choice(
            section,
            "the samples of the three estimators",
            f"one draw serves all three: independent = {FMBO().independent}",
            "half the cost or less; each error recursion holds on its own",
            together(of_fdehbo("independent samples"), of_fmbo("independent samples"))(evidence),
            (7, 9),
        ),
        Choice(
            section,
            "the radius of the ball",
            f"{FMBO().r_v:g} in the library; {setting(REPRESENTATION, 'FdeHBO', 'r_v')} and "
            f"{setting(CLEANING, 'FMBO', 'r_v')} in the experiments",
            "the theory asks for a number that is not known, or infinite where the lower level is flat",
            together(of_fdehbo("r_v 0.1"), of_fmbo("r_v 1", "r_v 100", "no ball"))(evidence),
            (5, 9, 10),
        ),
        Choice(
            section,
            "delta, where the paper gives no number",
            f"{FdeHBO().delta:g} in the library; {setting(REPRESENTATION, 'FdeHBO', 'delta')}, which is the paper's, "
            "in the experiment",
            "small enough for the bias, large enough for rounding in single precision",
            of_fdehbo("delta 0.001", "delta 10")(evidence),
            (4, 13),
        ),
        Choice(
            section,
            "the index of eta",
            "eta at t + 1 belongs to alpha at t",
            "so in the appendix; the main text has the same index for both",
            NOT_MEASURED,
            (7,),
        ),
        Choice(
            section,
            "the point that is returned",
            "the last one in the experiments, a mean over all for the rate",
            "the theorems speak of a random one, which is not defined",
            NOT_MEASURED,
            (14,),
        ),
    ]


def _representation(evidence: Evidence) -> list[Choice]:
    section, options = SECTIONS[1], load(REPRESENTATION).options
    table = evidence.representation
    scores = tuning_scores(table[table.group == "tuning"], "upper_loss")
    readings = ("released code, PyTorch 2", "released code, PyTorch 1", "its paper, FdeHBO's steps")

    def tuned(method: str) -> str:
        rows = scores[scores.solver == method]
        best, worst = rows.score.min(), rows.score.max()
        return f"{method}, outer loss of {len(rows)} settings, 45 s: best {best:.2f}, worst {worst:.2f}"

    split = changed(
        REPRESENTATION,
        "held_out",
        {"FdeHBO": "split training file"},
        ("main", "FdeHBO"),
        "upper_loss",
        "cpu_seconds",
    )
    test = table[(table.group == "held_out") & (table.label == "FdeHBO")]
    main = table[table.group == "main"]
    order = {
        axis: main.groupby(["label", "seed"])[axis].max().groupby("label").mean()
        for axis in ("cpu_seconds", "gradients")
    }
    each = (order["cpu_seconds"] / order["gradients"])[["FdeHBO", "alternating", "F3SA"]]
    return [
        Choice(
            section,
            "which images are in which set",
            "outer: training file, inner: test file; nothing is held out",
            "the code that the paper follows does so",
            (*split(evidence), f"accuracy on images never used {test.test_accuracy.iloc[-1]:.3f}"),
            (9,),
        ),
        Choice(
            section,
            "the first y",
            "zero",
            "the code that the paper follows does so",
            of_fdehbo("y_0 of PyTorch")(evidence),
            (9,),
        ),
        Choice(
            section,
            "a ridge on y",
            "none",
            "the formula has none, though the lower level is then not strongly convex",
            of_fdehbo("ridge 0.01")(evidence),
            (9, 12),
        ),
        Choice(
            section,
            "the direction in which eta is read",
            setting(REPRESENTATION, "FdeHBO", "eta") + ": nearly no momentum",
            "so by the paper's formulas; code often has one minus it",
            of_fdehbo("eta 0.1", "eta 1, momentum off")(evidence),
            (6, 9),
        ),
        Choice(
            section,
            "the settings of PZOBO-S",
            setting(REPRESENTATION, "PZOBO-S", "alpha", "beta", "inner", "Q", "mu"),
            'its released code, with Adam in both loops: "suggested in their papers and implementations"',
            changed(
                REPRESENTATION,
                "pzobo",
                {label: label for label in readings[1:]},
                ("pzobo", readings[0]),
                "upper_loss",
                "step",
            )(evidence),
            (8, 9),
        ),
        Choice(
            section,
            "the settings of F2SA and F3SA",
            setting(REPRESENTATION, "F2SA", "alpha", "beta", "gamma", "multiplier", "inner")
            + "; "
            + setting(REPRESENTATION, "F3SA", "alpha", "beta", "gamma", "multiplier", "eta"),
            "the best of a grid: their papers have no such experiment",
            (tuned("F2SA"), tuned("F3SA")),
            (9,),
        ),
        Choice(
            section,
            "the clock",
            "CPU seconds of the method on one thread, evaluation not counted",
            "the paper's machine for this experiment is not stated",
            tuple(f"{label}: {1000 * value:.0f} seconds for a thousand gradients" for label, value in each.items()),
            (9,),
        ),
        Choice(
            section,
            "the images on which loss and accuracy are taken",
            f"the first {options['evaluation_size']} of each set",
            "a fixed set, large beside the differences between methods",
            NOT_MEASURED,
            (9,),
        ),
        Choice(
            section,
            "how a batch is drawn",
            f"{options['batch_size']} images with replacement",
            "what the theory assumes",
            NOT_MEASURED,
        ),
        Choice(
            section,
            "the network in detail",
            "ReLU, max pooling, images of 32 x 32 pixels, PyTorch's first weights",
            "the parameter counts of the paper come out",
            NOT_MEASURED,
            (9,),
        ),
    ]


def _cleaning(evidence: Evidence) -> list[Choice]:
    section, table = SECTIONS[2], evidence.cleaning
    main = table[table.group == "main"]
    lower, upper = hyper_cleaning.LOWER, hyper_cleaning.UPPER
    decays = {label: f"eta {label}" for label in ("(t + 1)^(-2/3)", "10 (t + 1)^(-2/3)", "(t + 1)^(-1/2) / 2")}
    scores = tuning_scores(table[table.group == "tuning"], "train_loss").set_index("label").score

    def tried(method: str) -> str:
        found = {c: scores[f"{method}, c {c}"] for c in (1, 10, 100)}
        scores_of = ", ".join(f"{score:.3f} with c = {c}" for c, score in found.items())
        return f"{method}: training loss in the tuning {scores_of}"

    def ends(group: str, label: str, column: str) -> pd.Series:
        return table[(table.group == group) & (table.label == label)].groupby("seed")[column].last()

    last = ends("main", "FMBO", "train_loss")
    with_eta = ("FMBO", "SUSTAIN", "MRBO", "FSLA")
    return [
        Choice(
            section,
            "which set is which",
            f"{lower.stop - lower.start} noisy images in the lower level, "
            f"{upper.stop - upper.start} clean ones in the upper",
            "the formula puts the weights on the noisy ones; the text swaps the names",
            NOT_MEASURED,
            (10,),
        ),
        Choice(
            section,
            "which images",
            f"training images {lower.start} to {lower.stop - 1}, and {upper.start} to {upper.stop - 1}; "
            "the test file for testing",
            "disjoint, and the same for every method; in released code the upper set differs from method to method",
            of_released("cleaning", "auc", "one upper batch in five from training", "all upper batches from training")(
                evidence
            ),
            (11,),
        ),
        Choice(
            section,
            "the wrong labels",
            "exactly the given share, each shifted by 1 to 9, drawn once for each seed",
            "an unbiased reading of a noise rate",
            (
                f"training loss of FMBO over {len(last)} draws of labels, batches and start: {spread(last)}",
                *of_released("published", "train_loss", "labels re-noised")(evidence),
            ),
            (10, 11),
        ),
        Choice(
            section,
            "the loss that is called training loss",
            "mean cross-entropy of the lower level's images with their true labels",
            "it tells how good the classifier is; the loss on wrong labels does not",
            NOT_MEASURED,
            (10,),
        ),
        Choice(
            section,
            "the first w",
            "normal with variance 2/10",
            "the code of the methods compared does so",
            together(*(of_method(method, f"{method}, w starts at 0") for method in ("FMBO", "SOBA", "stocBiO")))(
                evidence
            ),
            (10,),
        ),
        Choice(
            section,
            "how eta decays",
            f"{setting(CLEANING, 'FMBO', 'eta')}, the same for SUSTAIN, MRBO and FSLA. "
            + ". ".join(without_momentum(method, evidence) for method in with_eta),
            "the exponent of the theorem; the factor c is the best of three for each method, and the largest",
            (
                *(tried(method) for method in with_eta),
                *changed(CLEANING, "momentum", decays, ("momentum", "main comparison"), "train_loss", "step")(evidence),
            ),
            (6, 10),
        ),
        Choice(
            section,
            "momentum at all",
            setting(CLEANING, "FMBO", "eta"),
            "the method has it",
            of_fmbo("eta 1, momentum off", "eta 0.9", "eta 0.5", "eta 0.1")(evidence),
            (6, 10),
        ),
        Choice(
            section,
            "the step of FMBO on v",
            setting(CLEANING, "FMBO", "lam"),
            "that of the other two variables",
            of_fmbo("lam 0.1", "lam 1")(evidence),
            (10,),
        ),
        Choice(
            section,
            "equal steps for all (the paper gives FMBO 0.3, others 0.1)",
            f"as the paper: {setting(CLEANING, 'FMBO', 'alpha', 'beta')} and "
            f"{setting(CLEANING, 'SOBA', 'alpha', 'beta')}",
            "stated, and measured because a claim rests on it",
            together(
                of_method("FMBO", "FMBO, steps 0.1", group="equal_steps"),
                of_method("SOBA", "SOBA, steps 0.3", group="equal_steps"),
                of_method("FSLA", "FSLA, steps 0.3", group="equal_steps"),
            )(evidence),
            (10,),
        ),
        Choice(
            section,
            "SOBA: batch and step on v",
            f"{batch('SOBA')}, {setting(CLEANING, 'SOBA', 'lam')}",
            "the batch of FMBO; the step of the other variables",
            of_method("SOBA", "SOBA, batch 1000", "SOBA, lam 0.5")(evidence),
            (10,),
        ),
        Choice(
            section,
            "FSLA: step on v and eta",
            f"{batch('FSLA')}, {setting(CLEANING, 'FSLA', 'lam', 'eta')}",
            "as SOBA, with the decay of FMBO",
            of_method("FSLA", "FSLA, lam 0.5", "FSLA, eta 0.9")(evidence),
            (10,),
        ),
        Choice(
            section,
            "SUSTAIN: batch and eta",
            f"{batch('SUSTAIN')}, {setting(CLEANING, 'SUSTAIN', 'K', 'eta_series', 'eta')}",
            "the batch and the decay of FMBO",
            of_method("SUSTAIN", "SUSTAIN, batch 1", "SUSTAIN, eta 0.9")(evidence),
            (10,),
        ),
        Choice(
            section,
            "MRBO: eta",
            f"{batch('MRBO')}, {setting(CLEANING, 'MRBO', 'eta')}",
            "the decay of FMBO; its code amounts to 0.9",
            of_method("MRBO", "MRBO, eta 0.9")(evidence),
            (10, 11),
        ),
        Choice(
            section,
            "VRBO: the small batch",
            f"{batch('VRBO')}, large batch {paper_settings(CLEANING, 'VRBO')['large']} draws of it",
            "only the large batch of 500 is stated",
            of_method("VRBO", "VRBO, batch 25")(evidence),
            (10,),
        ),
        Choice(
            section,
            "BSA: batch",
            batch("BSA"),
            "single samples, as in its paper and code",
            of_method("BSA", "BSA, batch 100")(evidence),
            (10,),
        ),
        Choice(
            section,
            "AmIGO: batch, inner steps and step on v",
            f"{batch('AmIGO')}, {setting(CLEANING, 'AmIGO', 'inner', 'Q', 'lam')}",
            "those of stocBiO, which it is said to resemble",
            of_method("AmIGO", "AmIGO, lam 0.5", "AmIGO, batch 100, 10 inner steps")(evidence),
            (10,),
        ),
        Choice(
            section,
            "AID-FP: the step of its fixed point",
            setting(CLEANING, "AID-FP", "eta_series"),
            "the paper's eta in the hypergradient estimation; its code has 0.1",
            of_method("AID-FP", "AID-FP, eta 0.1")(evidence),
            (10,),
        ),
        Choice(
            section,
            "reverse: how far back it differentiates",
            setting(CLEANING, "reverse", "K", "inner"),
            "the three iterations that the paper gives the linear system",
            of_method("reverse", "reverse, K 200")(evidence),
            (10,),
        ),
        Choice(
            section,
            "three iterations in solving the linear system: terms or products",
            "; ".join(
                f"{method}: {setting(CLEANING, method, name)}, {cost(method, inner=3, **{name: 3})[-1].Hv} H v"
                for method, name in (("stocBiO", "Q"), ("AID-FP", "K"))
            ),
            "each method by its own code",
            NOT_MEASURED,
            (8, 10),
        ),
        Choice(
            section,
            "whether the outer step is large enough to clean",
            f"as the paper: {setting(CLEANING, 'FMBO', 'alpha')}",
            "stated, and measured because the problem is named after it",
            (
                *(
                    f"{shown}: AUC of telling wrong labels {spread(ends(group, label, 'auc'))}, test accuracy "
                    f"{spread(ends(group, label, 'test_accuracy'))}"
                    for shown, group, label in (
                        ("alpha as in the paper", "main", "FMBO"),
                        ("alpha = 100", "cleaning", "FMBO"),
                        ("alpha = 100, w calmer", "cleaning", "FMBO, calm"),
                    )
                ),
                *(
                    f"a classifier fitted with {shown}: test accuracy {spread(ends('bounds', label, 'test_accuracy'))}"
                    for shown, label in (("nothing cleaned", "nothing cleaned"), ("all wrong labels out", "oracle"))
                ),
            ),
            (10,),
        ),
        Choice(
            section,
            "how many seconds",
            f"{load(CLEANING).sizes['full']['main'].seconds} CPU seconds on one thread, evaluation not counted",
            "the axis of the figure is not in the public source",
            tuple(
                f"{method}: {main[main.label == method].groupby('seed').step.max().mean():.0f} steps in that time"
                for method in ("FMBO", "stocBiO", "AID-FP")
            ),
            (10,),
        ),
    ]
