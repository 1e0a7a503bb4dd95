"""What is to be run: the runs of an experiment. Where its file names a rule, stored trials decide."""

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from bilevel_book.experiments.checking import at, find, known, parameters
from bilevel_book.experiments.files import Experiment, Group, Method, load, with_denser_rows, with_schedules
from bilevel_book.experiments.tables import StoredRun, read, stored_runs
from bilevel_book.paths import RESULTS, Named
from bilevel_book.verdicts.selection import Options, at_trial, ranked, trial_label, widened
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers import Solver

FULL = "full"  # the size of the stored runs; smaller ones are for trying


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

    @property
    def budget_of_run(self) -> Options:
        """The budget as `run` takes it."""
        return with_denser_rows(self.budget)

    def make_solver(self) -> Solver[Any]:
        """The method, with the options of this run."""
        return find(self.solver, Solver)(**with_schedules(self.options))

    def make_problem(self) -> BilevelProblem:
        """The problem, drawn with the seed of this run if it takes one."""
        needs_seed = "seed" in parameters(find(self.problem, BilevelProblem))
        options = ({"seed": self.seed} if needs_seed else {}) | self.problem_options
        return _problem(self.problem, json.dumps(options))

    def stored_in(self, results: Path) -> StoredRun | None:
        """What is stored under the name of this run, with these settings or with others."""
        return stored_runs(self.experiment, self.group, results).get((self.label, self.seed))

    def is_stored(self, results: Path) -> bool:
        """Whether this very run, with these settings, is stored, and its rows are intact."""
        found = self.stored_in(results)
        return found is not None and found.is_intact and found.facts["run"] == self.as_json


@lru_cache(maxsize=2)
def _problem(name: str, options: str) -> BilevelProblem:
    try:
        return find(name, BilevelProblem)(**json.loads(options))
    except (RuntimeError, TypeError) as error:  # a size below 0, or too large for the memory
        raise ValueError(f"{name} cannot be made with {options}: {error!r}") from error


def paper_settings(experiment: str, solver: str) -> Options:
    """The keyword arguments of a method in the main comparison; the experiment's file says where they come from."""
    main = load(experiment).tables["main"]
    return with_schedules(main[known(solver, main, f"method of {experiment}")].options)


def sweep(
    experiment: Named,
    size: str = FULL,
    groups: list[str] | None = None,
    labels: list[str] | None = None,
    results: Path = RESULTS,
    **options: Any,
) -> list[Run]:
    """All runs of an experiment at one size, or of some groups and labels; trials stored in `results` decide some.
    Options are of the problem, in place of the file's."""
    plan = Plan(load(experiment, **options), size, results)
    chosen = [known(group, plan.groups, f"group of {plan.file.name}, size {size},") for group in groups or plan.groups]
    runs = [run for group in plan.groups if group in chosen for run in plan.runs(group)]
    for label in labels or []:
        known(label, dict.fromkeys(run.label for run in runs), f"label of {plan.file.name}, size {size},")
    return [run for run in runs if not labels or run.label in labels]


class MissingTrials(FileNotFoundError):
    """The trials that decide what to run are not stored yet."""


class Plan:
    """The runs of an experiment at one size, by group, and the methods that stored trials decide."""

    def __init__(self, file: Experiment, size: str = FULL, results: Path = RESULTS):
        self.file, self.results = file, results
        self.size, self.groups = size, file.sizes[known(size, file.sizes, f"size of {file.name}")]
        self.methods, self.runs, self.ranked = cache(self._methods), cache(self._runs), cache(self._ranked)

    def run_of(self, group: Group, label: str) -> Run:
        """What all runs of a label in a group share."""
        file, method = self.file, self.methods(group.methods)[label]
        problem = file.options | method.problem | group.problem
        return Run(file.name, "", label, method.solver, method.options | group.settings, file.problem, problem, 0, {})

    def missing(self, group: str) -> list[Run]:
        """The runs of a group that are not stored."""
        return [run for run in self.runs(group) if not run.is_stored(self.results)]

    def _runs(self, name: str) -> list[Run]:
        group = self.groups[name]
        runs = []
        for seed, label in itertools.product(group.seeds, group.only):
            with at(f"{self.file.name}, {name}, {label}"):
                budget = group.budget(self.file.calibration, self.file.clock, label)
                run = replace(self.run_of(group, label), group=name, seed=seed, budget=budget)
                for full, options in self._variants(label, run.options, group):
                    runs.append(replace(run, label=full, options=options))
                    runs[-1].make_solver()
        common, count = Counter(run.name for run in runs).most_common(1)[0]
        if count > 1:
            raise ValueError(f"{count} runs of {self.file.name} have the name {common}: give them other labels")
        return runs

    def _variants(self, label: str, options: Options, group: Group) -> Iterator[tuple[str, Options]]:
        """One (label, options), or one for every trial, or for every combination of the values in lists."""
        if group.trials:
            chosen = self.ranked(*group.by)[label][: group.best] if group.by else range(group.trials)
            yield from ((trial_label(label, k), at_trial(options, k)) for k in sorted(chosen))
        elif group.grid:
            lists = {key: value for key, value in options.items() if isinstance(value, list)}
            for values in itertools.product(*lists.values()):
                changed = dict(zip(lists, values, strict=True))
                yield ", ".join([label, *(f"{key} {value}" for key, value in changed.items())]), options | changed
        else:
            yield label, options

    def _methods(self, table: str) -> dict[str, Method]:
        """The methods of a table: as the file has them, or as its rule and the stored trials give them."""
        if table not in self.file.rules:
            return self.file.tables[known(table, self.file.tables, "table of methods")]
        rule = self.file.rules[table]
        base, order = self.methods(rule.methods), self.ranked(*rule.by)
        decided = {}
        for label, method in base.items():
            best = at_trial(method.options, order.get(label, [0])[0])  # without a box there is nothing to choose
            wider = widened(method.solver, method.options, best) if rule.rule == "wider boxes" else best
            decided[label] = replace(method, options=wider)
        return decided

    def _ranked(self, *groups: str) -> dict[str, list[int]]:
        """The trials of each method in these groups, the best first; all of them must be stored."""
        for group in groups:
            known(group, self.groups, f"group of {self.file.name}, size {self.size},")
            if missing := self.missing(group):
                raise MissingTrials(f"what to run is decided by trials: {self.told(group, missing)}")
        tables = [stored_runs(self.file.name, group, self.results).values() for group in groups]
        hashes = tuple(run.facts["sha256"] for table in tables for run in table)
        return _ranking(self.file.name, groups, self.results, hashes)

    def told(self, group: str, missing: list[Run]) -> str:
        """Which runs of a group are not stored, and what to do."""
        name, options = self.file.name, f"--size {self.size} --group {group} --results {self.results}"
        told = f"{len(missing)} of {len(self.runs(group))} runs of {name}, {group}, are not stored"
        return f"{told}, the first is {missing[0].name}: run `python -m bilevel_book reproduce {name} {options}` first"


@lru_cache(maxsize=64)
def _ranking(experiment: str, groups: tuple[str, ...], results: Path, hashes: tuple[str, ...]) -> dict[str, list[int]]:
    return ranked(pd.concat([with_ends(experiment, group, results) for group in groups]))


def with_ends(experiment: str, group: str, results: Path = RESULTS) -> pd.DataFrame:
    """The stored histories of a group, and how each run ended: solver, stop, diverged_at."""
    facts = [run.facts for run in stored_runs(experiment, group, results).values()]
    named = [{name: each["run"][name] for name in ("label", "seed", "solver")} for each in facts]
    ends = pd.DataFrame(named).assign(**{name: [each[name] for each in facts] for name in ("stop", "diverged_at")})
    return read(experiment, group, results).merge(ends, on=["label", "seed"], how="left")
