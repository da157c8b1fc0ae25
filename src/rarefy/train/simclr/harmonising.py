"""Geometric harmonisation: Zhou et al. 2023, "Combating Representation Learning Disparity with
Geometric Harmonization".

Contrastive learning alone gives frequent images more room. Here every point is also sent to one of
K directions as far from each other as can be (the corners of a simplex): a batch is shared among
them by optimal transport, in proportion to how many images of the whole set they have, and each
view learns to name the share of the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from rarefy.core.compilation import or_plain, own_code
from rarefy.core.errors import bad_value
from rarefy.core.settings import can_compile
from rarefy.train.image_batches import generator_for
from rarefy.train.simclr.method import Method
from rarefy.train.simclr.objective import Contrast

SHARPNESS, TEMPERATURE = 0.05, 0.1
"""Of the transport, and of the cross-entropy."""
RAMP, EVERY = 10, 20
"""Epochs over which the loss gains its weight, and after which sizes are counted anew."""
KEPT, KEPT_LATER = 0.9, 0.999
"""Of the remembered directions of an image, before and after the loss sets in."""
ROUNDS, RELAXED, SAFE = 50, 1.75, 0.1
"""Of the transport. Plain steps (the authors take 300) need 300 where points lie in clusters, until
sizes of targets agree to 1e-3; over-relaxed ones (Thibault et al. 2021, "Overrelaxed
Sinkhorn-Knopp Algorithm for Regularized Optimal Transport") 50. They are taken where they gain a
tenth of what a plain one gains."""
EMPTY = 1e-9
"""Rows that go to a target without any, instead of none: logarithms stay finite."""


class Harmony:
    """The loss of ``targets`` directions in ``width`` dimensions, and what it remembers of each of
    ``count`` images. It sets in after half of the ``epochs``."""

    def __init__(
        self, count: int, targets: int, width: int, epochs: int, run_key: int, device: torch.device
    ) -> None:
        draws = generator_for(torch.device("cpu"), run_key, "simplex")
        self.corners = simplex(targets, width, draws).to(device)
        self.begin = epochs // 2
        self.weight = torch.zeros((), device=device)
        self.sizes = torch.full((targets,), 1 / targets, device=device)
        """Shares of all images, by target."""
        self.directions = torch.zeros(count, targets, device=device)
        """Of each image's first views, averaged over epochs, beginning with the first."""
        self.seen = torch.zeros(count, dtype=torch.bool, device=device)
        self._step: Step = relaxed_step
        if device.type == "cuda" and can_compile(device):  # else a hundred times ten small kernels
            kernel = torch.compile(own_code(relaxed_step), fullgraph=True, dynamic=False)
            self._step = or_plain(kernel, relaxed_step)

    def at_epoch(self, epoch: int) -> None:
        """The weight of an epoch, to be set before its updates."""
        self.weight.fill_(min(1.0, max(0, epoch + 1 - self.begin) / RAMP))

    def added_to(self, found: Contrast, first: Tensor, second: Tensor) -> Contrast:
        """Loss and directions of a batch, beside its contrastive loss."""
        directions = torch.stack([self._directions(points) for points in (first, second)])
        with torch.no_grad():
            shares = transport(directions, self.sizes, self._step)
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


def check_targets(method: Method, width: int) -> None:
    """Complain where so many directions of equal angles do not exist."""
    if method.targets > width + 1:
        raise bad_value(
            "method",
            method.words,
            f"{method.targets} directions need a projection (head_out) of at least "
            f"{method.targets - 1}, not {width}; harmonise:{width + 1} would do",
        )


def simplex(corners: int, width: int, generator: torch.Generator) -> Tensor:
    """(corners, width): rows of length 1, any two with product -1 / (corners - 1), in any turn."""
    # an orthonormal basis of all that is orthogonal to (1, ..., 1)
    full = torch.cat([torch.ones(corners, 1), torch.eye(corners)[:, 1:]], dim=1).double()
    centred = torch.linalg.qr(full).Q[:, 1:]
    anyhow = torch.randn(width, corners - 1, generator=generator, dtype=torch.float64)
    turned = centred @ torch.linalg.qr(anyhow).Q.T
    return (math.sqrt(corners / (corners - 1)) * turned).float()


Step = Callable[[Tensor, Tensor, Tensor], Tensor]


def transport(directions: Tensor, sizes: Tensor, step: Step | None = None) -> Tensor:
    """Shares of rows in targets, (views, n, K), as like exp(directions / 0.05) as can be: each row
    has the sum 1, target k of each view n ``sizes[k]`` (near enough; see ``ROUNDS``). ``step``:
    ``relaxed_step``, or the same compiled."""
    step = step or relaxed_step
    count = directions.shape[1]
    # factors of single targets leave the range of float32 (a factor per row changes nothing)
    away = (directions - directions.amax(dim=2, keepdim=True)).double()
    near = torch.exp(away / SHARPNESS)
    back = near.transpose(1, 2).contiguous()
    wanted = torch.log((sizes.double() * count).clamp(min=EMPTY))[None, :, None]
    of_rows = torch.zeros_like(near[:, :, :1])
    of_targets = torch.zeros_like(back[:, :, :1])
    for _ in range(ROUNDS - 1):
        of_targets = step(back @ torch.exp(of_rows), of_targets, wanted)
        of_rows = step(near @ torch.exp(of_targets), of_rows, torch.zeros_like(wanted[:, :1]))
    # a last plain round gives each row its sum
    of_targets = wanted - torch.log(back @ torch.exp(of_rows))
    of_rows = -torch.log(near @ torch.exp(of_targets))
    return (near * torch.exp(of_rows + of_targets.transpose(1, 2))).to(directions)


def relaxed_step(sums: Tensor, before: Tensor, wanted: Tensor) -> Tensor:
    """Logarithms of factors after a step from ``before``, (views, m, 1): as far as ``sums`` say, or
    further where that is safe, which is decided for each view. (``wanted``, ``sums``: of what is
    wanted the logarithms, of what the other side gives the sums.)

    A step of size w raises the objective of the dual problem by sum a (w s - exp((w - 1) s) +
    exp(-s)), with s the plain step and a what is wanted: far from the end that may be a loss.
    """
    plain = wanted - torch.log(sums) - before

    def raised(size: float) -> Tensor:
        gains = size * plain - torch.exp((size - 1) * plain) + torch.exp(-plain)
        return (torch.exp(wanted) * gains).sum(dim=1, keepdim=True)

    return before + torch.where(raised(RELAXED) > SAFE * raised(1.0), RELAXED, 1.0) * plain
