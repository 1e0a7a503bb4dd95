"""Tables of stored runs, from histories that are written by hand."""

import numpy as np
import pandas as pd
import pytest

from bilevel_book.experiments import reproduce, sweep
from bilevel_book.experiments.report import ends, last_quarter_median, mean_and_range, report, select


def history(label, seed, seconds, losses, stop="steps"):
    named = {"label": label, "solver": "SOBA", "seed": seed, "stop": stop}
    return pd.DataFrame({"step": range(len(losses)), "seconds": seconds, "loss": losses}).assign(**named)


def test_the_median_is_over_the_last_quarter_of_each_run():
    runs = pd.concat([history("A", 0, [0, 50, 75, 80, 100], [8, 9, 1.0, 5.0, 2.0]), history("A", 1, [0, 1], [8, 3.0])])
    assert last_quarter_median(runs, "seconds", "loss").to_dict() == {("A", 0): 2.0, ("A", 1): 3.0}
    assert last_quarter_median(runs, "step", "loss").to_dict() == {("A", 0): 3.5, ("A", 1): 3.0}


def test_the_table_of_ends():
    runs = [history("A", 0, [0, 4], [9, 1.0]), history("A", 1, [0, 6], [9, 3.0])]
    runs += [history("C", 0, [0, 1, 2], [8, 1.0, np.nan], "diverged")]
    found = ends(pd.concat(runs), ["loss"])
    assert found.loc["A", "loss"] == "2.000 (1.000 to 3.000)" == mean_and_range(pd.Series([1.0, 3.0]))
    assert found.loc["A"].tolist()[1:] == [2, 0, "5", 1]  # after the loss: runs, diverged, seconds a step, steps
    assert found.loc["C", "diverged"] == 1
    assert found.loc["C", "loss"].startswith("1.000")  # the last finite one


def test_rows_are_selected_by_group_and_label_and_unknown_names_are_refused():
    rows = [("main", "FMBO", 0), ("main", "SOBA", 1), ("cleaning", "FMBO", 2)]
    table = pd.DataFrame(rows, columns=["group", "label", "number"])
    assert list(select(table, "hyper-cleaning", "main").number) == [0, 1]
    assert list(select(table, "hyper-cleaning", "cleaning", "FMBO").number) == [2]
    with pytest.raises(ValueError, match="unknown label in hyper-cleaning, main, 'SOBO'; known are FMBO, SOBA"):
        select(table, "hyper-cleaning", "main", "FMBO", "SOBO")
    with pytest.raises(ValueError, match="unknown group of hyper-cleaning 'man'; known are main, cleaning"):
        select(table, "hyper-cleaning", "man")


def test_report_names_what_is_left_out_and_unknown_columns(small, write, folder, capsys):
    reproduce(sweep(small, "full", ["main"]), folder, progress=False)
    path = folder / "small" / "main.csv"
    path.write_text(path.read_text().replace("SOBA,0,20", "SOBA,0,21"))
    report(small, folder)
    assert "main/SOBA_0 is left out: its rows are damaged" in capsys.readouterr().out
    other = write(("columns = [", 'columns = ["colour", '))
    with pytest.raises(ValueError, match="unknown column of small, main, 'colour'; known are"):
        report(other, folder)
