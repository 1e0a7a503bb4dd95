"""Reading: the file of an experiment, decoded once and checked key by key."""

import json
import math
import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from bilevel_book.experiments.checking import at, check_options, find, known, typed
from bilevel_book.experiments.ticks import steps_within
from bilevel_book.paths import Named, experiment_file, experiment_name
from bilevel_book.verdicts.selection import Options, at_trial, boxes_of
from bilevel_core.problem import BilevelProblem
from bilevel_core.runner import Budget
from bilevel_core.schedules import Power, Rule
from bilevel_core.solvers import Solver
from bilevel_core.solvers.base import Adam, Momentum, Normalised

RULES = ("wider boxes", "best trial")
JUDGING = "alone"  # the reading of the clock that judges; it decides how long runs are, too
MARGIN = 1.05  # so much longer are they, since the other readings may be a little quicker
STEP_RULES = {kind.__name__: kind for kind in (Adam, Momentum, Normalised)}
CALIBRATION = ".calibration.json"  # how the name of the file of costs ends
CLOCK = ".clock.json"  # likewise, of costs along a run
GROUP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)  # the name of a file in the folder of results


@dataclass(frozen=True)
class Method:
    """What a label stands for: a solver, its options, and what it changes in the problem."""

    solver: str
    options: Options
    problem: Options


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How stored trials decide a table of methods: from which table, and by the trials of which groups."""

    rule: str
    methods: str
    by: list[str]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs of one size: the table of their methods and which of them, what holds for all, and how long they run."""

    methods: str
    only: list[str]
    seeds: list[int]
    problem: Options = field(default_factory=dict)
    settings: Options = field(default_factory=dict)
    grid: bool = False
    trials: int = 0
    best: int | None = None
    by: list[str] = field(default_factory=list)
    time: float | None = None
    seconds: float | None = None
    steps: int | None = None
    gradients: float | None = None
    every: int | list[int] | None = None
    rows: int | None = None
    denser: bool = False

    def priced_as(self, label: str) -> str:
        """The name of a label in the calibration: what the group sets may change what a step costs."""
        return ", ".join([f"{self.methods}.{label}", *(f"{name} {value}" for name, value in self.settings.items())])

    def budget(self, calibration: Options, clock: Options, label: str) -> Options:
        """The budget of one method's runs, as `run` takes it: calibrated time and seconds of the clock become steps."""
        names = ("steps", "gradients", "every", "rows")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.time is not None:
            if (name := self.priced_as(label)) not in (costs := calibration.get("steps", {})):
                raise ValueError(f"there is no calibrated cost of {name}: run `python -m bilevel_book calibrate` first")
            given["steps"] = max(1, round(self.time / costs[name]["median"]))
        if self.seconds is not None:
            costs = clock.get(JUDGING, {}).get("costs", {})
            if (name := self.priced_as(label)) not in costs:
                raise ValueError(f"the clock has no {name}: run `python -m bilevel_book clock` first")
            given["steps"] = steps_within(costs[name], MARGIN * self.seconds)
        if self.denser:
            given["denser"] = True
        return given | ({"prices": calibration["prices"]} if self.gradients is not None else {})


def with_denser_rows(budget: Options) -> Options:
    """A budget as `run` takes it: denser rows are those at steps N (k / K)^2, for k = 1 ... K and N steps."""
    if not budget.get("denser"):
        return budget
    steps, rows = budget["steps"], budget["rows"]
    return {"steps": steps, "every": sorted({math.ceil(steps * (k / rows) ** 2) for k in range(1, rows + 1)})}


@dataclass(frozen=True)
class Experiment:
    """A file: the problem with its options, the columns of the report, tables of methods, rules, and groups by size."""

    name: str
    problem: str
    options: Options
    columns: list[str]
    tables: dict[str, dict[str, Method]]
    rules: dict[str, Choice]
    sizes: dict[str, dict[str, Group]]
    calibration: Options  # what `calibrate` stored beside the file, if it did
    clock: Options  # likewise `clock`, by reading


def load(experiment: Named, **options: Any) -> Experiment:
    """What the file of an experiment says, with these options of its problem in place of its own; an error names the
    place, what was given and what is allowed."""
    path = experiment_file(experiment)
    costs = [path.with_suffix(suffix) for suffix in (CALIBRATION, CLOCK)]
    with at(path.name):
        stored = (each.read_text(encoding="utf-8") if each.exists() else "{}" for each in costs)
        file = _decode(experiment_name(path), path.read_text(encoding="utf-8"), *stored)
        check_options(options, find(file.problem, BilevelProblem))
    return replace(file, options=file.options | options)


@lru_cache(maxsize=16)
def _decode(name: str, text: str, calibration: str, clock: str) -> Experiment:
    content = tomllib.loads(text)
    problem, options = _take(content, "problem", str), _take(content, "options", dict, {})
    columns, sizes = _take(content, "columns", list[str], []), _take(content, "sizes", dict)
    with at("problem"):
        owner = find(problem, BilevelProblem)
    with at("options"):
        check_options(options, owner)
    ruled = {table: content.pop(table) for table in [*content] if "rule" in typed(table, content[table], dict)}
    tables = {table: {label: _method(content, table, label, owner) for label in content[table]} for table in content}
    rules: dict[str, Choice] = {}
    stand_ins = dict(tables)  # what a rule will decide has the labels and the solvers of the table that it starts from
    for table, entry in ruled.items():
        with at(table):
            check_options(entry, Choice)
            rules[table] = rule = Choice(**entry)
            known(rule.rule, RULES, "rule")
            stand_ins[table] = stand_ins[known(rule.methods, stand_ins, "table of methods")]
    groups: dict[str, dict[str, Group]] = {size: {} for size in sizes}
    for size, plans in sizes.items():
        for group, plan in typed(size, plans, dict).items():
            groups[size][group] = _group(f"[sizes.{size}] {group}", group, plan, stand_ins, owner)
    return Experiment(
        name, problem, options, columns, tables, rules, groups, json.loads(calibration), json.loads(clock)
    )


def _take(table: Options, key: str, hint: Any, default: Any = None) -> Any:
    """Remove a key from a table; without a default it must be there."""
    return typed(key, table.pop(key, default), hint)


def _method(content: Options, table: str, label: str, problem: Any, *followed: str) -> Method:
    with at(f'[{table}."{label}"]'):
        entry, base = dict(typed(label, content[table][label], dict)), Method(label, {}, {})
        if "like" in entry:
            like = _take(entry, "like", str)
            like = f"main.{like}" if like in content.get("main", {}) else like
            others = [f"{name}.{other}" for name, entries in content.items() for other in entries]
            known(like, [other for other in others if other not in followed], "label in `like`")
            base = _method(content, *like.split(".", 1), problem, *followed, like)
        solver, changes = _take(entry, "solver", str, base.solver), _take(entry, "problem", dict, {})
        check_options(changes, problem)
        _check_settings(entry, solver)
        return Method(solver, base.options | entry, base.problem | changes)


def _group(place: str, name: str, plan: Any, tables: Mapping[str, Mapping[str, Method]], problem: type) -> Group:
    with at(place):
        if not GROUP_NAME.fullmatch(name):
            raise ValueError("the name of a group must be letters, digits, _ and -, as it names a file")
        given = {"methods": name, "only": [], "seeds": None} | typed(name, plan, dict)
        check_options(given, Group)
        table = tables[known(given["methods"], tables, "table of methods")]
        group = Group(**given | {"only": given["only"] or list(table)})
        _check_numbers(group)
        check_options(group.problem, problem)
        for label in group.only:
            method = table[known(label, table, "label in `only`")]
            _check_settings(group.settings, method.solver)
            of_integers = any(isinstance(box["low"], int) for box in boxes_of(method.options).values())
            if group.time and group.trials and of_integers:
                raise ValueError(f"a box of integers changes what a step of {label} costs: give gradients, not time")
        return group


def _check_numbers(group: Group) -> None:
    if not group.seeds:
        raise ValueError("seeds: got none, give at least one")
    if group.trials < 0:
        raise ValueError(f"trials must be at least 1, got {group.trials}")
    if (group.best is None) != (not group.by) or not 1 <= (group.best or 1) <= max(1, group.trials):
        raise ValueError(f"give `best` and `by` together, best from 1 to trials, got {group.best} by {group.by}")
    budgets = [name for name in ("steps", "gradients", "time", "seconds") if getattr(group, name) is not None]
    if len(budgets) != 1:
        raise ValueError(f"give one of steps, gradients, time or seconds, got {' and '.join(budgets) or 'none'}")
    if group.denser and not (group.rows and group.gradients is None):
        raise ValueError("denser rows need a number of rows, and a budget in steps, time or seconds")
    if group.time is None and group.seconds is None:  # else it has to be measured first
        Budget(**with_denser_rows(group.budget({"prices": {"Hv": 1.0, "Jv": 1.0}}, {}, "")))
    elif not (group.time or group.seconds or 0) > 0:
        raise ValueError(f"{budgets[0]} must be a positive number, got {group.time or group.seconds}")


def _check_settings(settings: Options, solver: str) -> None:
    for key, value in settings.items():
        for part in value if isinstance(value, list) else [at_trial({key: value}, 0)[key]]:  # a list is a grid
            check_options(with_schedules({key: part}), find(solver, Solver))


def with_schedules(options: Options) -> Options:
    """Options as a solver takes them: a table of the file is a schedule or a rule."""
    return {key: _schedule(**value) if isinstance(value, dict) else value for key, value in options.items()}


@dataclass(frozen=True)
class Steps:
    """values[k] from time at[k - 1] on: a step size that is cut at given times."""

    values: tuple[float, ...]
    at: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.at) + 1 or list(self.at) != sorted({*self.at}):
            raise ValueError(f"a Steps schedule needs increasing times, and one more value than times, got {self}")

    def __call__(self, t: int) -> float:
        return self.values[bisect_right(self.at, t)]


def _schedule(**given: Any) -> Power | Steps | Rule:
    if "rule" in given:
        kind = STEP_RULES[known(_take(given, "rule", str), STEP_RULES, "rule of steps")]
        check_options(given, kind)
        return kind(**given)
    if given.keys() == {"values", "at"}:
        return Steps(tuple(_take(given, "values", list[float])), tuple(_take(given, "at", list[int])))
    check_options(given, Power)
    return Power(**given)
