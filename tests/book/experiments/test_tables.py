"""Tables: the runs of a group in one CSV and one JSON, from which each run comes back as it was."""

import hashlib

import pandas as pd
import pytest
import torch

from bilevel_book.experiments import read, reproduce, sweep
from bilevel_book.experiments.tables import StoredRun, stored_runs, table_file, write_table


def stored(label, seed, history):
    sha256 = hashlib.sha256(history.encode()).hexdigest()
    return StoredRun(history, {"run": {"label": label, "seed": seed}, "stop": "steps", "sha256": sha256})


RUNS = [
    stored("SOBA", 0, "step,loss,auc\n0,1.5,0.5\n10,,1e-07\n"),  # a missing number
    stored("FMBO, calm", 0, "step,loss\n0,1\n10,2.50001\n"),  # a comma in the label, and a column less
    stored('"quoted"', 1, "step,auc,loss\n0,7,8\n"),  # another order of columns
]


def test_every_run_comes_back_byte_for_byte(folder):
    write_table(RUNS, table_file(folder, "small", "main"))
    found = stored_runs("small", "main", folder)
    assert [run.history for run in found.values()] == [run.history for run in RUNS]
    assert all(run.is_intact for run in found.values())
    assert list(found) == [("SOBA", 0), ("FMBO, calm", 0), ('"quoted"', 1)]


def test_read_gives_what_pandas_reads(folder):
    path = table_file(folder, "small", "main")
    write_table(RUNS, path)
    table = read("small", "main", folder)
    pd.testing.assert_frame_equal(table, pd.read_csv(path))
    assert list(table) == ["label", "seed", "step", "loss", "auc"]
    assert table[table.label == "FMBO, calm"].auc.isna().all()


CHANGES = (b"2.50001", b"2.5", 2), (b"2.50001", b"\xff", 2), (b"10,2.50001,\n", b'"', 1), (b"label,seed,step", b"", 0)


@pytest.mark.parametrize(("old", "new", "intact"), CHANGES)
def test_changed_rows_are_not_intact(folder, old, new, intact):
    path = table_file(folder, "small", "main")
    write_table(RUNS, path)
    path.write_bytes(path.read_bytes().replace(old, new))
    assert sum(run.is_intact for run in stored_runs("small", "main", folder).values()) == intact
    path.write_bytes(b"")
    assert not any(run.is_intact for run in stored_runs("small", "main", folder).values())


@pytest.mark.parametrize("text", ["", '{"runs": [{}]}'])
def test_json_that_describes_no_runs_is_named(folder, text):
    path = table_file(folder, "small", "main")
    write_table(RUNS, path)
    path.with_suffix(".json").write_text(text)
    with pytest.raises(ValueError, match=r"main.json does not describe the runs of a table .*: restore it"):
        stored_runs("small", "main", folder)


def test_missing_table_is_told(folder):
    with pytest.raises(FileNotFoundError, match=r"there is no .*main.csv; `python -m bilevel_book reproduce small`"):
        read("small", "main", folder)
    assert stored_runs("small", "main", folder) == {}


def test_stored_run_has_settings_end_and_environment(small, folder):
    (run,) = sweep(small, "smoke", labels=["FdeHBO, delta 1"])
    reproduce([run], folder, progress=False)
    facts = run.stored_in(folder).facts
    assert facts["run"] == run.as_json
    assert (facts["run"]["options"]["delta"], facts["run"]["options"]["r_v"]) == (1.0, "inf")
    assert (facts["stop"], facts["diverged_at"], facts["steps"], facts["threads"]) == ("steps", None, 20, 1)
    assert facts["versions"]["torch"] == torch.__version__
    assert {"python", "numpy", "bilevel_core"} <= facts["versions"].keys()
    assert facts["commit"] is None or len(facts["commit"].removesuffix("-dirty")) == 40
    assert facts["settings"] == repr(run.make_solver())  # with the defaults
    assert facts["cpu"]
    assert facts["wall_seconds"] > 0
    assert list(read(small, "main", folder).step) == [0, 5, 10, 15, 20]
