"""Geometric harmonisation: Zhou et al. 2023, "Combating Representation Learning Disparity with
Geometric Harmonization".

Contrastive learning alone gives frequent images more room. Here every point is also sent to one of
K directions as far from each other as can be (the corners of a simplex): a batch is shared among
them by optimal transport, in proportion to how many images of the whole set they have, and each
view learns to name the share of the other.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from rarefy.core.errors import bad_value
from rarefy.train.image_batches import generator_for
from rarefy.train.simclr.objective import Contrast

SHARPNESS, TEMPERATURE = 0.05, 0.1
"""Of the transport, and of the cross-entropy."""
RAMP, EVERY = 10, 20
"""Epochs over which the loss gains its weight, and after which sizes are counted anew."""
KEPT, KEPT_LATER = 0.9, 0.999
"""Of the remembered directions of an image, before and after the loss sets in."""
ROUNDS, RELAXED = 50, 1.75
"""Of the transport. Plain steps (the authors take 300) are near after 100 to 300 where points lie
in clusters; over-relaxed ones (Thibault et al. 2021, "Overrelaxed Sinkhorn-Knopp Algorithm for
Regularized Optimal Transport") after 50: sizes of targets agree to 1e-3."""
EMPTY = 1e-9
"""Rows that go to a target without any, instead of none: logarithms stay finite."""


class Harmony:
    """The loss of ``targets`` directions in ``width`` dimensions, and what it remembers of each of
    ``count`` images. It sets in after half of the ``epochs``."""

    def __init__(
        self, count: int, targets: int, width: int, epochs: int, run_key: int, device: torch.device
    ) -> None:
        check_targets(targets, width)
        draws = generator_for(torch.device("cpu"), run_key, "simplex")
        self.corners = simplex(targets, width, draws).to(device)
        self.begin = epochs // 2
        self.weight = torch.zeros((), device=device)
        self.sizes = torch.full((targets,), 1 / targets, device=device)
        """Shares of all images, by target."""
        self.directions = torch.zeros(count, targets, device=device)
        """Of each image's first views, averaged over epochs, beginning with the first."""
        self.seen = torch.zeros(count, dtype=torch.bool, device=device)

    def at_epoch(self, epoch: int) -> None:
        """The weight of an epoch, to be set before its updates."""
        self.weight.fill_(min(1.0, max(0, epoch + 1 - self.begin) / RAMP))

    def added_to(self, found: Contrast, first: Tensor, second: Tensor) -> Contrast:
        """Loss and directions of a batch, beside its contrastive loss."""
        directions = torch.stack([self._directions(points) for points in (first, second)])
        with torch.no_grad():
            shares = transport(directions, self.sizes)
        # each view is told what the other one got
        named = functional.log_softmax(directions / TEMPERATURE, dim=2)
        loss = -(shares.flip(0) * named).sum(dim=2).mean(dim=1).sum()
        return found._replace(
            loss=found.loss + self.weight * loss, directions=directions[0].detach()
        )

    def _directions(self, points: Tensor) -> Tensor:
        wide = torch.promote_types(points.dtype, torch.float32)
        return functional.normalize(points.to(wide) @ self.corners.to(wide).T, dim=1)

    def see(self, rows: Tensor, directions: Tensor, epoch: int) -> None:
        """What a batch found: for images ``rows``, each there once."""
        kept = KEPT if epoch < self.begin else KEPT_LATER
        mixed = kept * self.directions[rows] + (1 - kept) * directions.float()
        found = torch.where(self.seen[rows][:, None], mixed, directions.float())
        self.directions.index_copy_(0, rows, found)
        self.seen.index_fill_(0, rows, True)

    def refresh(self, epochs: int) -> None:
        """Count the sizes anew, if it is time for it ``epochs`` after the beginning."""
        if epochs < self.begin or (epochs != self.begin and epochs % EVERY):
            return
        nearest = self.directions.argmax(dim=1)
        counts = torch.zeros_like(self.sizes).index_add_(0, nearest, self.seen.float())
        self.sizes.copy_(counts / counts.sum())

    def state_dict(self) -> dict[str, Tensor]:
        return {"sizes": self.sizes, "directions": self.directions, "seen": self.seen}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, value in self.state_dict().items():
            value.copy_(state[name])


def check_targets(targets: int, width: int) -> None:
    """Complain where so many directions of equal angles do not exist."""
    if targets > width + 1:
        raise bad_value(
            "head_out",
            width,
            f"must be at least {targets - 1} for {targets} targets; fewer: harmonise:{width + 1}",
        )


def simplex(corners: int, width: int, generator: torch.Generator) -> Tensor:
    """(corners, width): rows of length 1, any two with product -1 / (corners - 1), turned at will."""
    # an orthonormal basis of all that is orthogonal to (1, ..., 1)
    full = torch.cat([torch.ones(corners, 1), torch.eye(corners)[:, 1:]], dim=1).double()
    centred = torch.linalg.qr(full).Q[:, 1:]
    anyhow = torch.randn(width, corners - 1, generator=generator, dtype=torch.float64)
    turned = centred @ torch.linalg.qr(anyhow).Q.T
    return (math.sqrt(corners / (corners - 1)) * turned).float()


def transport(directions: Tensor, sizes: Tensor) -> Tensor:
    """Shares of rows in targets, (views, n, K), as like exp(directions / 0.05) as can be: each row
    has the sum 1, target k of each view n ``sizes[k]`` (near enough; see ``ROUNDS``)."""
    count = directions.shape[1]
    # (a factor per row changes nothing, and keeps numbers small)
    near = torch.exp((directions - directions.amax(dim=2, keepdim=True)) / SHARPNESS)
    back = near.transpose(1, 2).contiguous()
    wanted = torch.log((sizes * count).clamp(min=EMPTY))[None, :, None]
    of_rows = torch.zeros_like(near[:, :, :1])
    of_targets = torch.zeros_like(back[:, :, :1])
    for number in range(ROUNDS):
        # the first steps are far off, and the last give each row its sum
        far = RELAXED if 2 <= number < ROUNDS - 2 else 1.0
        step = wanted - torch.log(back @ torch.exp(of_rows))
        of_targets = torch.lerp(of_targets, step, far)
        step = -torch.log(near @ torch.exp(of_targets))
        of_rows = torch.lerp(of_rows, step, far)
    return near * torch.exp(of_rows + of_targets.transpose(1, 2))
