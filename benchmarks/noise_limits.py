"""What any classifier could reach on noisy images: bounds beside the published tables of 002.

    python benchmarks/noise_limits.py [--images 2000] [--sets mnist cifar100]

Gaussian noise of std s is added to test images x. Four rules, all exact for what they know:

    class means    the nearest of the training images' class means
    templates      Bayes' rule if every image were one of the training images plus noise: the class
                   with the largest sum of exp(-|z - x_i|^2 / 2 s^2) over its training images x_i
    limit          the same with the TEST images as templates: it knows the very images that are
                   asked, so that no classifier can do better on them
    clean          templates of noise s, asked without noise (noise in training only)

Levels are those of 002 Tables 1 and 2 in three units: pixels in [0, 1], the pixels' own std, and
pixels in [-1, 1]. Not a benchmark of speed: it says which reading of the tables is possible.
"""

from __future__ import annotations

from typing import Any

import torch
from harness import asked, keep
from torch import Tensor

from rarefy.data.images import load_images

LEVELS = (0.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
ROWS = 250


def by_templates(asked: Tensor, templates: Tensor, labels: Tensor, noise: float) -> Tensor:
    """Class of the largest summed likelihood, (asked,)."""
    order = labels.argsort()
    templates, counts = templates[order], labels.bincount().tolist()
    squares = (templates**2).sum(dim=1)
    found = []
    for some in asked.split(ROWS):
        scores = (some @ templates.T - squares / 2) / noise**2
        each = [part.logsumexp(dim=1) for part in scores.split(counts, dim=1)]
        found.append(torch.stack(each, dim=1).argmax(dim=1))
    return torch.cat(found)


def by_means(asked: Tensor, means: Tensor) -> Tensor:
    return (asked @ means.T - (means**2).sum(dim=1) / 2).argmax(dim=1)


def limits(name: str, images: int) -> list[dict[str, Any]]:
    data = load_images(name)
    train, test = (part.images.flatten(1).float() / 255 for part in (data.train, data.test))
    labels, truth = data.train.labels, data.test.labels
    means = torch.stack([train[labels == one].mean(dim=0) for one in range(len(data.classes))])
    draws = torch.Generator().manual_seed(1)
    some = torch.randperm(len(test), generator=draws)[:images]
    units = {"pixel": 1.0, "std": sum(data.std) / len(data.std), "pixel in [-1, 1]": 0.5}
    rows = []
    for unit, size in units.items():
        for level in LEVELS:
            noise = level * size
            noisy = test + noise * torch.randn(test.shape, generator=draws)

            def share(found: Tensor, right: Tensor = truth[some]) -> float:
                return 100 * float((found == right).double().mean())

            row = {
                "unit": unit,
                "level": level,
                "std_in_pixels": noise,
                "class means": share(by_means(noisy, means), truth),
                "templates": share(by_templates(noisy[some], train, labels, noise)),
                "limit": share(by_templates(noisy[some], test, truth, noise)),
                "clean": share(by_templates(test[some], train, labels, noise)),
            }
            rows.append(row)
            print(
                name,
                {
                    key: value if isinstance(value, str) else round(value, 2)
                    for key, value in row.items()
                },
                flush=True,
            )
    return rows


def main() -> None:
    arguments = asked(__doc__, images=2000, sets=["mnist", "cifar100"])
    record = {
        "what": "per cent right under Gaussian noise; see benchmarks/noise_limits.py",
        "images": arguments.images,
        "sets": {name: limits(name, arguments.images) for name in arguments.sets},
    }
    keep(arguments, "noise-limits", record)


if __name__ == "__main__":
    main()
