"""The one table of how methods look: any two can be told apart, with colours and without."""

from itertools import combinations

import numpy as np
from matplotlib.colors import to_rgb

from bilevel_book.methods import SOLVERS
from bilevel_book.style import METHODS, look


def lab(colour):
    """CIELAB, in which a distance of 2.3 is just noticeable."""
    linear = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)])
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ linear / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_every_method_has_a_look_and_no_other_has():
    assert set(METHODS) == set(SOLVERS)


def test_no_two_methods_share_a_colour_or_look_alike():
    for (one, a), (other, b) in combinations(METHODS.items(), 2):
        assert np.linalg.norm(lab(a.color) - lab(b.color)) > 15, (one, other)


def test_without_colours_a_dash_and_a_mark_still_name_the_method():
    pairs = [(each.linestyle, each.marker) for each in METHODS.values()]
    assert len(set(pairs)) == len(METHODS)


def test_a_variant_keeps_colour_and_mark():
    tuned = look("FMBO, tuned")
    assert (tuned.color, tuned.marker) == (METHODS["FMBO"].color, METHODS["FMBO"].marker)
    assert tuned.linestyle != METHODS["FMBO"].linestyle
