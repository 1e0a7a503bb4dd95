"""Experiments: a TOML file describes a sweep of runs; the runs of a group end as a table, GROUP.csv and GROUP.json.

A file has one table of methods for each group of runs, and says for each size which groups are run and how long:

    problem = "HyperRepresentation"
    options = { batch_size = 256 }                          # of the problem
    columns = ["upper_loss"]                                # what the report shows
    tuned = { rule = "best trial", methods = "boxes", by = ["tuning", "finals"] }   # a table that stored trials decide
    [sizes.full]
    main = { time = 300, seeds = [0, 1, 2] }                # or steps, or gradients; every and rows as in `run`
    slow = { methods = "main", only = ["FdeHBO"], settings = { alpha = 0.001 }, steps = 100, seeds = [0] }
    held_out = { methods = "main", problem = { held_out = true }, time = 120, seeds = [0] }
    tuning = { methods = "boxes", trials = 24, gradients = 4000, seeds = [100] }
    finals = { methods = "boxes", trials = 24, best = 4, by = ["tuning"], gradients = 4000, seeds = [101, 102] }
    tuned = { gradients = 4000, seeds = [0, 1, 2] }
    grid = { steps = 100, seeds = [100], grid = true }      # lists of values: every combination is a run
    [main.FdeHBO]                                           # a label; the solver of that name, or `solver = ...`
    alpha = 0.008
    [main."FdeHBO, delta 1"]
    like = "FdeHBO"                                         # the options of that label in `main`, then changed
    delta = 1.0
    [boxes.FdeHBO]
    like = "main.FdeHBO"                                    # a label of another table
    alpha = { low = 1e-3, high = 1.0 }                      # trial k has the k-th Sobol point of all boxes

`time` is in calibrated seconds: steps = time / the median cost of a step of that method (see `calibrate`), so that a
run is the same under any load. `gradients` counts H v and J v at their calibrated prices. What a group says of the
problem or of the settings holds for all its methods. The rule "best trial" takes for each method the trial with the
lowest score, and "wider boxes" moves the edges out that the best trial lies near; a group with `best` repeats the best
trials with other seeds. A rate may be a schedule: a table with c, w, p, cap is a Power, one with values, at are Steps;
a step may be a rule: { rule = "Adam", rate = 0.01 }.
Problems that draw their data from a `seed` get the seed of the run. A problem is one of the book's and a solver one of
`bilevel_book.methods.SOLVERS`, or either is "package.module:Class".
"""

from bilevel_book.experiments.calibration import calibrate
from bilevel_book.experiments.files import Experiment, load
from bilevel_book.experiments.plan import FULL, Plan, Run, paper_settings, sweep
from bilevel_book.experiments.report import report, runs_of
from bilevel_book.experiments.running import reproduce
from bilevel_book.experiments.tables import read
from bilevel_book.experiments.verification import verify

__all__ = [
    "FULL", "Experiment", "Plan", "Run", "calibrate", "load", "paper_settings", "read", "report", "reproduce",
    "runs_of", "sweep", "verify",
]  # fmt: skip
