"""The command line of the book: `python -m bilevel_book verdicts NAME` judges what the paper claims."""

import argparse
import sys
from pathlib import Path

from bilevel_book import ledger
from bilevel_book.paths import RESULTS
from bilevel_core import experiments

JUDGED = ("hyper-representation", "hyper-cleaning")  # the experiments of the paper


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bilevel_book", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    judge = commands.add_parser("verdicts", help="print each claim with its numbers and its verdict")
    judge.add_argument("name", choices=JUDGED, help="the experiment")
    judge.add_argument(
        "--results", type=Path, default=RESULTS, help="where results are kept; default those of the book"
    )
    given = parser.parse_args(arguments)
    try:
        table = experiments.read(given.name, given.results, "full")
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    for claim in ledger.of_experiment(given.name, table):
        print(f"\n[{claim.verdict}] {claim.text} ({claim.where})\n    {claim.measure}: {claim.numbers}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
