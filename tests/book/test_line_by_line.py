"""Pictures of Chapters 7 and 8: what they draw is what they were given, and each curve carries its name."""

import pytest
import torch
from matplotlib.text import Annotation

from bilevel_book.figures import family_tree, race
from bilevel_book.figures.line_by_line import Iteration, arrows_of_a_step, eta_must_not_matter, towards_exact_products
from bilevel_book.figures.methods import FAMILIES, position
from bilevel_book.methods import PAPER, SOLVERS
from bilevel_book.style import METHODS
from bilevel_core import FMBO
from bilevel_core.counting import counting
from bilevel_core.directions import exact
from bilevel_core.problems import Quadratic, Valley


def words(axes):
    return [text.get_text() for text in axes.texts]


def test_every_curve_of_the_mistake_carries_its_eta():
    right = {eta: torch.logspace(0, -6, 50) for eta in (1.0, 0.3, 0.1, 0.03, 0.0)}
    wrong = {eta: torch.logspace(0, -6 * eta, 50) for eta in right}
    above, below = eta_must_not_matter(right, wrong).axes
    assert words(above) == ["all five"]
    assert words(below) == ["η = 1", "η = 0.3", "η = 0.1", "η = 0.03", "η = 0"]
    for eta, line, label in zip(right, below.lines, below.texts, strict=True):
        assert line.get_ydata()[-1] == pytest.approx(wrong[eta][-1])
        assert label.xy[1] == pytest.approx(wrong[eta][-1].item())
        assert label.get_color() == line.get_color()


def test_arrows_show_the_moves_and_not_the_directions():
    plane, solver = Quadratic(dim_x=2, dim_y=2, noise=0.5), FMBO(alpha=0.1, beta=0.3, lam=0.3, eta=0.2)
    state = solver.step(plane, solver.init(plane))
    after = solver.step(plane, state)
    truth = exact(plane, state.x, state.y, state.v, plane.full())
    walk = [Iteration(state, truth, truth, after.h), Iteration(after, truth, truth, after.h)]
    for axes, name in zip(arrows_of_a_step(plane, walk, 0).axes, "yvx", strict=True):
        arrows = [note for note in axes.texts if isinstance(note, Annotation)]
        sampled, _, momentum = (torch.tensor(note.xy) - torch.tensor(note.get_position()) for note in arrows)
        assert torch.allclose(sampled, -getattr(truth, name) / 2)
        assert torch.allclose(momentum, -getattr(after.h, name) / 2)


def test_the_line_of_slope_two_starts_at_the_first_point():
    line = towards_exact_products([1.0, 0.1, 0.01], [0.5, 0.005, 0.00005]).axes[0].lines[1]
    assert list(line.get_ydata()) == pytest.approx([0.5, 0.005, 0.00005])


def test_the_family_has_every_method_of_the_paper_once_and_the_control():
    names = [name for _, methods in FAMILIES for name, _ in methods]
    assert sorted(names) == sorted((*PAPER, "alternating"))
    assert set(names) <= set(words(family_tree().axes[0]))


def test_the_frames_of_the_family_say_what_counting_says():
    needs = {name: how["text"] for _, methods in FAMILIES for name, how in methods}
    small = Quadratic(dim_x=2, dim_y=3, noise=0.1)
    for name, text in needs.items():
        solver = SOLVERS[name]()
        with counting() as calls:
            solver.step(small, solver.init(small))
        assert ("products" in text) == (calls.Jv > 0), name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")  # of limits that are tensors
def test_a_lane_of_the_race_is_named_and_its_diamond_is_the_median():
    valley, runs = Valley(), {"SOBA": [([0, 5, 10], [x, x / 2, x / 4]) for x in (0.1, 0.2, 0.9)]}
    _, below = race(valley, runs, 7).axes
    assert [label.get_text() for label in below.get_yticklabels()] == ["SOBA"]
    at = torch.tensor([0.05, 0.1, 0.45], dtype=torch.float64)
    assert below.lines[-1].get_xdata()[0] == pytest.approx(valley.hypergradient(at).abs().median().item())
    assert below.lines[-1].get_color() == METHODS["SOBA"].color
    assert position(runs["SOBA"][2], 4) == 0.9  # the second step is not paid for
