"""A method against itself, from the stored runs: a protocol that finds a winner there is broken."""

import pytest

from bilevel_book.verdicts import itself
from bilevel_book.verdicts.deciding import Verdict
from bilevel_book.verdicts.itself import against_itself
from bilevel_book.verdicts.sentences import complete


@pytest.mark.slow
@pytest.mark.parametrize("track", ["stated", "tuned"])
@pytest.mark.parametrize(("experiment", "seeds"), [("hyper-cleaning", 10), ("hyper-representation", 6)])
def test_a_method_is_neither_ahead_of_itself_nor_behind(experiment, seeds, track):
    found = against_itself(experiment, track)
    assert len(found) == 6  # three measures, two horizons
    assert set(found.n) == {seeds}
    assert not found["mean"].isna().any()  # all of it can be read
    assert set(found.verdict) <= {Verdict.ALIKE, Verdict.UNDECIDED}


@pytest.mark.slow
def test_it_would_be_told_from_one_that_ends_a_tenth_higher(monkeypatch):
    def higher(experiment, group):
        runs = complete(experiment, group)
        return runs.assign(train_loss=runs.train_loss * 1.1) if group == "again_tuned" else runs

    monkeypatch.setattr(itself, "complete", higher)
    found = against_itself("hyper-cleaning", "tuned")
    assert set(found.verdict[found.measure == "lower"]) == {Verdict.HOLDS}
