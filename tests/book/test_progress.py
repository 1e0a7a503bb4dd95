from bilevel_book import progress


def test_a_bar_is_shown_to_who_waits_and_goes_at_the_end(monkeypatch):
    seen, clock = [], iter([0.0, 0.5, 2.0, 2.0, 2.1, 9.0, 9.0])
    monkeypatch.setenv("JPY_SESSION_NAME", "chapters/one.ipynb")
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(progress, "display", lambda bar: seen.append(bar.data))
    monkeypatch.setattr(progress, "clear_output", lambda wait=False: seen.append("cleared" if not wait else "redrawn"))
    assert list(progress.watch("abcd")) == ["a", "b", "c", "d"]
    bars = [f'<progress value="{k}" max="4">{k} of 4</progress> {k} of 4' for k in (1, 3)]
    assert seen == ["redrawn", bars[0], "redrawn", bars[1], "cleared"]


def test_where_nobody_looks_nothing_is_shown(monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "display", None)
    monkeypatch.setattr(progress, "clear_output", None)
    assert list(progress.watch(range(3))) == [0, 1, 2]
