"""Wrong labels among Gaussian blobs, found by a loss out of sample and by trimming."""

import json

import pytest
import torch

from bilevel_book import baselines
from bilevel_book.baselines import fit, judged, kept, out_of_sample, trimmed
from bilevel_book.experiments import read
from bilevel_book.mnist.hyper_cleaning import Images, class_scores, log_likelihoods, mislabel

C = 1e-3


class Blobs:
    """As HyperCleaning: n points around ten centres, noise * n of them mislabelled, and as many points for a test.

    Each point may have a coordinate of its own, `private`, by which a classifier can learn its label by heart.
    """

    C = C

    def __init__(self, n, dim, apart, noise, private=0.0, seed=0):
        generator = torch.Generator().manual_seed(seed)
        centres = apart * torch.randn(10, dim, generator=generator, dtype=torch.float64)

        def drawn(own):
            labels = torch.randint(10, (n,), generator=generator)
            points = centres[labels] + torch.randn(n, dim, generator=generator, dtype=torch.float64)
            return Images(
                torch.cat((points, own * torch.eye(n)[:, : n if private else 0], torch.ones(n, 1)), 1), labels
            )

        self.lower_set, self.test_set = drawn(private), drawn(0.0)
        self.noisy_labels = mislabel(self.lower_set.labels, noise, generator)
        self.is_noisy = self.noisy_labels != self.lower_set.labels
        self.data = self.lower_set.pixels, self.noisy_labels, C


@pytest.fixture(scope="module")
def easy():
    return Blobs(600, 20, apart=3.0, noise=0.1)


def in_sample(blobs):
    return trimmed(*blobs.data, fraction=0.0, rounds=0)


@pytest.mark.slow
def test_classifier_is_the_minimiser(easy):
    pixels, labels, _ = easy.data
    w = fit(*easy.data).requires_grad_()
    (gradient,) = torch.autograd.grad(-log_likelihoods(w, pixels, labels).mean() + C * (w @ w), w)
    assert gradient.abs().max() < 2e-5
    assert torch.allclose(fit(*easy.data, start=torch.ones_like(w)), w, atol=1e-2)  # error <= ||gradient|| / 2 C
    assert w.abs().max() > 0.5


@pytest.mark.slow
def test_label_learnt_by_heart_is_found_out_of_sample_rather_than_in_sample():
    blobs = Blobs(200, 10, apart=1.5, noise=0.1, private=20.0)
    inside, outside = judged(blobs, in_sample(blobs)), judged(blobs, out_of_sample(*blobs.data))
    assert outside["auc"] > inside["auc"] + 0.004
    assert outside["f1"] >= inside["f1"] + 0.1


@pytest.mark.slow
def test_trimming_finds_more_than_one_training_where_many_labels_are_wrong():
    blobs = Blobs(500, 10, apart=1.0, noise=0.3)
    once, often = judged(blobs, in_sample(blobs)), judged(blobs, trimmed(*blobs.data, fraction=0.3))
    assert often["auc"] > once["auc"] + 0.005
    assert often["f1"] > once["f1"] + 0.01


@pytest.mark.slow
def test_no_image_is_judged_by_a_classifier_that_saw_it(easy):
    """Another label of an image changes its own score by the loss alone, for the classifier of its fold is the same."""
    pixels, labels, _ = easy.data
    other = labels.clone()
    other[7] = (labels[7] + 1) % 10
    scores, changed = out_of_sample(pixels, labels, C), out_of_sample(pixels, other, C)
    seen = torch.arange(600) % 5 != 2
    w = fit(pixels[seen], labels[seen], C)
    for given, score in ((labels, scores), (other, changed)):
        assert score[~seen] == pytest.approx(-log_likelihoods(w, pixels[~seen], given[~seen]), abs=1e-3)
    assert not torch.allclose(scores[seen], changed[seen], atol=1e-2)  # the other folds did see it


def test_highest_scores_are_dropped_and_judged_as_in_hyper_cleaning(easy):
    assert kept(torch.tensor([1.0, 5.0, 3.0, 4.0]), 2).tolist() == [0, 2]
    wrong = easy.is_noisy
    perfect, opposite = judged(easy, wrong.double()), judged(easy, -wrong.double())
    assert (perfect["auc"], perfect["f1"]) == (1, 1)
    assert (opposite["auc"], opposite["f1"]) == (0, 0)
    oracle = fit(easy.lower_set.pixels[~wrong], easy.lower_set.labels[~wrong], C)
    right = class_scores(oracle, easy.test_set.pixels).argmax(0) == easy.test_set.labels
    assert perfect["test_accuracy"] == right.double().mean()


@pytest.mark.slow
def test_both_are_stored_as_one_table(tmp_path, monkeypatch):
    problem = Blobs(200, 10, apart=1.5, noise=0.1)
    monkeypatch.setattr(baselines, "HyperCleaning", lambda noise, seed, C, dtype: problem)
    path = baselines.store(tmp_path, seeds=(3, 4))
    table, facts = (
        read("hyper-cleaning", "baselines", tmp_path),
        json.loads(path.with_suffix(".json").read_text())["runs"],
    )
    named = [(label, seed) for seed in (3, 4) for label in ("out of sample", "trimmed")]
    assert list(zip(table.label, table.seed, strict=True)) == named
    expected = judged(problem, trimmed(*problem.data, fraction=0.1))
    assert table.loc[1, list(expected)].to_dict() == pytest.approx(expected, rel=1e-5)
    assert [each["seed"] for each in facts] == [3, 4]
    assert {"cpu_seconds", "versions", "commit", "noise", "C", "folds", "rounds"} <= facts[0].keys()
