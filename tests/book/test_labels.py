"""Names of runs are checked against the table."""

import pandas as pd
import pytest

from bilevel_book.labels import select


def test_rows_are_selected_by_group_and_label_and_unknown_names_are_refused():
    rows = [("main", "FMBO", 0), ("main", "SOBA", 1), ("cleaning", "FMBO", 2)]
    table = pd.DataFrame(rows, columns=["group", "label", "number"])
    assert list(select(table, "hyper-cleaning", "main").number) == [0, 1]
    assert list(select(table, "hyper-cleaning", "cleaning", "FMBO").number) == [2]
    with pytest.raises(ValueError, match="unknown label in hyper-cleaning, main, 'SOBO'; known are FMBO, SOBA"):
        select(table, "hyper-cleaning", "main", "FMBO", "SOBO")
    with pytest.raises(ValueError, match="unknown group of hyper-cleaning 'man'; known are main, cleaning"):
        select(table, "hyper-cleaning", "man")
