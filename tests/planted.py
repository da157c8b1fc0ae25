"""Labelled sets with a few labels wrong, as a curator has them."""

from __future__ import annotations

import numpy as np

KINDS = {"square": 195, "circle": 60, "triangle": 20, "cross": 8}


def wine_with_five() -> tuple[np.ndarray, ...]:
    """Features, given labels, true labels, and rows with a wrong label."""
    from sklearn.datasets import load_wine

    X, true = load_wine(return_X_y=True)
    random = np.random.default_rng(0)
    wrong = random.permutation(len(true))[:5]
    labels = true.copy()
    labels[wrong] = (true[wrong] + random.integers(1, 3, 5)) % 3
    return X, labels, true, wrong


def cancer_with_four() -> tuple[np.ndarray, ...]:
    """357 benign and 20 malignant tumours: features, given labels, rows with a wrong label."""
    from sklearn.datasets import load_breast_cancer

    X, true = load_breast_cancer(return_X_y=True)
    random = np.random.default_rng(0)
    few = random.permutation(np.flatnonzero(true == 0))[:20]
    rows = np.sort(np.concatenate([np.flatnonzero(true == 1), few]))
    wrong = random.permutation(len(rows))[:4]
    labels = true[rows]
    labels[wrong] = 1 - labels[wrong]
    return X[rows], labels, wrong


def shapes_with_five() -> tuple[np.ndarray, list[str], np.ndarray]:
    """288 grey images, (n, 32, 32), of 200 squares (five are circles), 60 circles, 20 triangles and
    8 crosses: any place, size and brightness; their kinds; rows with a wrong label."""
    random = np.random.default_rng(0)
    drawn = [kind for kind, count in KINDS.items() for _ in range(count)] + ["circle"] * 5
    images = np.stack([_shape(kind, random) for kind in drawn])
    return images, drawn[:-5] + ["square"] * 5, np.arange(len(drawn) - 5, len(drawn))


def _shape(kind: str, random: np.random.Generator) -> np.ndarray:
    down, across = np.mgrid[:32, :32]
    centre, size = 16 + random.uniform(-3, 3, 2), random.uniform(8, 12)
    x, y = np.abs(across - centre[0]), np.abs(down - centre[1])
    inside = {
        "square": np.maximum(x, y) < 0.88 * size,
        "circle": x**2 + y**2 < size**2,
        "triangle": (y < size) & (x < (down - centre[1] + size) / 2),
        "cross": ((x < size / 3) & (y < size)) | ((y < size / 3) & (x < size)),
    }[kind]
    pixels = np.where(inside, random.uniform(0.6, 1), random.uniform(0, 0.3))
    noisy: np.ndarray = np.clip(pixels + random.normal(0, 0.05, pixels.shape), 0, 1)
    return (255 * noisy).astype(np.uint8)
