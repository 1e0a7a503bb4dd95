"""Problems with known derivatives, made for tests."""

import torch
from torch import Tensor

from bilevel_core import BilevelProblem, Samples


def log_cosh(z: Tensor) -> Tensor:
    return torch.logaddexp(z, -z) - 0.6931471805599453


class LogCosh(BilevelProblem):
    """A smooth problem that is not quadratic, with noise in every derivative; H, J and all gradients by formula.

    g = y'A y/2 - y'B x + sum_k kappa_k lc(a_k'y + r_k'x + s_k) + n'y,   f = sum_k lc(p_k'x + q_k'y) + m'(x, y)
    A batch shifts s (so that H and J are noisy) and holds n, or m.
    """

    def __init__(self, dim_x=3, dim_y=4, noise=0.0, seed=0, dtype=torch.float64):
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape):
            return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

        root = normal(dim_y, dim_y) / dim_y
        self.A = torch.eye(dim_y, dtype=dtype) + root @ root.T
        self.B, self.a, self.r = normal(dim_y, dim_x) / 2, normal(5, dim_y) / 2, normal(5, dim_x) / 2
        self.kappa, self.p, self.q = normal(5).abs() / 2, normal(6, dim_x) / 2, normal(6, dim_y) / 2
        self.x0, self.y0 = normal(dim_x), normal(dim_y)
        self.noise, self.dtype = noise, dtype

    def start(self, generator):
        return self.x0.clone(), self.y0.clone()

    def sample(self, generator):
        def normal(size):
            return self.noise * torch.randn(size, generator=generator, dtype=self.dtype)

        dim_x, dim_y = len(self.x0), len(self.y0)
        return Samples(upper=normal(dim_x + dim_y), lower=normal(5 + dim_y))

    def full(self):
        dim_x, dim_y = len(self.x0), len(self.y0)
        return Samples(torch.zeros(dim_x + dim_y, dtype=self.dtype), torch.zeros(5 + dim_y, dtype=self.dtype))

    def upper(self, x, y, batch):
        return log_cosh(self.p @ x + self.q @ y).sum() + batch @ torch.cat((x, y))

    def lower(self, x, y, batch):
        s, n = batch[:5], batch[5:]
        return y @ (self.A @ y) / 2 - y @ (self.B @ x) + self.kappa @ log_cosh(self.a @ y + self.r @ x + s) + n @ y

    # The derivatives, written out.

    def f_x(self, x, y, batch):
        return self.p.T @ torch.tanh(self.p @ x + self.q @ y) + batch[: len(x)]

    def f_y(self, x, y, batch):
        return self.q.T @ torch.tanh(self.p @ x + self.q @ y) + batch[len(x) :]

    def g_y(self, x, y, batch):
        return self.A @ y - self.B @ x + self.a.T @ (self.kappa * torch.tanh(self._z(x, y, batch))) + batch[5:]

    def g_x(self, x, y, batch):
        return -self.B.T @ y + self.r.T @ (self.kappa * torch.tanh(self._z(x, y, batch)))

    def H(self, x, y, batch):
        return self.A + (self.a.T * (self.kappa * (1 - torch.tanh(self._z(x, y, batch)) ** 2))) @ self.a

    def J(self, x, y, batch):
        return -self.B.T + (self.r.T * (self.kappa * (1 - torch.tanh(self._z(x, y, batch)) ** 2))) @ self.a

    def _z(self, x, y, batch):
        return self.a @ y + self.r @ x + batch[:5]


class Recording(BilevelProblem):
    """Another problem that remembers each (loss, x, y, batch) it was asked about."""

    def __init__(self, inner: BilevelProblem):
        self.inner, self.asked = inner, []
        self.start, self.sample = inner.start, inner.sample

    def full(self):
        return self.inner.full()

    def start(self, generator): ...

    def sample(self, generator): ...

    def upper(self, x, y, batch):
        self.asked.append(("f", x.detach().clone(), y.detach().clone(), batch))
        return self.inner.upper(x, y, batch)

    def lower(self, x, y, batch):
        self.asked.append(("g", x.detach().clone(), y.detach().clone(), batch))
        return self.inner.lower(x, y, batch)


def walk(problem, solver, steps, seed=0):
    """The state after so many steps."""
    state = solver.init(problem, seed)
    for _ in range(steps):
        state = solver.step(problem, state)
    return state


class Penalties(BilevelProblem):
    """Ridge regression with a penalty exp(x_i) for each of 20 features, half of which say nothing."""

    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        data = torch.randn(160, 20, generator=generator, dtype=torch.float64)
        truth = torch.cat((torch.ones(10), torch.zeros(10))).double()
        targets = data @ truth + 3 * torch.randn(160, generator=generator, dtype=torch.float64)
        self.lower_data, self.upper_data = (data[:60], targets[:60]), (data[60:], targets[60:])

    def start(self, generator):
        return torch.zeros(20, dtype=torch.float64), torch.zeros(20, dtype=torch.float64)

    def sample(self, generator):
        return Samples(self.upper_data, self.lower_data)

    def upper(self, x, y, batch):
        return ((batch[0] @ y - batch[1]) ** 2).mean()

    def lower(self, x, y, batch):
        return self.upper(x, y, batch) + torch.exp(x) @ y**2

    def phi(self, x):
        """Phi with y* in closed form."""
        (data, targets), n = self.lower_data, len(self.lower_data[1])
        y = torch.linalg.solve(data.T @ data / n + torch.diag(torch.exp(x)), data.T @ targets / n)
        return self.upper(x, y, self.upper_data)


def minimised(phi, optimiser, steps, size=20, **options):
    """Where an optimiser of torch brings so many zeros."""
    x = torch.zeros(size, dtype=torch.float64, requires_grad=True)
    method = optimiser([x], **options)

    def closure():
        method.zero_grad()
        loss = phi(x)
        loss.backward()
        return loss

    for _ in range(steps):
        method.step(closure)
    return x.detach()
