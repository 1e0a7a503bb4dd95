"""Experiments: a TOML file describes a sweep of runs; every run ends as a CSV (its history) and a JSON (all about it).

A file has one table of methods for each group of runs, and says for each size which groups are run and how long:

    problem = "HyperRepresentation"
    options = { batch_size = 256 }                          # of the problem
    [sizes.full]
    main = { seconds = 300, seeds = [0, 1, 2] }             # or steps; every and rows as in `run`
    held_out = { methods = "main", problem = { held_out = true }, seconds = 120, seeds = [0] }
    tuning = { seconds = 60, seeds = [100], grid = true }   # lists of values: every combination is a run
    [main.FdeHBO]                                           # a label; the solver of that name, or `solver = ...`
    alpha = 0.008
    [main."FdeHBO, delta 1"]
    like = "FdeHBO"                                         # the options of that label in `main`, then changed
    delta = 1.0

A rate may be a schedule: { c, w, p, cap } is a Power, { values, at } are Steps. Problems that draw their data from a
`seed` get the seed of the run.
"""

import hashlib
import inspect
import itertools
import json
import os
import platform
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

import bilevel_core
from bilevel_core import problems
from bilevel_core.files import write_atomically
from bilevel_core.problem import BilevelProblem
from bilevel_core.runner import Result, run
from bilevel_core.schedules import Power, Steps
from bilevel_core.solvers import SOLVERS, Solver

BUDGET = ("steps", "seconds", "every", "rows")


@dataclass(frozen=True)
class Run:
    """One run of a sweep; everything in it is plain data, so that it can be compared, stored and sent to a worker."""

    experiment: str
    group: str
    label: str
    solver: str
    options: dict[str, Any]
    problem: str
    problem_options: dict[str, Any]
    seed: int
    budget: dict[str, Any]

    @property
    def name(self) -> str:
        """group/label_seed, as a file name."""
        return f"{self.group}/{re.sub(r'[^A-Za-z0-9.]+', '_', self.label).strip('_')}_{self.seed}"

    @cached_property
    def fingerprint(self) -> str:
        """Changes with anything that changes the run."""
        return hashlib.sha256(self.as_json().encode()).hexdigest()[:12]

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1).replace(": Infinity", ': "inf"')  # JSON has no infinity

    def make_solver(self) -> Solver:
        return SOLVERS[self.solver](**{name: _rate(value) for name, value in self.options.items()})

    def make_problem(self) -> BilevelProblem:
        given = dict(self.problem_options)
        if "seed" in inspect.signature(getattr(problems, self.problem)).parameters:
            given.setdefault("seed", self.seed)
        return _problem(self.problem, tuple(given.items()))


def names() -> list[str]:
    """The experiments there are."""
    return sorted(path.stem.replace("_", "-") for path in _folder().glob("*.toml"))


def load(experiment: str) -> dict[str, Any]:
    """The TOML file of an experiment, as it stands."""
    if experiment not in names():
        raise ValueError(f"unknown experiment {experiment!r}; known are {', '.join(names())}")
    return tomllib.loads((_folder() / f"{experiment.replace('-', '_')}.toml").read_text())


def paper_settings(experiment: str, solver: str) -> dict[str, Any]:
    """The keyword arguments of a method in the main comparison of an experiment.

    What the paper states is as it states it; for the rest the experiment's file says what was chosen and why.
    """
    main = load(experiment)["main"]
    if solver not in main:
        raise ValueError(f"{experiment} has no {solver!r}; it compares {', '.join(map(repr, main))}")
    return {name: _rate(value) for name, value in _entry(main, main, solver)[1].items()}


def sweep(experiment: str, size: str, groups: list[str] | None = None, labels: list[str] | None = None) -> list[Run]:
    """All runs of an experiment at one size, or those of some groups and labels, each checked before any is started."""
    file = load(experiment)
    if size not in file["sizes"]:
        raise ValueError(f"{experiment} has no size {size!r}; it has {', '.join(file['sizes'])}")
    for group in groups or []:
        if group not in file["sizes"][size]:
            raise ValueError(
                f"size {size} of {experiment} has no group {group!r}; it has {', '.join(file['sizes'][size])}"
            )
    runs = [one for group in file["sizes"][size] for one in _group(experiment, file, size, group)]
    for label in labels or []:
        if label not in {one.label for one in runs}:
            raise ValueError(f"no run of {experiment} is labelled {label!r}")
    for name, count in Counter(one.name for one in runs).items():
        if count > 1:
            raise ValueError(f"{count} runs of {experiment} would be stored as {name}: give them other labels")
    for one in runs:
        one.make_solver()
    return [one for one in runs if one.group in (groups or [one.group]) and one.label in (labels or [one.label])]


def _group(experiment: str, file: dict, size: str, group: str) -> Iterator[Run]:
    plan = dict(file["sizes"][size][group])
    table, seeds = file[plan.pop("methods", group)], plan.pop("seeds")
    shared, grid = file.get("options", {}) | plan.pop("problem", {}), plan.pop("grid", False)
    only = plan.pop("only", list(table))
    if unknown := set(plan) - set(BUDGET):
        raise ValueError(f"{experiment}, size {size}, group {group}: unknown {', '.join(sorted(unknown))}")
    parameters = inspect.signature(getattr(problems, file["problem"])).parameters
    for seed, name in itertools.product(seeds, only):
        solver, options, changed = _entry(table, file["main"], name)
        if unknown := set(shared | changed) - set(parameters):
            raise ValueError(f"{file['problem']} has no {', '.join(sorted(unknown))}; it has {', '.join(parameters)}")
        for label, chosen in _combinations(name, options) if grid else [(name, options)]:
            yield Run(experiment, group, label, solver, chosen, file["problem"], shared | changed, seed, plan)


def _entry(table: dict, main: dict, label: str) -> tuple[str, dict, dict]:
    """The solver, its options and the problem's, of one label."""
    entry = dict(table[label])
    solver, options, problem = label, {}, {}
    if "like" in entry:
        solver, options, problem = _entry(main, main, entry.pop("like"))
    return (
        entry.pop("solver", solver),
        options | {k: v for k, v in entry.items() if k != "problem"},
        problem | entry.get("problem", {}),
    )


def _combinations(name: str, options: dict) -> Iterator[tuple[str, dict]]:
    """One (label, options) for every combination of the values in lists."""
    lists = {key: value for key, value in options.items() if isinstance(value, list)}
    for values in itertools.product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        yield ", ".join([name, *(f"{key} {value}" for key, value in chosen.items())]), options | chosen


def _rate(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return Steps(tuple(value["values"]), tuple(value["at"])) if "values" in value else Power(**value)


@lru_cache(maxsize=2)
def _problem(name: str, options: tuple[tuple[str, Any], ...]) -> BilevelProblem:
    return getattr(problems, name)(**dict(options))


def _folder() -> Path:
    """Where the TOML files are: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parent
    return next(p for p in (package / "configurations", package.parent / "experiments") if p.is_dir())


def results_folder() -> Path:
    """`results` beside the package in a checkout, in the current folder otherwise."""
    root = Path(__file__).resolve().parent.parent
    return (root if (root / "experiments").is_dir() else Path.cwd()) / "results"


# Running


def reproduce(
    runs: list[Run], folder: Path, jobs: int = 1, dask: str | None = None, progress: bool = True
) -> list[Run]:
    """Do every run that is not yet stored in `folder`; returns those that were done.

    `jobs` processes share them, each on one thread; with `dask`, the workers of the cluster at that address do. The
    results come back to this process, which alone writes them. A run that is interrupted leaves a checkpoint with its
    worker, and resumes from there.
    """
    waiting = [one for one in runs if not is_stored(one, folder)]
    with ExitStack() as stack:
        if dask is not None:
            from dask.distributed import Client

            stack.enter_context(Client(dask))
            stack.enter_context(joblib.parallel_config(backend="dask"))
        else:
            stack.enter_context(joblib.parallel_config(backend="loky", n_jobs=jobs))
        bar = stack.enter_context(
            tqdm(total=len(runs), initial=len(runs) - len(waiting), unit="run", disable=not progress, smoothing=0)
        )
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        for one, history, about in parallel(joblib.delayed(perform)(one, str(folder)) for one in waiting):
            store(one, history, about, folder)
            bar.update()
            bar.set_postfix_str(f"{one.name}: {about['stop']}")
    return waiting


def perform(one: Run, folder: str) -> tuple[Run, pd.DataFrame, dict[str, Any]]:
    """Do one run, on one thread, from its checkpoint if there is one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    checkpoint = Path(folder) / f"{one.name}.{one.fingerprint}.ckpt"
    try:
        result = run(
            one.make_problem(), one.make_solver(), one.seed, **one.budget, progress=False, checkpoint=checkpoint
        )
    finally:
        torch.set_num_threads(threads)
    if result.stop == "interrupted":
        raise KeyboardInterrupt
    return one, result.history, _about(result)


def _about(result: Result) -> dict[str, Any]:
    last = result.history.iloc[-1]
    return {
        "stop": result.stop,
        "diverged_at": result.diverged_at,
        "steps": int(last.step),
        "cpu_seconds": round(float(last.cpu_seconds), 3),
        "wall_seconds": round(float(last.wall_seconds), 3),
        "threads": 1,
        "cpu": _cpu(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "bilevel_core": bilevel_core.__version__,
        },
    }


def _cpu() -> str:
    """The name of the processor, as far as the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"model name\s*:\s*(.+)", text)
    return f"{found.group(1) if found else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


# Results on disk


def store(one: Run, history: pd.DataFrame, about: dict[str, Any], folder: Path) -> None:
    """The CSV first: a JSON that is there vouches for the CSV beside it."""
    write_atomically(folder / f"{one.name}.csv", history.to_csv(index=False, float_format="%.6g").encode())
    content = {"run": json.loads(one.as_json())} | about
    write_atomically(folder / f"{one.name}.json", (json.dumps(content, indent=1) + "\n").encode())
    (folder / f"{one.name}.{one.fingerprint}.ckpt").unlink(missing_ok=True)


def is_stored(one: Run, folder: Path) -> bool:
    """Whether this very run, with these settings, is there."""
    path = folder / f"{one.name}.json"
    return path.exists() and json.loads(path.read_text())["run"] == json.loads(one.as_json())


def read(experiment: str, size: str = "full", group: str | None = None, folder: Path | None = None) -> pd.DataFrame:
    """The stored histories of an experiment as one long table, with columns group, label, solver, seed and stop.

    Only what the experiment's file describes today is read, in its order; a file left by other settings is not.
    """
    folder = (folder or results_folder()) / experiment / size
    tables = []
    for one in sweep(experiment, size, [group] if group else None):
        if is_stored(one, folder):
            about = json.loads((folder / f"{one.name}.json").read_text())
            named = {name: getattr(one, name) for name in ("group", "label", "solver", "seed")}
            table = pd.read_csv(folder / f"{one.name}.csv")
            tables.append(table.assign(**named, stop=about["stop"], diverged_at=about["diverged_at"]))
    if not tables:
        raise FileNotFoundError(
            f"no results in {folder}: run `python -m bilevel_core reproduce {experiment} --size {size}` first"
        )
    return pd.concat(tables, ignore_index=True)
