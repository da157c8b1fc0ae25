"""Random factors on the weights of the second branch, as strong as the masks they stand for."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.pruning.models.pruner import Pruner
from rarefy.train.image_batches import generator_for


class Disturbance:
    """In the branch, ``w f`` in place of ``w`` with factors ``f`` drawn anew for every update.

    With r the share of a layer's squared norm that the mask in force leaves out,
    r = sum of w^2 over what is left out / sum of w^2 over the layer, at the weights as they are:

    dropout     f = 1 with probability 1 - r, else 0 (Wan et al. 2013, "DropConnect", not rescaled:
                masks are not either)
    noise       f = 1 + sqrt(r) n, with n standard normal

    Why so: a mask moves a layer's weights by |w - w f|^2 = r |w|^2, and both of these do so in
    expectation. What is left of the mask is its strength, layer by layer and as it changes in
    training; what is gone is that it is a function of the weights, spares the large ones, and stays
    for an epoch. If it is the disturbance that helps, these help as much.

    The mask is the one that the method would use: chosen when it would be chosen, by what competes
    there. Gradients pass through the factor as they pass through a mask.

    Factors stay in the same tensors and are written between updates, never inside one: compiled
    and recorded updates read what is there. Draws are keyed by run and update: a training that was
    stopped goes on with those that it would have had, and all processes draw the same.
    """

    def __init__(self, pruner: Pruner, kind: str, run_key: int) -> None:
        self.branch, self.kind, self.run_key = pruner.masked_branch, kind, run_key
        weights = {name: each.parameter for name, each in self.branch.pruned.items()}
        # (in the memory layout of the weight, as masks are)
        self.branch.factors = {name: torch.ones_like(one.data) for name, one in weights.items()}

    @torch.no_grad()
    def strengths(self) -> Tensor:
        """r of every layer: (layer,), on the device."""
        pruned = self.branch.pruned.values()
        weights = [each.parameter.detach() for each in pruned]
        kept = torch._foreach_mul(weights, [each.kept for each in pruned])
        left, whole = (torch.stack(torch._foreach_norm(one)) for one in (kept, weights))
        # (a layer of zeros can be disturbed by any factor)
        return (1 - (left / whole.clamp(min=torch.finfo(whole.dtype).tiny)).square()).clamp(0, 1)

    @torch.no_grad()
    def draw(self, step: int) -> None:
        """Factors of an update, into their places."""
        shares = self.strengths()
        draws = generator_for(shares.device, self.run_key, "disturbance", step)
        for factor, share in zip(self.branch.factors.values(), shares, strict=True):
            if self.kind == "dropout":
                factor.uniform_(generator=draws).lt_(1 - share)
            else:
                factor.normal_(generator=draws).mul_(share.sqrt()).add_(1)
