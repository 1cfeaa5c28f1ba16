"""Dense reference of inference: linear weights of all keys at all points, by normal equations, one point at a time."""

from dataclasses import dataclass

import numpy as np

from kernpool import get_kernel

ROOT_2 = np.sqrt(2.0)


@dataclass(frozen=True)
class Dense:
    """Training rows and how they are pooled; tables of categorical columns are functions of the smoothing's factor."""

    x: np.ndarray
    y: np.ndarray
    h: np.ndarray
    w: np.ndarray
    kernel: object = "gaussian"
    degree: int = 1
    ridge: float = 0.0
    code: np.ndarray | None = None
    tables: object = None

    def kernel_weights(self, q, code, factor=1.0, levels=None):
        """K times the factors of levels, of shape (m, n), without frequencies."""
        kernel = get_kernel(self.kernel)
        u = np.abs(q[:, None] - self.x) / (self.h * factor)
        product = kernel.composition == "product"
        weight = kernel.profile(u).prod(axis=2) if product else kernel.profile(np.sqrt(np.sum(u**2, axis=2)))
        if self.tables is not None:
            for a, table in enumerate(self.tables(factor**2 if levels is None else levels)):
                weight = weight * table[code[:, a][:, None], self.code[:, a]]
        return weight

    def coefficients(self, q, code=None, factor=1.0, degree=None, frequency=None):
        """Shares of all keys in the value and in each slope, of shape (m, 1 + d, n)."""
        degree = self.degree if degree is None else degree
        frequency = np.broadcast_to(self.w, (len(q), len(self.x))) if frequency is None else frequency
        weight = self.kernel_weights(q, code, factor) * frequency
        d, kernel = self.x.shape[1], get_kernel(self.kernel)
        rho = self.ridge * kernel.profile(np.zeros(1))[0] ** (d if kernel.composition == "product" else 1)
        out, ridge = np.zeros((len(q), 1 + d, len(self.x))), rho if degree == 1 else 0.0
        upper = np.triu_indices(d)
        for i, (place, w) in enumerate(zip(q, weight, strict=True)):
            t = (self.x - place) / (self.h * factor)
            products = t[:, upper[0]] * t[:, upper[1]]
            design = np.column_stack([np.ones(len(t)), *t.T, *products.T])
            design = design[:, : (1, 1 + d, design.shape[1])[degree]]
            gram = design.T @ (w[:, None] * design) + ridge * np.diag([0.0] + [1.0] * (design.shape[1] - 1))
            kept = 1 + d * (degree > 0)
            out[i, :kept] = np.linalg.solve(gram, (w[:, None] * design).T)[:kept]
            out[i, 1:] /= (self.h * factor)[:, None]
        return out

    def deleted(self):
        """Predictions of every row from the others, by leaving one unit of it out."""
        own = np.repeat(self.w[None], len(self.w), axis=0)
        np.fill_diagonal(own, np.maximum(self.w - 1.0, 0.0))
        return self.coefficients(self.x, self.code, frequency=own)[:, 0] @ self.y

    def leverage(self):
        """Share of one unit of each row in its own fit."""
        return np.diag(self.coefficients(self.x, self.code)[:, 0]) / np.maximum(self.w, 1e-300)

    def squared(self, kind):
        """Squared residuals."""
        own = self.y - self.coefficients(self.x, self.code)[:, 0] @ self.y
        hat, total = self.leverage(), self.w.sum()
        return {
            "hc0": own**2,
            "hc1": own**2 * total / (total - self.w @ hat),
            "hc2": own**2 / (1 - hat)[:, None],
            "hc3": (self.y - self.deleted()) ** 2,
            "nn": self.nearest() ** 2,
        }[kind]

    def nearest(self, neighbours=3):
        """Residuals from the nearest unit rows, all ties of the farthest included; whole frequencies."""
        unit = np.repeat(np.arange(len(self.x)), self.w.astype(int))
        found = np.zeros_like(self.y)
        for i in range(len(self.x)):
            others = np.delete(unit, np.flatnonzero(unit == i)[0]) if self.w[i] else unit
            scale, rounding = (self.h, 1 + 1e-12) if self.x.shape[1] > 1 else (1.0, 1.0)
            distance = np.linalg.norm((self.x[others] - self.x[i]) / scale, axis=1)
            if self.code is not None:
                distance = distance + 1e9 * np.sum(self.code[others] != self.code[i], axis=1)
            near = others[distance <= np.sort(distance)[min(neighbours, len(others)) - 1] * rounding]
            found[i] = np.sqrt(len(near) / (len(near) + 1)) * (self.y[i] - self.y[near].mean(axis=0))
        return found

    def shares(self, q, code=None, method="naive", row=0):
        """Shares in an estimate of the value (row 0) or of a slope."""
        if method == "naive":
            return self.coefficients(q, code)[:, row]
        if method == "quadratic":
            return self.coefficients(q, code, degree=2)[:, row]
        if method == "undersmoothed":
            return self.coefficients(q, code, self.w.sum() ** (-1 / 20), degree=1)[:, row]
        wide = self.coefficients(q, code, ROOT_2, degree=1)[:, row]
        return 2 * self.coefficients(q, code, degree=1)[:, row] - wide

    def quadratic(self, share, psi=None):
        """Sum of squared shares of unit rows."""
        kept = self.w > 0
        psi = np.ones((len(self.w), 1)) if psi is None else psi
        return (share[:, kept] ** 2 / self.w[kept]) @ psi[kept]

    def noise(self, q, code=None):
        """Variance of an observation, and degrees of freedom."""
        weight = self.kernel_weights(q, code, 2.0, levels=1.0) * self.w
        kept = self.w > 0
        df = weight.sum(axis=1) ** 2 / np.sum(weight[:, kept] ** 2 / self.w[kept], axis=1)
        return weight @ self.squared("hc3") / weight.sum(axis=1, keepdims=True), df

    def standard_error(self, share, q, code=None, variance="local"):
        """Of an estimate with these shares."""
        if variance == "local":
            return np.sqrt(self.noise(q, code)[0] * self.quadratic(share))
        return np.sqrt(self.quadratic(share, self.squared("hc3" if variance == "sandwich" else variance)))
