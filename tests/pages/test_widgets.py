"""Live widgets in Chromium: their runs are the library's, their sentences are true, and nothing that is given breaks
them."""

import math
import re
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import nbformat
import pytest
import torch
from torch.nn.functional import cross_entropy

import tools
from bilevel_book import widgets
from bilevel_book.digits import Digits
from bilevel_book.sliders import between, choice, explore
from bilevel_book.walk import walk
from bilevel_book.widgets.base import module
from bilevel_book.widgets.stored import VIEW, element, live
from bilevel_core import FdeHBO, hypergradient, run
from bilevel_core.directions import hessian_vector
from bilevel_core.problems import Quadratic, Valley
from bilevel_core.schedules import Power
from bilevel_core.solvers import SOLVERS
from pages.visit import barriers
from workshop import execute
from workshop.widgets import photograph

pytestmark = pytest.mark.browser
LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 800}
CALM = {"alpha": 0.03, "beta": 0.2, "lam": 0.2, "eta": 0.2, "delta": 0.1, "r_v": 0.5}
WILD = {"alpha": 0.3, "beta": 0.5, "lam": 0.8, "eta": 0.7, "delta": 0.5, "r_v": 3.0}
WALK = """([made, noise, method, options, seed, steps]) => {
    const problem = made.b ? new core.Quadratic(made, { noise }) : new core.Valley({ noise })
    for (const [name, rate] of Object.entries(options))
        if (rate.c) options[name] = core.power(rate.c, rate.w, rate.p, rate.cap)
    const states = core.walk(problem, method, options, { seed, steps })
    return states.map(state => [...state.x, ...state.y, ...state.v])
}"""
NUMBER = re.compile(r"−?\d+(?:\.\d+)?(?:·?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?")


@pytest.fixture(scope="module")
def tab(browser):
    context = browser.new_context(has_touch=True)
    context.set_offline(True)
    yield context.new_page()
    context.close()


@pytest.fixture
def show(tab, tmp_path):
    """A page on disk with one widget, and what its figure is."""

    def page(widget, address="", size=LAPTOP, **media):
        traits = {name: value for name, value in widget.get_state().items() if name != "layout"}
        body = f'<div style="max-width: 760px">{element(traits, "")}</div>'
        (tmp_path / "page.html").write_text(f'<!doctype html><meta charset="utf-8">{body}', encoding="utf-8")
        tab.set_viewport_size(size)
        tab.emulate_media(**{"reduced_motion": "reduce", "color_scheme": "light"} | media)
        tab.goto("about:blank")
        tab.goto(f"{(tmp_path / 'page.html').as_uri()}{address}")
        figure = tab.locator("figure.live:not([data-working])")
        figure.wait_for(timeout=60_000)
        return figure

    return page


def said(figure):
    return figure.locator("figcaption").inner_text()


def numbers(sentence):
    """The numbers of a sentence, with ten to a power as readers see it."""
    plain = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")
    found = []
    for text in NUMBER.findall(sentence):
        front, ten, power = text.replace("·", "").partition("10") if "·" in text or "10⁻" in text else (text, "", "")
        found.append(float(front.translate(plain) or 1) * 10.0 ** int(power.translate(plain) if ten else 0))
    return found


def told(figure, *expected, digits=3):
    """Whether the sentence has all these numbers, rounded as it rounds."""
    there = numbers(said(figure))
    missing = [n for n in expected if not any(abs(n - m) <= 0.51 * 10 ** (1 - digits) * abs(n) for m in there)]
    assert not missing, f"{missing} not in: {said(figure)}"


def value(figure, trait):
    return figure.evaluate("(figure, trait) => figure.model.get(trait)", trait)


def change(figure, **traits):
    figure.evaluate(
        "({ model }, all) => { Object.entries(all).forEach(one => model.set(...one)); model.save_changes() }", traits
    )


# ------------------------------------------------------------------------------------------------- the twin

PROBLEMS = {
    "Valley": (lambda noise: Valley(noise=noise), lambda: {}),
    "Quadratic(3)": (lambda noise: Quadratic(3, 3, noise=noise), lambda: made(3)),
    "Quadratic(10)": (lambda noise: Quadratic(10, 10, noise=noise), lambda: made(10)),
}


def made(n):
    class Sized(widgets.Race):
        size = n, n

    return Sized().made


@pytest.fixture(scope="module")
def core(browser):
    page = browser.new_page()
    names = "walk, power, Valley, Quadratic"
    page.add_script_tag(type="module", content=f"{module('core')}\nwindow.core = {{ {names} }};")
    page.wait_for_function("window.core")
    yield page
    page.close()


def taken(method, options):
    """The options that a method has; in widgets delta is FdeHBO's alone."""
    fields = {*SOLVERS[method].__dataclass_fields__} - (set() if method == "FdeHBO" else {"delta"})
    return {name: value for name, value in options.items() if name in fields}


def furthest(core, problem, method, options, seed, steps, noise=0.3):
    """The largest difference between the page's run and the library's, in numbers above 1 relative to them."""
    library, drawn = PROBLEMS[problem]
    given = taken(method, options)
    states = walk(library(noise), SOLVERS[method](**given), steps, seed)
    plain = {k: {**vars(v), "cap": min(v.cap, 1e9)} if isinstance(v, Power) else v for k, v in given.items()}
    found = torch.tensor(core.evaluate(WALK, [drawn(), noise, method, plain, seed, steps]), dtype=torch.float64)
    assert len(found) == steps + 1
    theirs = torch.stack([torch.cat((s.x, s.y, s.v)) for s in states])
    return ((found - theirs) / theirs.abs().clamp_min(1)).abs().max().item()


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("method", SOLVERS)
def test_a_run_in_the_page_is_the_run_of_the_library(core, problem, method):
    assert max(furthest(core, problem, method, CALM, seed, 1000) for seed in range(5)) < 1e-10
    assert max(furthest(core, problem, method, WILD, seed, 50, noise=0.5) for seed in range(5)) < 1e-10


@pytest.mark.parametrize("method", SOLVERS)
def test_schedules_and_large_seeds_are_the_library_s(core, method):
    schedules = (
        CALM | {name: Power(0.5) for name in ("alpha", "beta", "lam")} | {"eta": Power(1.0, 7.0, 2 / 3, cap=1.0)}
    )
    assert furthest(core, "Quadratic(3)", method, schedules, 4_294_967_301, 50) < 1e-10


# ------------------------------------------------------------------------------------ what the sentences say


def ended(method="FdeHBO", problem=None, steps=300, seed=0, **options):
    """The last state of a run of the library."""
    return walk(problem, SOLVERS[method](**taken(method, options)), steps, seed)[-1]


@pytest.mark.parametrize("method", SOLVERS)
def test_valley_tells_where_the_library_ends(show, method):
    figure, given = show(widgets.Valley(method=method, seed=3)), {"alpha": 0.03, "beta": 0.3, "lam": 0.3, "eta": 0.3}
    given |= {"delta": 0.1, "r_v": 2.0}
    problem = Valley(noise=0.05)
    end = ended(method, problem, 300, 3, **given)
    path = value(figure, "path")
    assert [len(path[z]) for z in "xyv"] == [301] * 3
    assert [path[z][-1] for z in "xyv"] == pytest.approx([end.x.item(), end.y.item(), end.v.item()], abs=1e-12)
    slope = problem.hypergradient(end.x).item()
    told(figure, 300, end.x.item(), slope, problem.c * (end.x.item() - problem.b))
    figure.get_by_text("Copy as Python").click()
    lines, spoken = figure.locator("pre").inner_text(), []
    exec(lines, {"print": lambda *numbers: spoken.extend(numbers)})
    assert spoken == pytest.approx([end.x.item(), end.y.item(), end.v.item()], abs=1e-12)
    change(figure, seed=4)
    assert "seed=4" in figure.locator("pre").inner_text()


def test_everything_ranks_four_methods(show):
    figure = show(widgets.Everything(method="alternating", alpha=0.02, noise=0.2, seed=5))
    options = {"alpha": 0.02, "beta": 0.3, "lam": 0.3, "eta": 0.3, "delta": 0.1, "r_v": 2.0}
    problem = Valley(noise=0.2)
    ends = {name: problem.hypergradient(ended(name, problem, 300, 5, **options).x).item() for name in SOLVERS}
    best = min(ends, key=lambda name: abs(ends[name]))
    told(figure, abs(ends["alternating"]), abs(ends[best]))
    assert f"{best} is lowest" in said(figure)


@pytest.mark.parametrize(("dtype", "delta"), [("float32", 0.3), ("float64", 0.3), ("float64", 1e-3)])
def test_delta_sees_what_the_library_sees(show, dtype, delta):
    kind = getattr(torch, dtype)
    figure = show(widgets.Delta(dtype=dtype, delta=delta, v=2.0))
    x, y, v = (torch.tensor([number], dtype=kind) for number in (-0.6, 0.7, 2.0))
    seen, exact = (hessian_vector(Valley(dtype=kind), x, y, v, 0.0, d).item() for d in (delta, None))
    told(figure, seen, exact, digits=6)
    told(figure, abs(seen / exact - 1), digits=2)


def test_rounding_in_the_page_has_the_size_that_it_has_in_torch(show):
    """Not the same digits: the two have other functions sinh."""
    figure = show(widgets.Delta(delta=1e-5))
    y = torch.linspace(0.5, 0.9, 60)
    errors = [
        figure.evaluate("(f, y) => (f.model.set('y0', y), f.model.get('path').error)", each) for each in y.tolist()
    ]
    ones = torch.ones(1)
    seen = [
        hessian_vector(Valley(dtype=torch.float32), -0.6 * ones, each * ones, ones, 0.0, 1e-5).double() for each in y
    ]
    theirs = torch.stack([abs(h[0] / torch.cosh(each.double()) - 1) for h, each in zip(seen, y, strict=True)])
    assert 0.5 < (torch.tensor(errors).square().mean() / theirs.square().mean()).sqrt() < 2


def test_ball_holds_v_and_tells_both_ends(show):
    problem = Quadratic(1, 2, seed=10, noise=1.0)
    options = {"alpha": 0.1, "beta": 0.3, "lam": 0.6, "eta": 0.3, "delta": 0.01}
    figure = show(widgets.Ball(lam=0.6, noise=1.0, r_v=1.4))
    kept, free = (ended("FdeHBO", problem, 200, 0, r_v=radius, **options) for radius in (1.4, float("inf")))
    told(figure, *(problem.hypergradient(end.x).norm().item() for end in (kept, free)), digits=2)
    assert "cuts off" in said(figure)


def test_bowl_says_when_the_step_is_too_long(show):
    figure = show(widgets.Bowl(L=5, lam=0.3))
    told(figure, 0.4, 0.7)  # 2 / L, and the largest |1 - lam nu|
    v = torch.tensor(value(figure, "path")["v"], dtype=torch.float64)
    c, s = torch.tensor([math.cos(0.5), math.sin(0.5)], dtype=torch.float64)
    turn = torch.stack((torch.stack((c, -s)), torch.stack((s, c))))
    H, b = turn @ torch.diag(torch.tensor([1.0, 5.0]).double()) @ turn.T, torch.tensor([1.0, 2.0]).double()
    assert torch.allclose(v[1:], v[:-1] - 0.3 * (v[:-1] @ H - b))
    for lam, word in ((0.1, "bends"), (0.3, "zigzags"), (0.4, "for ever"), (0.5, "further and further")):
        change(figure, lam=lam)
        assert word in said(figure)


def test_hypergradient_by_three_ways(show):
    figure = show(widgets.Hypergradient(x0=1.1, steps=4, beta=0.2, delta=0.5))
    x, valley = torch.tensor([1.1], dtype=torch.float64, requires_grad=True), Valley()
    y = torch.zeros_like(x)
    for _ in range(4):
        y = y - 0.2 * (torch.sinh(y) - valley.s(x))
    (through,) = torch.autograd.grad(valley.upper(x, y, 0.0), x)
    phi = [valley.objective(x.detach() + h).item() for h in (0.5, -0.5)]
    formula = hypergradient(valley, x.detach()).gradient.item()
    told(figure, valley.c * (1.1 - valley.b), formula, through.item(), phi[0] - phi[1])


def test_momentum_has_the_errors_of_chapter_6(show):
    eta, s, noise = 0.2, 0.3, 0.5
    figure, average, recursive = show(widgets.Momentum(eta=eta, s=s, seed=7)), None, None
    generator, path = torch.Generator().manual_seed(7), value(figure, "path")
    angle = 2 * math.asin(s / 2) * torch.arange(101).double()
    z = torch.stack((torch.cos(angle), torch.sin(angle)), 1)
    variance, lag, mean_square = 2 * noise**2, torch.zeros(2).double(), 2 * noise**2
    for t in range(101):
        M, n = (torch.randn(shape, generator=generator, dtype=torch.float64) / 2**0.5 for shape in ((2, 2), (2,)))
        now, before = (at + noise * M @ at + noise * n for at in (z[t], z[t - 1]))
        average, recursive = (
            (eta * now + (1 - eta) * average, now + (1 - eta) * (recursive - before)) if t else (now, now)
        )
        for name, estimate in {"plain": now, "average": average, "recursive": recursive}.items():
            assert path[name][t] == pytest.approx(estimate.tolist(), abs=1e-12)
        if t:
            variance = (1 - eta) ** 2 * variance + 2 * (eta * noise) ** 2
            lag = (1 - eta) * (lag - (z[t] - z[t - 1]))
            drift = (z[t] - (1 - eta) * z[t - 1]).square().sum().item()
            mean_square = (1 - eta) ** 2 * mean_square + noise**2 * (eta**2 + drift)
    exact = 2**0.5 * noise, (variance + lag.square().sum().item()) ** 0.5, mean_square**0.5
    assert numbers(said(figure))[-3:] == pytest.approx(exact, rel=0.05)  # 200 seeds and 20 steps


def test_race_spends_what_the_library_counts(show):
    figure = show(widgets.Race(price=3.5, budget=700, L=8, seed=2))
    options = {"alpha": 0.1, "beta": 0.2, "lam": 0.2, "eta": 0.1, "delta": 0.01}
    assert "0.01" in figure.locator(".live-axes").first.locator("text").all_text_contents()  # the track has a scale
    problem, path = Quadratic(L=8.0, noise=0.3), value(figure, "path")
    least = problem.objective(problem.minimiser).item()
    for name in SOLVERS:
        solver = SOLVERS[name](**taken(name, options))
        found = run(
            problem, solver, seed=2, gradients=700, prices={"Hv": 3.5, "Jv": 3.5}, every=1, progress=False
        ).history
        spent, gap = found.gradients + 3.5 * (found.Hv + found.Jv), found.objective - least
        count = len(path[name]["spent"])
        assert len(found) - count in (0, 1)  # the library's last step may go over the budget
        assert path[name]["spent"] == pytest.approx(spent[:count].tolist())
        assert path[name]["gap"] == pytest.approx(gap[:count].tolist(), abs=1e-10)


@pytest.mark.slow
def test_slopes_averages_the_library_s_runs(show):
    figure = show(widgets.Slopes(p=0.4, q=0.8, seed=3))
    path = value(figure, "path")
    steps, theirs = Power(1.0, 4.0, 0.4), Power(1.0, 4.0, 0.5)
    momentum = {"eta": Power(1.0, 3.0, 0.8, cap=1.0), "delta": 0.1}
    mine = FdeHBO(alpha=0.5 * steps, beta=steps, lam=steps, **momentum)
    problem = Valley(noise=0.5, start=(-0.4, 0.0))
    for k, solver in enumerate((mine, SOLVERS["SOBA"](alpha=0.5 * theirs, beta=theirs, lam=theirs))):
        squares = [problem.hypergradient(state.x).item() ** 2 for state in walk(problem, solver, 1000, 3)]
        A = torch.tensor(squares[:1000], dtype=torch.float64).cumsum(0) / torch.arange(1, 1001)
        early = [A[T - 1].item() for T in path["T"] if T <= 1000]
        assert path["A"][k][: len(early)] == pytest.approx(early, rel=1e-8)
    T, last = (torch.tensor(z, dtype=torch.float64).log() for z in (path["T"], path["A"][::2]))
    late = T.exp() > 299
    centred = T[late] - T[late].mean()
    fits = last[:, late] @ centred / (centred @ centred)
    assert path["slopes"][0] == pytest.approx([fits.mean().item(), 2.365 * fits.std().item() / 8**0.5], rel=1e-3)
    told(figure, fits.mean().item(), digits=2)
    for goal, of, low, high in (
        ({"noise": 2}, 0, -0.67, -0.5),
        ({"noise": 0.1}, 1, -1, -2 / 3),
        ({"q": 1, "p": 0.5}, 0, -1, -0.9),
    ):
        change(figure, p=1 / 3, q=2 / 3, noise=0.5, seed=0)  # the goals of Chapters 14 and 13
        change(figure, **goal)
        figure.locator("xpath=self::*[not(@data-working)]").wait_for(timeout=60_000)
        mean, half = value(figure, "path")["slopes"][of]
        assert low < mean < high
        assert (mean - half < -2 / 3 < mean + half) == (goal == {"noise": 2})


def coarse():
    digits = Digits(n=200, noise=0.1)
    digits.pixels = (digits.pixels * 15).round() / 15
    digits.trusted = (digits.trusted[0] * 15).round() / 15, digits.trusted[1]
    return digits


def test_a_mislabelled_digit_loses_its_weight(show):
    figure, digits = show(widgets.Mislabel()), coarse()
    state = ended("FdeHBO", digits, 150, alpha=100.0, beta=1.0, lam=1.0, eta=1.0, delta=0.01)
    weights = state.x.sigmoid()
    assert value(figure, "path")["weights"] == pytest.approx(weights.tolist(), abs=2e-3)  # torch has it in float32
    told(figure, weights[digits.wrong].mean().item(), weights[~digits.wrong].mean().item(), digits=2)
    assert value(figure, "path")["weights"][3] > 0.9
    for label, fate, low, high in ((7, "wrong", 0, 0.05), (1, "right", 0, 1), (1, "right", 0, 1), (1, "right", 0.8, 1)):
        figure.get_by_role("button", name=f"label it {label}").click()
        figure.locator("xpath=self::*[not(@data-working)]").wait_for(timeout=60_000)
        assert f"with a {fate} label" in said(figure)
        assert low < value(figure, "path")["weights"][3] < high
    figure.get_by_text("Reset").click()
    assert "with a right label" in said(figure)


def test_gradients_of_digits_are_torch_s(core):
    made, digits = widgets.Mislabel().made, coarse()
    core.add_script_tag(
        type="module", content=module("mislabel").replace("export default", "window.made = { Digits };")
    )
    core.wait_for_function("window.made")
    x, y = torch.linspace(-1, 1, 200), torch.sin(torch.arange(1970.0))
    x, y = x.double().requires_grad_(), y.double().requires_grad_()
    losses = cross_entropy(digits.pixels.double() @ y.view(-1, 10), digits.given, reduction="none")
    g = (torch.sigmoid(x) * losses).mean() + digits.C * (y @ y)
    f = cross_entropy(digits.trusted[0].double() @ y.view(-1, 10), digits.trusted[1])
    found = core.evaluate(
        "([made, ...z]) => { const p = new window.made.Digits(made), [a, b] = z.map(one => Float64Array.from(one));"
        " return [p.lower_x(a, b), p.lower_y(a, b), p.upper_y(a, b)].map(z => [...z]) }",
        [made, x.tolist(), y.tolist()],
    )
    for mine, theirs in zip(found, (*torch.autograd.grad(g, (x, y)), *torch.autograd.grad(f, y)), strict=True):
        assert torch.allclose(torch.tensor(mine, dtype=torch.float64), theirs, atol=1e-9)


# --------------------------------------------------------------------------------- what anybody may do to them

ALL = [name for name in widgets.__all__ if name != "Live"]
TRAITS = ["seed", "steps", "noise", "alpha", "beta", "lam", "eta", "delta", "r_v", "method", "x0", "y0"]


def test_whoever_comes_from_outside_finds_the_model(show):
    figure = show(widgets.Valley())
    assert figure.get_attribute("data-live") == "valley"
    assert [name for name in TRAITS if value(figure, name) is None] == []
    change(figure, seed=7, steps=20, method="SOBA", alpha=0.1, x0=1.0)
    end = ended("SOBA", Valley(noise=0.05, start=(1.0, 1.5)), 20, 7, alpha=0.1, beta=0.3, lam=0.3)
    assert value(figure, "path")["x"][-1] == pytest.approx(end.x.item(), abs=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_it_fits_a_laptop_and_a_phone_by_day_and_by_night(show, name):
    figure = show(getattr(widgets, name)())
    assert figure.bounding_box()["height"] < 700  # the bar above a page takes the rest
    dials = figure.locator("input[type=range]:visible")
    assert dials.count() == figure.evaluate("f => f.model.get('dials').filter(d => d.shown && !d.options).length")
    assert len(said(figure)) > 60
    assert barriers(figure.page, "'figure.live'") == []
    figure = show(getattr(widgets, name)(), size=PHONE)
    assert figure.page.evaluate("document.documentElement.scrollWidth") <= 390
    figure.page.evaluate(
        """() => {
            document.documentElement.dataset.theme = "dark"
            const colours = { "background": "#14181e", "text-base": "#ced6dd", "text-muted": "#9ca4af" }
            for (const name in colours) document.documentElement.style.setProperty("--pst-color-" + name, colours[name])
        }"""
    )
    assert barriers(figure.page, "'figure.live'") == []


@pytest.mark.parametrize("name", ALL)
def test_every_dial_and_handle_changes_what_is_said_by_the_keyboard(show, name):
    figure = show(getattr(widgets, name)(**{"r_v": 1.0} if name == "Everything" else {}))  # a ball that holds v
    for control in [*figure.locator("input[type=range]:enabled").all(), *figure.locator("[role=slider]").all()]:
        before = said(figure), value(figure, "path")
        control.focus()
        at_the_left = control.get_attribute("min") == control.evaluate("one => one.value")
        for _ in range(3):
            control.press("ArrowRight" if at_the_left else "ArrowLeft")
        figure.locator("xpath=self::*[not(@data-working)]").wait_for(timeout=60_000)
        assert (said(figure), value(figure, "path")) != before, control.get_attribute("name")
    figure.get_by_text("Reset").click()
    starts = figure.evaluate("f => f.model.get('dials').every(dial => f.model.get(dial.name) === dial.start)")
    assert starts


@pytest.mark.parametrize(("touch", "size"), [(False, LAPTOP), (True, PHONE)])
def test_the_start_is_dragged_by_mouse_and_by_finger(show, touch, size):
    figure = show(widgets.Valley(), size=size)
    figure.evaluate("f => { document.body.style.padding = '60em 0'; f.scrollIntoView() }")  # it could scroll instead
    box, before = figure.locator("[role=slider]").bounding_box(), (value(figure, "x0"), value(figure, "y0"))
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if touch:
        cdp = figure.page.context.new_cdp_session(figure.page)
        for kind, at in (("Start", 0), *(("Move", at) for at in range(10, 90, 10)), ("End", None)):
            points = [] if at is None else [{"x": x + at, "y": y + at}]
            cdp.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    else:
        figure.page.mouse.move(x, y)
        figure.page.mouse.down()
        figure.page.mouse.move(x + 80, y + 80)
        figure.page.mouse.up()
    assert value(figure, "x0") > before[0] + 0.6
    assert value(figure, "y0") < before[1] - 1.2
    assert value(figure, "path")["x"][0] == value(figure, "x0")


GOALS = {  # an address, and what is then said: first the answers to the tasks of Chapters 1 to 8
    "#valley.noise=0&valley.x0=-1.2": "at x = −2.3[5-9], near a minimum",
    "#valley.noise=0&valley.method=alternating": "at x = −0.77.*where Φ is not flat",
    "#hypergradient.x0=1.0472": r"right sign: (0.55\d*), where Φ′ = \1\. ",
    "#hypergradient.steps=18&hypergradient.delta=0.08": "−3.11. 18 steps of y give −3.11, differences of Φ −3.11",
    "#bowl.lam=0.4": "multiplies the error by at most 0.6;",
    "#bowl.L=19&bowl.lam=0.1": "multiplies the error by at most 0.9;",
    "#delta.delta=5e-3": "in float32 is near the best",
    "#delta.dtype=float64&delta.delta=5e-6": "in float64 is near the best",
    "#delta.delta=1e-8": "It sees Hv = 0, .*no digit is right",
    "#ball.noise=0&ball.r_v=1.23": r"too small: v\* has length 1.24, .* with the ball ‖∇Φ‖ ends at 0.0043",
    "#ball.noise=0&ball.r_v=1.25": r"inside, .* with the ball ‖∇Φ‖ ends at \S+10⁻",
    "#ball.noise=1&ball.lam=0.8": r"with the ball ‖∇Φ‖ ends at 0.\d+; without it ‖∇Φ‖ ends at \S+10¹",
    "#momentum.eta=0.07": "recursive 0.18",
    "#momentum.eta=0.35": "average 0.36",
    "#momentum.s=1&momentum.eta=0.02": "worse than one sample.*recursive 2.5",
    "#momentum.s=1&momentum.tau=0&momentum.eta=0.07": "recursive 0.0903",  # as with s = 0.1
    "#everything.noise=0&everything.method=FMBO&everything.eta=0.05": "none of the four is lower",
    "#everything.noise=0&everything.delta=1": r"\|Φ′\| = 9·10⁻⁴",
    "#everything.noise=0&everything.r_v=0.1": r"\|Φ′\| = 1.31",
    "#race.budget=100": r"\. alternating \S+ is nearest to the minimum, then SOBA",
    "#race.price=1": "FdeHBO makes 143 steps, FMBO makes 200 steps",
    "#race.price=2": "FdeHBO makes 143 steps, FMBO makes 143 steps",
    "#valley.alpha=1e9&valley.noise=abc&valley.nothing=1&valley.seed=%E0%A4%A": "outside the picture",
    "#valley.beta=5&valley.noise=2": "overflows at step",
    "#valley.steps=-3": "After 1 steps",
}


@pytest.mark.parametrize("address", GOALS)
def test_every_address_shows_a_picture_and_every_goal_is_reached(show, address):
    figure = show(vars(widgets)[address[1:].partition(".")[0].capitalize()](), address)
    assert re.search(GOALS[address], said(figure))
    assert figure.locator(".live-panel path").count() > 2
    assert ("nearest" in figure.locator(".live-note").inner_text()) == ("1e9" in address or "=-3" in address)


def test_a_link_leads_to_what_is_seen(show):
    figure = show(widgets.Valley(noise=0.2))
    change(figure, delta=0.3, method="FMBO")
    before = said(figure)
    figure.get_by_text("Link").click()
    address = figure.page.evaluate("location.hash")
    assert address == "#valley.method=FMBO&valley.delta=0.3"
    assert said(show(widgets.Valley(noise=0.2), address)) == before


def test_python_takes_the_nearest_value_too_and_names_what_a_widget_does_not_have():
    widget = widgets.Valley(alpha=1e9, delta=-1, steps=10**9, seed=2.4)
    assert (widget.alpha, widget.delta, widget.steps, widget.seed) == (2, 1e-9, 5000, 2)
    with pytest.raises(TypeError, match=r"Valley has no gamma; it has .*alpha"):
        widgets.Valley(gamma=1)


def test_frames_come_with_their_dials_and_their_words(show):
    def draw(a, b):
        figure, axes = plt.subplots(figsize=(3, 2))
        axes.plot([a, b])
        plt.close(figure)
        return figure

    dials = {"a": between([0.0, 0.5, 1.0], "a, the left end"), "b": choice([1, 2], "b, the right end", 2)}
    figure = show(explore(draw, lambda a, b: f"From {a} to {b}.", lambda a, b: f"It rises by {b - a}", **dials))
    for press, left, right in (("End", 1.0, 2), ("ArrowLeft", 0.5, 2), ("Home", 0.0, 2)):
        figure.locator("input").first.press(press)
        assert said(figure) == f"It rises by {right - left}"
        assert figure.locator("img").get_attribute("alt") == f"From {left} to {right}."
        assert figure.locator("output").all_inner_texts() == [f"{left:g}", str(right)]
    assert value(figure, "a") == 0
    again = explore(draw, lambda a, b: "Again.", lambda a, b: f"{a} {b}", **dials)
    assert said(show(again, "#a-b.a=4")) == "0.5 2"  # four of its finer steps


# -------------------------------------------------------------------------------------- how they are stored

CELLS = """\
from bilevel_book import widgets
widgets.Valley(seed=3)
---
from ipywidgets import interact
import matplotlib.pyplot as plt
def draw(k):
    plt.plot([0, k])
    plt.show()
interact(draw, k=(0, 9));
"""


@pytest.mark.slow
def test_a_notebook_that_is_stored_again_is_the_same_file():
    def stored():
        cells = [nbformat.v4.new_code_cell(source, id=str(k)) for k, source in enumerate(CELLS.split("---\n"))]
        notebook = nbformat.v4.new_notebook(cells=cells)
        execute(notebook, "widgets")
        tools.clean(notebook)
        with ThreadPoolExecutor() as other:  # this thread has a browser already
            other.submit(photograph, notebook).result()
        return notebook

    notebook = stored()
    assert notebook == stored()
    ((data, traits),) = live(notebook)
    assert {*data} == {VIEW, "image/png", "text/plain"}
    assert (data[VIEW]["model_id"], traits["seed"]) == ("live-1", 3)
    (other,) = (each["data"] for each in notebook.cells[1].outputs)
    assert {*other} == {"image/png", "text/plain"}  # what interact showed, without the sliders that need a kernel
