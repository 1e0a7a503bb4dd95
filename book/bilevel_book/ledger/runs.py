"""Claims that the stored runs of the two experiments decide."""

from bilevel_book import verdicts
from bilevel_book.curves import largest_rise
from bilevel_book.ledger.evidence import Evidence, Judge, found
from bilevel_book.verdicts import Claim
from bilevel_core.experiments import paper_settings
from bilevel_core.problems.hyper_representation import lenet


def of_experiment(name: str) -> Judge:
    column = {"hyper-representation": "representation", "hyper-cleaning": "cleaning"}[name]
    return lambda evidence: verdicts.of(name, getattr(evidence, column))


def without_second_order_nothing_moves(evidence: Evidence) -> list[Claim]:
    control = evidence.cleaning[(evidence.cleaning.group == "main") & (evidence.cleaning.label == "alternating")]
    moved = (control[["sigma_noisy", "sigma_clean"]] - 0.5).abs().to_numpy().max()
    return [
        found(
            "without second-order terms the hypergradient vanishes when $f$ depends on $y$ alone",
            "how far the weights of hyper-cleaning ever move from 1/2 under the control without second-order term",
            f"{moved:.1g} in {control.step.max():.0f} steps",
            bool(moved < 1e-6),
        )
    ]


def dimensions(evidence: Evidence) -> list[Claim]:
    features, head = lenet()
    sizes = [sum(p.numel() for p in part.parameters()) for part in (features, head)]
    layers = [sum(p.numel() for p in layer.parameters()) for layer in (*features, head)]
    last_two = sum([size for size in layers if size][-2:])
    return [
        found(
            "the dimensions are 850 and 60856",
            "parameters of LeNet-5: last layer, and the rest",
            f"{sizes[1]} and {sizes[0]}",
            sizes == [60856, 850],
        ),
        found(
            "the lower level holds the last two layers",
            "parameters of the last two layers; the lower level has 850",
            f"{last_two}",
            last_two == 850,
        ),
    ]


def v_needs_no_assumption(evidence: Evidence) -> list[Claim]:
    main = evidence.cleaning[evidence.cleaning.group == "main"]
    r_v = paper_settings("hyper-cleaning", "FMBO")["r_v"]
    largest = {name: main[main.label == name].norm_v.max() for name in ("FMBO", "SOBA", "FSLA")}
    return [
        found(
            "FMBO keeps $v$ bounded by itself, SOBA and FSLA must assume it",
            f"largest norm of v in the main comparison on hyper-cleaning; FMBO has radius {r_v:g}, the others none",
            "; ".join(f"{name} {value:.3g}" for name, value in largest.items()),
            bool(largest["FMBO"] <= r_v * (1 + 1e-5)),
        )
    ]


def decay_is_stable(evidence: Evidence) -> list[Claim]:
    runs = evidence.cleaning[evidence.cleaning.group == "momentum"]
    rises = largest_rise(runs, "train_loss").groupby("label").mean()
    constant = ("eta 0.9", "eta 0.5", "eta 0.1")
    return [
        found(
            "a decaying eta makes the training more stable",
            "largest climb of the training loss of FMBO above its lowest value so far, in 3000 steps, with the decay "
            "of the main comparison and with three constant values. The form of the paper's decay is not stated",
            "; ".join(f"{label} {rises[label]:.3f}" for label in ("main comparison", *constant)),
            bool(all(rises["main comparison"] < rises[label] for label in constant)),
        )
    ]


def sensitive_to_delta(evidence: Evidence) -> list[Claim]:
    runs = evidence.representation[evidence.representation.group == "ablations"]
    ends = runs.groupby(["label", "seed"]).upper_loss.last().groupby("label").mean()
    shown = ends[["delta 0.001", "as in the paper", "delta 10"]]
    return [
        found(
            "differences are sensitive to delta",
            "outer loss of FdeHBO on LeNet after 200 steps, delta = 0.001, 0.1 and 10: is the largest a tenth above "
            "the smallest?",
            ", ".join(f"{end:.3f}" for end in shown),
            bool(shown.max() > 1.1 * shown.min()),
        )
    ]


def ball_does_no_harm(evidence: Evidence) -> list[Claim]:
    last = evidence.cleaning[evidence.cleaning.group == "momentum"].groupby(["label", "seed"]).train_loss.last()
    ball, free = last["main comparison"], last["no ball"]
    return [
        found(
            "the projection does no harm to the convergence",
            "training loss of FMBO on hyper-cleaning after 3000 steps with the ball and without: is the mean with it "
            "at most the largest without it?",
            f"{verdicts.spread(ball)} with, {verdicts.spread(free)} without",
            bool(ball.mean() <= free.max()),
        )
    ]
