"""Names of runs are checked against the experiment's file."""

import pandas as pd
import pytest

from bilevel_book.labels import label, labels, select


def test_a_known_label_is_given_back():
    assert label("hyper-cleaning", "momentum", "main comparison") == "main comparison"
    assert labels("hyper-representation", "held_out") == ("FdeHBO", "PZOBO-S", "F2SA", "F3SA", "alternating")


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown label in hyper-cleaning, momentum, 'no bal'; known are .*no ball"):
        label("hyper-cleaning", "momentum", "no bal")
    with pytest.raises(ValueError, match=r"unknown group of hyper-cleaning, size full, 'moment'; known are .*momentum"):
        label("hyper-cleaning", "moment", "no ball")


def test_rows_are_selected_by_group_and_label():
    rows = [("main", "FMBO", 0), ("main", "SOBA", 1), ("cleaning", "FMBO", 2)]
    table = pd.DataFrame(rows, columns=["group", "label", "number"])
    assert list(select(table, "hyper-cleaning", "main").number) == [0, 1]
    assert list(select(table, "hyper-cleaning", "main", "FMBO").number) == [0]
    assert list(select(table, "hyper-cleaning", "cleaning", "FMBO").number) == [2]
    with pytest.raises(ValueError, match="unknown label in hyper-cleaning, main, 'SOBO'"):
        select(table, "hyper-cleaning", "main", "FMBO", "SOBO")
