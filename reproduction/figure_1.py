from torch import manual_seed, nn, zeros
from torch.nn.functional import cross_entropy

from bilevel_book.experiments import read
from bilevel_book.mnist import load_mnist
from bilevel_core import FdeHBO, from_modules

halves = load_mnist()[:2], load_mnist()[2:]  # upper level: the training file
upper, lower = (((z[:, None] / 255 - 0.1307) / 0.3081, k) for z, k in halves)
manual_seed(30)  # the first weights; take your own
features, head = nn.Sequential(
    nn.Upsample(32, mode="bilinear"), nn.Conv2d(1, 6, 5), nn.MaxPool2d(2),
    nn.ReLU(), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
    nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
), nn.Linear(84, 10)  # fmt: skip
problem = from_modules(features, head, cross_entropy, upper, lower, 256)
paper = {"alpha": 0.008, "beta": 0.8, "lam": 0.05, "eta": 0.9, "delta": 0.1}
solver = FdeHBO(**paper, r_v=10.0)  # r_v is not stated, and never acts
stored = read("hyper-representation", "stated").query("label == 'FdeHBO'")
band = stored.groupby("step").upper_loss.agg(["min", "max"]).loc[:200:3]
state, mine = solver.init(problem, seed=30, y=zeros(850)), []
for step in band.index:
    while state.t < step:
        state = solver.step(problem, state)
    mine.append(problem.upper(state.x, state.y, slice(0, 3000)).item())
inside = ((band["min"] <= mine) & (mine <= band["max"])).mean()
title = f"{'inside' if inside > 0.5 else 'outside'} the band ({inside:.0%})"
band.assign(yours=mine).plot(logy=True, title=title).figure
