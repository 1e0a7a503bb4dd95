"""Tuning alike: from stored trials to the entries of an experiment's file that they decide.

    pilot             the best trial of each label in [boxes]; boxes whose edge it is near are wider in    [widened]
    tuning            the best (four) trials of each label are the `chosen` of the group                   finals
    tuning, finals    the best of them, by the median of their three seeds, is the `trial` in              [tuned]

The rules are in experiments/protocol.md; `python -m bilevel_book select NAME` prints what they give.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from functools import reduce
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bilevel_book.experiments import is_stored, load, read, sweep
from bilevel_book.experiments.files import at
from bilevel_book.files import experiment_file
from bilevel_book.stored import SIZE
from bilevel_book.verdicts.tuning import best, edges, scores

Options = dict[str, Any]
LOSS = "selection_loss"
FINALISTS = {"after-2023": 2}  # four elsewhere
DECIDED_BY = {"widened": ["pilot"], "finals": ["tuning"], "tuned": ["tuning", "finals"]}


class Choice(NamedTuple):
    """What the rule gives for one label, as the file has it, and why."""

    content: Any
    why: str


def in_file(experiment: str | os.PathLike[str]) -> Options:
    """The entries that the file has, of the three that stored runs decide."""
    content = tomllib.loads(experiment_file(experiment).read_text())
    chosen = content["sizes"].get(SIZE, {}).get("finals", {}).get("chosen")
    entries = {"widened": content.get("widened"), "finals": chosen, "tuned": content.get("tuned")}
    return {name: entry for name, entry in entries.items() if entry}


def by_rule(experiment: str | os.PathLike[str], entry: str, folder: Path, metric: str = LOSS) -> Options | list[str]:
    """One of the three entries as it must be, by the stored runs."""
    choices = choose(experiment, entry, folder, metric)
    if entry == "finals":
        return [trial for choice in choices.values() for trial in choice.content]
    return {label: choice.content for label, choice in choices.items()}


def missing(experiment: str | os.PathLike[str], entry: str, folder: Path) -> str | None:
    """What is yet to be run before an entry can be decided, if anything is."""
    file = load(experiment)
    plan = file.sizes.get(SIZE, {})
    for group in DECIDED_BY[entry]:
        if group not in plan:
            return f"{file.name} has no group {group} of size {SIZE}"
        runs = sweep(experiment, SIZE, [group])
        left = sum(not is_stored(run, folder / file.name / SIZE) for run in runs)
        if left or not runs:
            again = f"python -m bilevel_book reproduce {experiment} --size {SIZE} --group {group} --results {folder}"
            return f"{left} of the {len(runs)} runs of {group} are not stored: run `{again}` first"
    return None


def choose(experiment: str | os.PathLike[str], entry: str, folder: Path, metric: str = LOSS) -> dict[str, Choice]:
    """What the rule gives for an entry, by label. All runs that decide it must be stored."""
    if told := missing(experiment, entry, folder):
        raise ValueError(f"{entry} cannot be decided: {told}")
    groups, file = DECIDED_BY[entry], load(experiment)
    searched = "widened" if "widened" in file.tables else "boxes"
    trials = pd.concat([read(experiment, folder, SIZE, group) for group in groups])
    score = scores(trials, metric)
    settings = {run.label: run.options for run in sweep(experiment, SIZE, groups)}
    choices = {}
    for label, own in score.groupby(score.index.map(method_of), sort=False):
        with at(f"{groups[0]} of {label}"):
            first = best(own)
        ranked = own.sort_values(kind="stable")[: FINALISTS.get(file.name, 4)]
        told = ", ".join(f"trial {number_of(str(trial))}: {value:.4g}" for trial, value in ranked.items())
        if entry == "finals":
            choices[label] = Choice(list(ranked.index), told)
        elif entry == "tuned":
            choices[label] = Choice({"like": f"{searched}.{label}", "trial": number_of(first)}, told)
        else:
            method = file.tables["boxes"][label]
            boxes, moves = widened(method.solver, method.options, settings[first])
            why = ", ".join([f"trial {number_of(first)} is best: {own[first]:.4g}", *moves])
            choices[label] = Choice({"like": f"boxes.{label}"} | boxes, why)
    return choices


def method_of(trial: str) -> str:
    """The label of the method of a trial, "label, trial k"."""
    return trial.rsplit(", trial ", 1)[0]


def number_of(trial: str) -> int:
    return int(trial.rsplit(", trial ", 1)[1])


def widened(solver: str, options: Options, point: Options) -> tuple[Options, list[str]]:
    """The options of which a box is moved, since the point lies in its outer tenth, and the moves in words.

    An edge goes out by a factor of ten, for whole numbers of two, but not beyond what the method allows.
    """
    wider, moves = deepcopy(options), []
    ends = {name: (box["low"], box["high"]) for name, box in boxes_of(options)}
    for name, end in edges({name: inside(point, name) for name in ends}, ends).items():
        box = inside(wider, name)
        old, box[end] = box[end], moved(solver, wider, name, end)
        moves.append(f"{name} at its {end} end" + (", which the method allows no further" if box[end] == old else ""))
    return {key: value for key, value in wider.items() if value != options[key]}, moves


def moved(solver: str, options: Options, name: str, end: str) -> float:
    """An edge of a box, moved out as far as the method allows: eta <= 1, counts >= 1, and K <= inner in reverse."""
    box = inside(options, name)
    whole = isinstance(box["low"], int)
    least, most = 1 if whole else 0.0, 1.0 if name == "eta" else inf  # a schedule of eta has a cap of its own
    if solver == "reverse" and name == "inner":
        least = end_of(options["K"], "high")
    if solver == "reverse" and name == "K":
        most = end_of(options["inner"], "low")
    if end == "low":
        return max(box["low"] // 2 if whole else rounded(box["low"] / 10), least)
    return min(box["high"] * 2 if whole else rounded(box["high"] * 10), most)


def end_of(value: Options | int, end: str) -> int:
    """An end of a box, or the number itself where it is fixed."""
    return value[end] if isinstance(value, dict) else value


def rounded(value: float) -> float:
    """Without the last digits, where 0.003 / 10 is not 0.0003."""
    return float(f"{value:.12g}")


def boxes_of(options: Options, *path: str) -> Iterator[tuple[str, Options]]:
    """Every box { low, high } in the options with its name; that of a box inside a schedule is like eta.c."""
    for key, value in options.items():
        if isinstance(value, dict):
            name = (*path, key)
            if value.keys() == {"low", "high"}:
                yield ".".join(name), value
            else:
                yield from boxes_of(value, *name)


def inside(options: Options, name: str) -> Any:
    """What stands under a name as `boxes_of` gives it."""
    return reduce(lambda value, key: value[key], name.split("."), options)


def as_toml(entry: str, choices: dict[str, Choice]) -> str:
    """Choices as text for the experiment's file, each with its reason as a comment."""
    if entry == "finals":
        rows = (f"  {', '.join(map(json.dumps, choice.content))}, # {choice.why}" for choice in choices.values())
        return "\n".join(["chosen = [", *rows, "]\n"])
    return "\n".join(
        f"[{entry}.{_key(label)}] # {choice.why}\n"
        + "".join(f"{key} = {_value(value)}\n" for key, value in choice.content.items())
        for label, choice in choices.items()
    )


def _key(label: str) -> str:
    return label if re.fullmatch(r"[\w-]+", label, re.ASCII) else json.dumps(label)


def _value(value: Any) -> str:
    """A value of TOML; numbers as Python writes them."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(part)}' for key, part in value.items())} }}"
    return json.dumps(value) if isinstance(value, str | bool) else repr(value)
