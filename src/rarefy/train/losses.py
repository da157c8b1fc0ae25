"""InfoNCE with the gradient stopped through the second argument (000 eq. 1-2).

The other samples' partners in the batch are the negatives: B = {Y_n} and the other Y.
``factor`` multiplies the loss: 1 for (1); tau for the form used in (159), whose gradient is (21).
"""

from __future__ import annotations

import torch
from torch import Tensor


def info_nce(f_x: Tensor, f_y: Tensor, tau: Tensor, factor: Tensor) -> Tensor:
    """Mean loss of a batch, (run,), for embeddings (run, sample, m); tau, factor: (run,)."""
    logits = f_x @ f_y.detach().transpose(1, 2) / tau[:, None, None]
    positive = torch.diagonal(logits, dim1=1, dim2=2)
    return factor * (torch.logsumexp(logits, dim=2) - positive).mean(dim=1)


def info_nce_gradient(
    f_x: Tensor, f_y: Tensor, tau: Tensor, factor: Tensor
) -> tuple[Tensor, Tensor]:
    """The loss and its gradient in f(X), factor/(tau K) ((l'_p - 1) f(Y_n) + sum_s l'_s f(X_ns)).

    l'_p and l'_s, the positive and negative logits (19)-(20), are the softmax ``weights``.
    """
    logits = torch.bmm(f_x / tau[:, None, None], f_y.transpose(1, 2))
    log_sum = torch.logsumexp(logits, dim=2)
    loss = factor * (log_sum - torch.diagonal(logits, dim1=1, dim2=2)).mean(dim=1)
    weights = torch.exp(logits - log_sum[:, :, None])
    scale = factor / (tau * f_x.shape[1])
    return loss, (torch.bmm(weights, f_y) - f_y) * scale[:, None, None]
