"""Experiments: a TOML file describes a sweep of runs; every run ends as a CSV (its history) and a JSON (all about it).

A file has one table of methods for each group of runs, and says for each size which groups are run and how long:

    problem = "HyperRepresentation"
    options = { batch_size = 256 }                          # of the problem
    columns = ["upper_loss"]                                # what the report shows
    [sizes.full]
    main = { time = 300, seeds = [0, 1, 2] }                # or steps, or gradients; every and rows as in `run`
    slow = { methods = "main", only = ["FdeHBO"], settings = { alpha = 0.001 }, steps = 100, seeds = [0] }
    held_out = { methods = "main", problem = { held_out = true }, time = 120, seeds = [0] }
    tuning = { methods = "boxes", trials = 24, gradients = 4000, seeds = [100] }   # chosen = [...]: only these labels
    grid = { steps = 100, seeds = [100], grid = true }      # lists of values: every combination is a run
    [main.FdeHBO]                                           # a label; the solver of that name, or `solver = ...`
    alpha = 0.008
    [main."FdeHBO, delta 1"]
    like = "FdeHBO"                                         # the options of that label in `main`, then changed
    delta = 1.0
    [boxes.FdeHBO]
    like = "FdeHBO"
    alpha = { low = 1e-3, high = 1.0 }                      # trial k has the k-th Sobol point of all boxes
    [tuned.FdeHBO]
    like = "boxes.FdeHBO"                                   # a label of another table, here the settings of a trial
    trial = 7

`time` is in calibrated seconds: steps = time / the median cost of a step of that method (see `calibrate`), so that a
run is the same under any load. `gradients` counts H v and J v at their calibrated prices. What a group says of the
problem or of the settings holds for all its methods. A rate may be a schedule: a table with c, w, p, cap is a Power,
one with values, at are Steps. Problems that draw their data from a `seed` get the seed of the run. A problem is one of
`bilevel_core.problems` and a solver one of `SOLVERS`, or either is "package.module:Class".
"""

from bilevel_book.experiments.calibration import calibrate
from bilevel_book.experiments.files import Experiment, load, names
from bilevel_book.experiments.plan import Run, paper_settings, sweep
from bilevel_book.experiments.report import report
from bilevel_book.experiments.running import perform, reproduce, verify
from bilevel_book.experiments.storing import is_stored, read, store

__all__ = [
    "Experiment", "Run", "calibrate", "is_stored", "load", "names", "paper_settings", "perform", "read", "report",
    "reproduce", "store", "sweep", "verify",
]  # fmt: skip
