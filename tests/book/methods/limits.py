"""Where a method ends on a quadratic without noise."""

import torch


def limit(problem, solve):
    """The x where rho x + B' S (y*(x) - c) = 0: the stationary point of a method that sees v = S grad_y f."""
    inverse = torch.linalg.inv(problem.A)
    curvature = (
        problem.rho * torch.eye(len(problem.x0), dtype=problem.A.dtype) + problem.B.T @ solve @ inverse @ problem.B
    )
    return torch.linalg.solve(curvature, problem.B.T @ solve @ (problem.c - inverse @ problem.b))


def series(problem, Q, eta):
    """(I - (I - eta A)^{Q+1}) A^-1, what a Neumann sum of Q + 1 terms makes of A^-1."""
    I = torch.eye(len(problem.A), dtype=problem.A.dtype)
    return (I - torch.linalg.matrix_power(I - eta * problem.A, Q + 1)) @ torch.linalg.inv(problem.A)


def penalty(problem, multiplier):
    return torch.linalg.inv(problem.A + torch.eye(len(problem.A), dtype=problem.A.dtype) / multiplier)


STEP = {"alpha": 0.3, "beta": 0.3}
