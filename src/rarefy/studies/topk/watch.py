"""What is seen of a state: signal and noise held by the filters, losses, balance of residuals."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.contracts import Context, Output
from rarefy.measure.coefficients import Coefficients, accumulated_coefficients
from rarefy.measure.generalisation import sample_losses, scores_of
from rarefy.studies.topk.unpruned import Unpruned
from rarefy.train.descent import State

ALONG = (
    Output("train_loss", ("read",), "mean cross-entropy of the training samples"),
    Output("test_loss", ("read",), "mean cross-entropy on fresh samples"),
    Output("test_error", ("read",), "share of fresh samples not classified right"),
    Output("balance", ("read",), "largest over smallest residual 1 - p_y of training samples"),
    Output("gamma", ("read",), "own signal, mean over filters that began on its positive side"),
    Output("gamma_low", ("read",), "the same, least over filters and classes"),
    Output("gamma_high", ("read",), "the same, largest"),
    Output(
        "rho", ("read",), "own samples' noise, mean over filters that began on its positive side"
    ),
    Output("rho_low", ("read",), "the same, least over filters and samples"),
    Output("rho_high", ("read",), "the same, largest"),
)
AT_END = (
    Output("signal_learnt", (), "largest gamma of a class's filters, least over classes"),
    Output("noise_learnt", (), "largest rho of a class's filters, least over classes"),
    Output("gamma_all", (), "largest |gamma| of all filters and signals"),
    Output("rho_all", (), "largest |rho| of all filters and samples"),
    Output("noise_active", (), "filters of a sample's class that respond to its noise, share"),
)


def held_by(trial: Unpruned, parameters: dict[str, Tensor]) -> Coefficients:
    return accumulated_coefficients(parameters["coefficients"], trial.samples)


def spread(values: Tensor, among: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, least and largest over all but the run axis where ``among``; NaN where nowhere."""
    flat, there = values.flatten(1), among.flatten(1)
    count = there.sum(dim=1)
    some = count > 0
    mean = torch.where(there, flat, 0.0).sum(dim=1) / count
    low = torch.where(there, flat, torch.inf).amin(dim=1)
    high = torch.where(there, flat, -torch.inf).amax(dim=1)
    return mean, torch.where(some, low, torch.nan), torch.where(some, high, torch.nan)


class Watch:
    """Trackers of one batch: ``along`` for every read, ``at_end`` for the last state."""

    def __init__(self, trial: Unpruned, test_samples: int, context: Context) -> None:
        self.trial, self.test_samples, self.context = trial, test_samples, context
        self.signal, self.noise = trial.seen_signal(), trial.seen_noise()
        self.one_hot = trial.samples.one_hot()

    def along(self, state: State) -> Tensor:
        """(run, output), in the order of ``ALONG``."""
        trial, filters = self.trial, state.parameters["filters"]
        loss, _ = sample_losses(
            scores_of(filters, trial.samples, trial.scale), trial.samples.labels
        )
        residual = -torch.expm1(-loss)
        test = trial.test(filters, self.test_samples, self.context)
        held = held_by(trial, state.parameters)
        return torch.stack(
            [
                loss.mean(dim=1),
                test.loss,
                test.error,
                residual.amax(dim=1) / residual.amin(dim=1),
                *spread(held.own_gamma, self.signal),
                *spread(held.own_rho(self.one_hot), self.noise),
            ],
            dim=1,
        )

    def at_end(self, parameters: dict[str, Tensor]) -> Tensor:
        """(run, output), in the order of ``AT_END``."""
        held = held_by(self.trial, parameters)
        active = self.trial.seen_noise(parameters["filters"])
        return torch.stack(
            [
                held.gamma.amax(dim=(2, 3)).amin(dim=1),
                held.rho.amax(dim=(2, 3)).amin(dim=1),
                held.gamma.abs().amax(dim=(1, 2, 3)),
                held.rho.abs().amax(dim=(1, 2, 3)),
                active.to(held.rho.dtype).mean(dim=(1, 2)),
            ],
            dim=1,
        )
