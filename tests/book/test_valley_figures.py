"""The pictures of Chapters 1 to 3 say what the runs did."""

import pytest
import torch

from bilevel_book.figures import errors_of, step_by_step, two_paths
from bilevel_book.figures.hypergradient import tangents, unrolled
from bilevel_book.figures.linear_system import iterates
from bilevel_book.methods import SOLVERS
from bilevel_book.style import METHODS
from bilevel_book.walk import walk
from bilevel_core import FdeHBO
from bilevel_core.problems import Valley


@pytest.fixture(scope="module")
def path():
    return walk(Valley(), FdeHBO(alpha=0.05, beta=0.5, lam=0.5, eta=0.5, delta=0.05, r_v=3.0), 12)


def test_the_lag_is_an_arrow_and_a_number(path):
    plane, phi, errors = step_by_step(Valley(), path, 7).axes
    floor = Valley().y_star(path[7].x).item()
    (arrow,) = plane.texts
    assert arrow.xy == pytest.approx((path[7].x.item(), floor))
    assert arrow.get_position() == pytest.approx((path[7].x.item(), path[7].y.item()))
    assert plane.get_title(loc="left") == f"t = 7: y is {floor - path[7].y.item():.2f} below the floor"
    assert "above the floor" in step_by_step(Valley(), path, 0).axes[0].get_title(loc="left")
    shown = {line.get_label(): line.get_ydata() for line in errors.lines if not line.get_label().startswith("_")}
    for name, error in errors_of(Valley(), path).items():
        assert shown[name] == pytest.approx(error[:8])
    assert phi.get_title(loc="left") == f"Φ(x) = {Valley().objective(path[7].x).item():.3f}"


def test_methods_have_their_colours_and_end_where_they_ended(path):
    control = walk(Valley(), SOLVERS["alternating"](alpha=0.3, beta=0.4), 12)
    above, below = two_paths(Valley(), {"alternating": control, "FdeHBO": path}).axes
    for name, states in {"alternating": control, "FdeHBO": path}.items():
        ends = [line for axes in (above, below) for line in axes.lines if line.get_markersize() == 9]
        mine = [line for line in ends if line.get_color() == METHODS[name].color and line.get_marker() != "x"]
        assert [line.get_xdata()[0] for line in mine] == [states[-1].x.item()] * 2
    assert [text.get_text() for text in above.get_legend().get_texts()][1:3] == ["alternating", "FdeHBO"]


def test_tangents_have_the_slopes_that_are_given():
    above, below = tangents(Valley(), -0.4, 1.5, -3.0, 0.25).axes
    slopes = [
        (line.get_ydata()[1] - line.get_ydata()[0]) / (line.get_xdata()[1] - line.get_xdata()[0])
        for line in (*above.lines, *below.lines)
        if len(line.get_xdata()) == 2 and line.get_linewidth() > 2
    ]
    assert [slope.item() for slope in slopes] == pytest.approx([1.5, -3.0, 0.25])


def test_thin_lines_fall_at_the_rates():
    lines = unrolled({"A": [1.0, 0.5, 0.25], "B": [3.0, 0.3, 0.03]}, [0.5, 0.1]).axes[0].lines
    assert [list(line.get_ydata()) for line in lines[1::2]] == [
        pytest.approx([1.0, 0.5, 0.25]),
        pytest.approx([3.0, 0.3, 0.03]),
    ]


def test_no_path_is_above_the_worst_case():
    H, b = torch.diag(torch.tensor([1.0, 4.0]).double()), torch.tensor([1.0, -2.0]).double()
    v = [torch.zeros(2).double()]
    for _ in range(5):
        v.append(v[-1] - 0.3 * (H @ v[-1] - b))
    below = iterates(H, b, torch.stack(v), 0.7).axes[1]
    worst, mine = (torch.as_tensor(line.get_ydata()) for line in below.lines[:2])
    assert worst.tolist() == pytest.approx([0.7**k for k in range(6)])
    assert (mine <= worst + 1e-12).all()
    assert mine[0] == 1
