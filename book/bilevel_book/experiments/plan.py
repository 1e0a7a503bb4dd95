"""What is to be run: the runs of an experiment."""

import hashlib
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from bilevel_book.experiments.boxes import Options, at_trial
from bilevel_book.experiments.checking import at, find_problem, find_solver, known, parameters
from bilevel_book.experiments.files import Experiment, Group, load, with_schedules
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers import Solver


@dataclass(frozen=True)
class Run:
    """One run of a sweep; everything in it is plain data, so that it can be compared, stored and sent to a worker."""

    experiment: str
    group: str
    label: str
    solver: str
    options: Options
    problem: str
    problem_options: Options
    seed: int
    budget: Options

    @property
    def name(self) -> str:
        """group/label_seed, as a file name."""
        return f"{self.group}/{re.sub(r'[^A-Za-z0-9.]+', '_', self.label).strip('_')}_{self.seed}"

    @cached_property
    def as_json(self) -> Options:
        """As it comes back from a JSON, which has no infinity."""
        return json.loads(json.dumps(asdict(self)), parse_constant=lambda constant: "inf")

    @cached_property
    def fingerprint(self) -> str:
        """Changes with anything that changes the run."""
        return hashlib.sha256(json.dumps(self.as_json).encode()).hexdigest()[:12]

    def make_solver(self) -> Solver[Any]:
        return find_solver(self.solver)(**with_schedules(self.options))

    def make_problem(self) -> BilevelProblem:
        needs_seed = "seed" in parameters(find_problem(self.problem))
        options = ({"seed": self.seed} if needs_seed else {}) | self.problem_options
        return _problem(self.problem, json.dumps(options))


@lru_cache(maxsize=2)
def _problem(name: str, options: str) -> BilevelProblem:
    return find_problem(name)(**json.loads(options))


def paper_settings(experiment: str, solver: str) -> Options:
    """The keyword arguments of a method in the main comparison of an experiment.

    What the paper states is as it states it; for the rest the experiment's file says what was chosen and why.
    """
    main = load(experiment).tables["main"]
    return with_schedules(main[known(solver, main, f"method of {experiment}")].options)


def sweep(
    experiment: str | os.PathLike[str], size: str, groups: list[str] | None = None, labels: list[str] | None = None
) -> list[Run]:
    """All runs of an experiment at one size, or those of some groups and labels, each checked before any is started."""
    file = load(experiment)
    plan = file.sizes[known(size, file.sizes, f"size of {file.name}")]
    chosen = [known(group, plan, f"group of {file.name}, size {size},") for group in groups or plan]
    runs = [run for name in plan if name in chosen for run in _runs(file, size, name)]
    for run in runs:
        with at(f"{file.name}, {run.group}, {run.label}"):
            run.make_solver()
    for name, count in Counter(run.name for run in runs).items():
        if count > 1:
            raise ValueError(f"{count} runs of {file.name} would be stored as {name}: give them other labels")
    for label in labels or []:
        known(label, dict.fromkeys(run.label for run in runs), f"label of {file.name}, size {size},")
    return [run for run in runs if not labels or run.label in labels]


def _runs(file: Experiment, size: str, name: str) -> Iterator[Run]:
    group = file.sizes[size][name]
    for seed, label in itertools.product(group.seeds, group.only):
        run = replace(run_of(file, group, label), group=name, seed=seed, budget=_budget(file, size, group, label))
        for full, options in _variants(label, run.options, group):
            if group.chosen is None or full in group.chosen:
                yield replace(run, label=full, options=options)


def run_of(file: Experiment, group: Group, label: str) -> Run:
    """What all runs of a label in a group share."""
    method = file.tables[group.methods][label]
    problem = file.options | method.problem | group.problem
    return Run(file.name, "", label, method.solver, method.options | group.settings, file.problem, problem, 0, {})


def _budget(file: Experiment, size: str, group: Group, label: str) -> Options:
    try:
        return group.budget(file.calibration, label)
    except KeyError as missing:
        command = f"python -m bilevel_book calibrate {file.name} --size {size}"
        raise ValueError(f"{file.name} is not calibrated for {missing}: run `{command}` first") from missing


def _variants(label: str, options: Options, group: Group) -> Iterator[tuple[str, Options]]:
    """One (label, options), or one for every trial, or for every combination of the values in lists."""
    if group.trials:
        yield from ((f"{label}, trial {k}", at_trial(options, k)) for k in range(group.trials))
    elif group.grid:
        lists = {key: value for key, value in options.items() if isinstance(value, list)}
        for values in itertools.product(*lists.values()):
            chosen = dict(zip(lists, values, strict=True))
            yield ", ".join([label, *(f"{key} {value}" for key, value in chosen.items())]), options | chosen
    else:
        yield label, options
