"""The command line: python -m bilevel_core reproduce | report | calibrate | verify NAME, or doctor."""

import argparse
import sys
from concurrent.futures import BrokenExecutor
from pathlib import Path

from bilevel_core.files import experiment_file, shipped_experiments


def parser() -> argparse.ArgumentParser:
    names = ", ".join(shipped_experiments())
    top = argparse.ArgumentParser(prog="python -m bilevel_core", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    both = argparse.ArgumentParser(add_help=False)
    both.add_argument("name", help=f"the experiment: {names}, or the path of a TOML file")
    both.add_argument("--size", default="smoke", help="smoke (a minute) or full (hours); default smoke")
    both.add_argument("--results", type=Path, default=Path("results"), help="where results are kept; default results")
    again = commands.add_parser("reproduce", parents=[both], help="do the runs that are not stored yet")
    again.add_argument("--dask", metavar="ADDRESS", help="a Dask cluster to do them; local: one of --jobs processes")
    commands.add_parser("report", parents=[both], help="print tables of the runs that are stored")
    commands.add_parser("calibrate", parents=[both], help="measure what a step of each method costs")
    check = commands.add_parser("verify", parents=[both], help="redo the first rows of the stored runs and compare")
    check.add_argument("--rows", type=int, default=1, help="how many rows after the start; default 1")
    for command in (again, check):
        command.add_argument("--jobs", type=int, default=1, help="how many runs side by side, each on one thread")
        command.add_argument("--group", action="append", help="only this group of runs (can be repeated)")
        command.add_argument("--label", action="append", help="only the runs of this label (can be repeated)")
    commands.add_parser("doctor", help="say what this installation has, what it lacks, and what to do")
    return top


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    try:
        if given.command == "doctor":
            from bilevel_core.doctor import report

            return report()
        do(given)
    except (ValueError, OSError, ImportError, BrokenExecutor) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def do(given: argparse.Namespace) -> None:
    experiment_file(given.name)  # what is wrong with the arguments is told before anything heavy is imported
    for name in ("jobs", "rows"):
        if (value := getattr(given, name, 1)) < 1:
            raise ValueError(f"--{name} must be at least 1, got {value}")
    from bilevel_core import experiments
    from bilevel_core.experiments import running

    if given.command == "report":
        return experiments.report(given.name, given.results, given.size)
    if given.command == "calibrate":
        return print(f"stored in {experiments.calibrate(given.name, given.size)}")
    runs = experiments.sweep(given.name, given.size, given.group, given.label)
    folder = given.results / experiments.load(given.name).name / given.size
    if given.command == "reproduce":
        done = experiments.reproduce(runs, folder, given.jobs, given.dask)
        return print(f"{len(done)} runs done, {len(runs) - len(done)} were there already, in {folder}")
    wrong = running.wrong(runs, folder, given.rows, given.jobs)
    print("\n".join([*wrong, f"{len(runs) - len(wrong)} of {len(runs)} runs in {folder} are as the code gives them"]))
    if wrong:
        raise ValueError(f"{len(wrong)} runs are not")


if __name__ == "__main__":
    sys.exit(main())
