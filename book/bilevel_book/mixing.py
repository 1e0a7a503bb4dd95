"""Data mixing: in which proportions should a language model read its sources, to do well on a target?

    g(x, y) = sum over the domains k of  p_k(x) E loss_y(text of domain k)  +  ridge ||y||^2
    f(x, y) = E loss_y(text of the target)
    p(x)    = (1 - floor) softmax(x) + floor / K

y is a transformer that predicts the next character, or, with a `rank`, low-rank adapters (LoRA) of one that was trained
on a crawl and frozen. The text of the K = 5 domains and of the target is made here. The target is a cousin of the
records: it has sums in it, which only the second domain shows. No p_k falls below floor / K, so p keeps some entropy.
"""

import copy
import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

from bilevel_core.networks import Modules
from bilevel_core.problem import seeded

CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789 .,:;=+()[]{}"
WORDS = {
    "name": ("ada", "ben", "eva", "ian", "kim", "leo", "mia", "tom"),
    "town": ("bonn", "lima", "oslo", "pisa", "rome", "york"),
    "verb": ("sees", "likes", "buys"),
    "thing": ("a cat", "a red car", "the sea"),
    "any": tuple(CHARACTERS),
}
DOMAINS = {
    "records": "name: {name}, age: {age}, town: {town};",
    "arithmetic": "sum: {a}+{b}={c}; ",
    "sentences": "{name} {verb} {thing} in {town}. ",
    "lists": "[{a}, {b}, ({age}, {c})] ",
    "noise": "{any}",
}
TARGET = "name: {name}, sum: {a}+{b}={c}, town: {town};"
CRAWL = (0.05, 0.1, 0.15, 0.2, 0.5)  # how much of a crawl each domain is
ROWS, LENGTH = 400, 64  # of each domain, and of characters in a row
COLLAPSED = 0.9  # on one domain: then the others are not read


def text(template: str, rows: int, length: int, seed: int) -> Tensor:
    """Rows of so many characters, as whole numbers: a template that is filled in again and again."""
    dice, written = random.Random(seed), ""
    while len(written) < rows * length:
        a, b = dice.randint(1, 9), dice.randint(1, 9)
        words = {slot: dice.choice(choices) for slot, choices in WORDS.items()}
        written += template.format(a=a, b=b, c=a + b, age=dice.randint(10, 99), **words)
    return torch.tensor([CHARACTERS.index(c) for c in written[: rows * length]]).view(rows, length)


class Block(nn.Module):
    """Causal self-attention, by torch's fused kernel or by its formula, which has second derivatives; then an MLP."""

    def __init__(self, width: int, heads: int = 4, fused: bool = True):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.before, self.into, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.between, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, h: Tensor) -> Tensor:
        q, k, v = self.into(self.before(h)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if self.fused:
            mean = scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            later = torch.ones(h.shape[1], h.shape[1], dtype=torch.bool).triu(1)
            mean = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(later, -torch.inf).softmax(-1) @ v
        h = h + self.out(mean.transpose(1, 2).flatten(2))
        return h + self.down(gelu(self.up(self.between(h))))


class Transformer(nn.Module):
    """Predicts each next character of a text from those before it; about 10^5 weights."""

    def __init__(self, width: int = 64, length: int = LENGTH, layers: int = 2, fused: bool = True):
        super().__init__()
        self.characters, self.places = nn.Embedding(len(CHARACTERS), width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, fused=fused) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, len(CHARACTERS))

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.characters(tokens) + self.places.weight[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(h)))


class Adapter(nn.Module):
    """A frozen linear layer plus a product of two thin matrices, which is zero at first: LoRA."""

    def __init__(self, layer: nn.Linear, rank: int):
        super().__init__()
        self.layer = layer
        self.thin = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.tall = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, h: Tensor) -> Tensor:
        return self.layer(h) + (h @ self.thin.T) @ self.tall.T


class Proportions(nn.Module):
    """p(x), of which the logits are x."""

    def __init__(self, first: Tensor, floor: float):
        super().__init__()
        self.logits, self.floor = nn.Parameter(first.clone()), floor

    def forward(self) -> Tensor:
        return (1 - self.floor) * self.logits.softmax(0) + self.floor / len(self.logits)


class Mixing(Modules):
    __doc__ = __doc__

    def __init__(
        self,
        seed: int = 0,
        start: str = "uniform",  # or "crawl", as the domains lie there, or "random": the best of 20 random mixtures
        fused: bool = True,
        rank: int = 0,
        pretrain: int = 300,  # steps on the crawl, before the adapters of that rank
        retrain: int = 0,  # steps of a new y on p(x), by which `evaluate` judges x
        width: int = 64,
        length: int = LENGTH,
        batch_size: int = 16,
        floor: float = 0.1,
        ridge: float = 1e-4,
    ):
        made = [text(each, ROWS, length + 1, 10 * seed + k) for k, each in enumerate((*DOMAINS.values(), TARGET))]
        self.domains, self.retrain = torch.stack(made[:-1]), retrain
        upper, self.selection, self.test = made[-1].split([ROWS // 2, ROWS // 4, ROWS // 4])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = Transformer(width, length, fused=fused)
            if rank:
                train(net, self.domains, torch.tensor(CRAWL), pretrain, batch_size)
                add_adapters(net, rank)
        weights = {"uniform": torch.ones(5), "crawl": torch.tensor(CRAWL)}
        first = weights[start] if start in weights else self.best_of_random(net, seed, floor, batch_size)
        of = torch.arange(5).repeat_interleave(ROWS)
        rows = self.domains.flatten(0, 1)
        lower = rows[:, :-1], {"next": rows[:, 1:], "domain": of}
        outer = Proportions(first.log(), floor)
        upper = upper[:, :-1], upper[:, 1:]
        super().__init__(outer, net, (loss, mixed), upper, lower, batch_size, ridge, features=False)

    def best_of_random(self, net: nn.Module, seed: int, floor: float, batch_size: int, tries: int = 20) -> Tensor:
        """Of weights that are uniform on the simplex, those with the lowest loss after a training of their own."""

        def after_training(weights: Tensor) -> float:
            p = Proportions(weights.log(), floor)().detach()
            train(trained := copy.deepcopy(net), self.domains, p, self.retrain, batch_size)
            return loss_on(trained, self.selection)

        return min(torch.empty(tries, 5).exponential_(generator=seeded(seed)), key=after_training)

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """The loss on other text of the target, at y and for a y that is trained anew on p(x); one to choose settings
        by; how many domains p is worth, exp(entropy); and p."""
        p, net = self.outer.at(x)().detach(), self.load(x, y)[1]
        told = {"target_loss": loss_on(net, self.test)}
        if self.retrain:
            self.load(x, self.inner.weights)
            train(net, self.domains, p, self.retrain, self.lower_size)
            told |= {"retrained_loss": loss_on(net, self.test)}
        told |= {"selection_loss": loss_on(net, self.selection), "effective": (-p @ p.log()).exp().item()}
        return told | dict(zip(DOMAINS, p.tolist(), strict=True))

    def export(self, x: Tensor, path: Path) -> dict[str, float]:
        """Write p(x) as JSON, which is YAML too, for a training job to read; warn if it is one domain."""
        p = dict(zip(DOMAINS, self.outer.at(x)().tolist(), strict=True))
        most = max(p, key=p.__getitem__)
        if p[most] > COLLAPSED:
            cure = "a smaller alpha, a larger floor, or more text of the target"
            warnings.warn(f"the mixture has collapsed: {p[most]:.0%} of it is {most}; {cure}", stacklevel=2)
        shares = {name: round(share, 4) for name, share in p.items()}
        path.write_text(json.dumps({"mixture": shares}, indent=1) + "\n", encoding="utf-8")
        return p


def loss(scores: Tensor, following: Tensor) -> Tensor:
    return cross_entropy(scores.transpose(1, 2), following)


@torch.no_grad()
def loss_on(net: nn.Module, rows: Tensor) -> float:
    return loss(net(rows[:, :-1]), rows[:, 1:]).item()


def mixed(scores: Tensor, targets: dict[str, Tensor], outer: Callable[[], Tensor]) -> Tensor:
    """Domains are equally long here, so that a row drawn from all of them weighs K p_k."""
    losses = cross_entropy(scores.transpose(1, 2), targets["next"], reduction="none").mean(1)
    p = outer()
    return (len(p) * p[targets["domain"]] * losses).mean()


def train(net: nn.Module, domains: Tensor, p: Tensor, steps: int, batch_size: int = 16, rate: float = 3e-3) -> None:
    """Train what is not frozen by Adam on rows that are drawn in the proportions p: what a training job would do."""
    optimiser = torch.optim.Adam([each for each in net.parameters() if each.requires_grad], rate)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        k = torch.multinomial(p, batch_size, replacement=True, generator=generator)
        rows = domains[k, torch.randint(domains.shape[1], k.shape, generator=generator)]
        optimiser.zero_grad()
        loss(net(rows[:, :-1]), rows[:, 1:]).backward()
        optimiser.step()


def add_adapters(net: nn.Module, rank: int) -> None:
    """Freeze a network, and give each linear layer in it an adapter."""
    net.requires_grad_(False)
    for module in [*net.modules()]:
        for name, layer in [*module.named_children()]:
            if isinstance(layer, nn.Linear):
                setattr(module, name, Adapter(layer, rank))
