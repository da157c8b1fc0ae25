"""InfoNCE with the gradient stopped through the second argument (000 eq. 1-2).

The other samples' partners in the batch are the negatives: B = {Y_n} and the other Y.
``factor`` multiplies the loss: 1 for (1); tau for the form used in (159), whose gradient is (21).
"""

from __future__ import annotations

import torch
from torch import Tensor


def info_nce(
    f_x: Tensor, f_y: Tensor, tau: Tensor, factor: Tensor, kept: Tensor | None = None
) -> Tensor:
    """Mean loss of a batch, (run,), for embeddings (run, sample, m); tau, factor: (run,).

    With ``kept``, (run, m), the value is the loss of the masked network, and autograd gives what
    Algorithm 1 uses in place of its gradient, (5): ``info_nce_gradient`` with the same mask.
    """
    if kept is None:
        logits = f_x @ f_y.detach().transpose(1, 2) / tau[:, None, None]
        positive = torch.diagonal(logits, dim1=1, dim2=2)
        return factor * (torch.logsumexp(logits, dim=2) - positive).mean(dim=1)
    loss, gradient = info_nce_gradient(f_x.detach(), f_y.detach(), tau, factor, kept)
    carrier = (f_x * gradient).sum(dim=(1, 2))  # linear in f(X): its gradient is the one wanted
    return loss + (carrier - carrier.detach())


def info_nce_gradient(
    f_x: Tensor, f_y: Tensor, tau: Tensor, factor: Tensor, kept: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The loss and its gradient in f(X), factor/(tau K) ((l'_p - 1) f(Y_n) + sum_s l'_s f(X_ns)).

    l'_p and l'_s, the positive and negative logits (19)-(20), are the softmax weights. With
    ``kept``, (run, m), they and the loss are the masked network's, while f(Y) and f(X_ns) stay
    whole: 000 eq. (5), in which pruned neurons are updated as if they were there.
    """
    weights, loss = softmax_weights(f_x, f_y, tau, kept)
    scale = factor / (tau * f_x.shape[1])
    return factor * loss, (torch.bmm(weights, f_y) - f_y) * scale[:, None, None]


def symmetric_info_nce(f_x: Tensor, f_y: Tensor, tau: Tensor, factor: Tensor) -> Tensor:
    """Half of the mean of the losses with X and with Y as anchors, (run,), no gradient stopped.

    Half, because where f(X) and f(Y) come from one network, near zero, it then has the gradient of
    (1), which flows through one of its arguments only: a step is as long with either.
    """
    logits = f_x @ f_y.transpose(1, 2) / tau[:, None, None]
    log_sums = torch.logsumexp(logits, dim=2) + torch.logsumexp(logits, dim=1)
    return factor * (log_sums - 2 * torch.diagonal(logits, dim1=1, dim2=2)).mean(dim=1) / 4


def symmetric_info_nce_gradient(
    f_x: Tensor, f_y: Tensor, tau: Tensor, factor: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """``symmetric_info_nce`` and its gradients in f(X) and f(Y)."""
    rows, loss_x = softmax_weights(f_x, f_y, tau)
    columns, loss_y = softmax_weights(f_y, f_x, tau)
    identity = torch.eye(f_x.shape[1], dtype=f_x.dtype, device=f_x.device)
    scale = factor / (4 * tau * f_x.shape[1])
    d_logits = (rows + columns.transpose(1, 2) - 2 * identity) * scale[:, None, None]
    loss = factor * (loss_x + loss_y) / 4
    return loss, torch.bmm(d_logits, f_y), torch.bmm(d_logits.transpose(1, 2), f_x)


def softmax_weights(
    f_x: Tensor, f_y: Tensor, tau: Tensor, kept: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Positive logits (19) on the diagonal, negative ones (20) beside it: (run, anchor, other);
    and the mean loss (1), (run,), which the same logarithm gives."""
    if kept is not None:  # leaving a neuron out of one side leaves it out of the product
        f_x = f_x * kept[:, None, :]
    logits = torch.bmm(f_x / tau[:, None, None], f_y.transpose(1, 2))
    log_sum = torch.logsumexp(logits, dim=2)
    loss = (log_sum - torch.diagonal(logits, dim1=1, dim2=2)).mean(dim=1)
    return torch.exp(logits - log_sum[:, :, None]), loss
