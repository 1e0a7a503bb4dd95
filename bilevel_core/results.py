"""What a run gives back."""

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bilevel_core.solvers.base import State

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, float]


@dataclass(frozen=True, repr=False)
class Result:
    """The last finite state, the history, why the run stopped, and what looks wrong about it.

    `stop` is "steps", "seconds", "gradients", "diverged", "patience", "callback" or "interrupted"; `diverged_at` is the
    step whose iterate was not finite; `warnings` are sentences, none when all is well; `title` says who ran on what;
    `columns` are those of `evaluate`. If asked for: `best`, the state and row at its best; `refit`, with its warnings.
    """

    state: State
    history: "pd.DataFrame"
    stop: str
    diverged_at: int | None = None
    warnings: tuple[str, ...] = ()
    title: str = ""
    columns: tuple[str, ...] = ()
    best: tuple[State, Row] | None = None
    refit: Any = None

    def plot(self, column: str | None = None, against: str = "step") -> Any:
        """Draw a column, by default the first of `evaluate`, with matplotlib; returns its axes."""
        return self.history.plot(x=against, y=column or [*self.columns, "norm_v"][0])

    def __repr__(self) -> str:
        first, last = self.history.iloc[0], self.history.iloc[-1]
        numbers = [f"{name} {first[name]:.4g} -> {last[name]:.4g}" for name in self.columns[:1]]
        numbers += [f"{len(self.warnings)} in .warnings"] * bool(self.warnings)
        return f"<{self.title}, {last.step:.0f} steps, stop: {', '.join([self.stop, *numbers])}>"

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in (repr(self)[1:-1], *self.warnings))
        return words + self.history.iloc[[0, -1]].to_html(index=False)


@dataclass(frozen=True)
class Results:
    """The same run from several seeds."""

    runs: dict[int, Result]

    @property
    def table(self) -> "pd.DataFrame":
        """All rows, by seed and number."""
        import pandas as pd

        return pd.concat({seed: result.history for seed, result in self.runs.items()}, names=["seed", "row"])

    def over_seeds(self, how: str = "mean") -> "pd.DataFrame":
        """The mean (or "min", "max") over the seeds, row by row as far as every run got; nan where one diverged."""
        shortest = min(len(result.history) for result in self.runs.values())
        return self.table.groupby("row").agg(how, skipna=False).iloc[:shortest]
