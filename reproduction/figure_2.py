import torch
from torch.nn.functional import cross_entropy as ce

from bilevel_book.experiments import read
from bilevel_book.mnist import load_mnist
from bilevel_core import FMBO, from_modules
from bilevel_core.schedules import Power

images, k, test, test_k = load_mnist()
images, test = ((z.flatten(1) / 255 - 0.1307) / 0.3081 for z in (images, test))
torch.manual_seed(30)  # the wrong labels and the first y; take your own
k[:2_000] = (k[:2_000] + torch.randint(1, 10, (2_000,))) % 10  # one in ten
sets = (images[40_000:45_000], k[40_000:45_000]), (images[:20_000], k[:20_000])
x = torch.nn.ParameterDict({"x": torch.zeros(20_000)})  # weights are sigmoids
y = torch.nn.Linear(784, 10)
losses = ce, lambda z, k, index, outer: (
    outer["x"][index].sigmoid() @ ce(z, k, reduction="none") / len(k))  # fmt: skip
problem = from_modules(x, y, losses, *sets, 100, ridge=0.001, features=False)
eta = Power(100.0, 1.0, 2 / 3, cap=1.0)  # lam, eta and r_v are not stated
solver = FMBO(alpha=0.3, beta=0.3, lam=0.3, eta=eta, r_v=10.0)
stored = read("hyper-cleaning", "stated").query("label == 'FMBO'")
band = stored.groupby("step").test_loss.agg(["min", "max"]).loc[:5000]
state, mine = solver.init(problem, seed=30, y=torch.randn(7850) * 0.2**0.5), []
for step in band.index:
    while state.t < step:
        state = solver.step(problem, state)
    mine.append(ce(problem.predict(state.x, state.y, test), test_k).item())
inside = ((band["min"] <= mine) & (mine <= band["max"])).mean()
title = f"{'inside' if inside > 0.5 else 'outside'} the band ({inside:.0%})"
band.assign(yours=mine).plot(logy=True, title=title).figure
