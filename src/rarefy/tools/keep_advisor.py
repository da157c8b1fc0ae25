"""Which keep ratio to try: a range for TopK pruning while training, from a few batches.

    advice = advise(model, batches, lr=0.05, samples=50_000)
    advice.low, advice.high

The range is 002's window (Theorem 4.4, in the form of ``theory.first_step``), measured: its lower
end is the smallest keep at which TopK still holds half of the signal energy of the gradients, its
upper end the largest at which signal makes the training loss fall as fast as memory of single
samples does. See ``theory.keep_window`` for why, and ``measure.gradient_noise`` for how.

One range for the network: both energies are sums over weights of what the loss gains, in the same
unit for every layer, so that the layers' curves are added. A layer counts by its energy, not by its
size.

*How far it can be trusted.* On 002's network it finds the law's window (see the tests). It looks at
the start of training only, and elsewhere it does not predict the best keep. On digits with pixel
noise (600 samples; a small CNN at 3 and an MLP at 4 noise levels, 5 seeds, pruned after every
update) best test accuracy was inside in four of seven settings, and so was best test loss, with
ranges of about 70 % of the keeps tried where there was one: no better than chance. With more noise
the low end rises, while the keep of best test loss falls. What did hold in the two settings where
``signal/noise`` was far below 1: no keep learnt much. Counted from the initial weights
(``updates=1``) TopK's choice knows nothing of the signal in these networks, and the range is 0.5 to
1 or empty (best accuracy inside in four of seven, best loss in two).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor, nn
from torch.nn import functional

from rarefy.core.errors import bad_value
from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.gradient_noise import GradientNoise, Loss, measure_gradients, no_signal_p_value
from rarefy.pruning.models.prunable import Layers
from rarefy.theory.keep_window import SHARE, UPPER, lower_keep, upper_keep

if TYPE_CHECKING:
    from rarefy.core.tables import Table

KEEPS = np.arange(1, 201) / 200
"""Where the curves are read, and what the range's ends are chosen from."""
DOUBT = 0.05
"""Signal is seen if its absence has a smaller p-value: the level of all intervals here."""
NOT_SEEN = "no signal seen"


@dataclass(frozen=True)
class LayerAdvice:
    """One weight, or all together: energies over ``KEEPS`` and the range that follows from them."""

    name: str
    filters: int
    filter_size: int
    """weights a filter; 0 for all layers together"""
    low: float
    """nan if no signal was seen"""
    high: float
    """0 if memory is faster at every keep; below ``low`` if no keep does well in both"""
    doubt: float
    """p-value of "there is no signal" """
    signal: np.ndarray
    """S: sum of squared mean gradients over the kept weights"""
    noise: np.ndarray
    """N: sum of their variances over the number of training samples"""

    @property
    def ratio(self) -> float:
        """S/N with nothing pruned: n SNR^2/T of 002 Prop. 5.2, measured."""
        return float(self.signal[-1] / self.noise[-1]) if self.noise[-1] > 0 else math.inf

    @property
    def seen(self) -> bool:
        return not math.isnan(self.low)


@dataclass(frozen=True)
class Advice:
    """A range of keep ratios, and what it was read from."""

    network: LayerAdvice
    layers: tuple[LayerAdvice, ...]
    samples: int
    """training samples that memory was reckoned for"""
    probed: int
    """samples whose gradients were taken"""
    lr: float
    updates: float
    upper: str

    @property
    def low(self) -> float:
        return self.network.low

    @property
    def high(self) -> float:
        return self.network.high

    @property
    def empty(self) -> bool:
        """Whether there is no range: no signal was seen, or its ends are crossed."""
        return not self.low <= self.high

    def contains(self, keep: float) -> bool:
        return self.low <= keep <= self.high

    def __str__(self) -> str:
        if not self.network.seen:
            return f"{NOT_SEEN} in {self.probed} samples (p = {self.network.doubt:.2g})"
        if self.empty:
            return (
                f"no range: half of the signal needs a keep of {self.low:.3g}, and memory is "
                f"faster than signal above {self.high:.3g}"
            )
        return f"keep between {self.low:.3g} and {self.high:.3g}"

    def table(self) -> Table:
        """A rich table, a row a layer."""
        from rarefy.core.tables import Table

        found = Table(title=str(self))
        found.add_column("weight")
        for column in ("filters", "weights each", "signal/noise", "low", "high"):
            found.add_column(column, justify="right")
        for row in self.layers:
            found.add_row(row.name, f"{row.filters}", f"{row.filter_size}", *_numbers(row))
        found.add_section()
        found.add_row("all", f"{self.network.filters}", "", *_numbers(self.network))
        return found

    def picture(self) -> Picture:
        """Both energies over the keep, all layers together, and their ratio layer by layer."""
        # without signal there is no unit to show them in: that of the noise is left
        unit = self.network.signal[-1] if self.network.seen else self.network.noise[-1]
        unit = unit if unit > 0 else 1.0
        ends = [(self.low, "low"), (self.high, "high")] if self.network.seen else []
        energies = Lines(
            [
                Curve("signal kept", KEEPS, self.network.signal / unit, role="signal"),
                Curve("memory of single samples", KEEPS, self.network.noise / unit, role="noise"),
            ],
            x_label="keep",
            y_label="energy, dense signal = 1" if self.network.seen else "energy, dense noise = 1",
            title=str(self),
            marks=ends,
        )
        rows = [row for row in self.layers if row.noise[-1] > 0]
        ratios = Lines(
            [Curve(row.name, KEEPS, row.signal / np.maximum(row.noise, 1e-300)) for row in rows],
            x_label="keep",
            y_label="signal over memory",
            title="layer by layer",
        )
        return Picture(
            name="keep-advice",
            title="Keep ratios worth trying",
            caption=f"From gradients of {self.probed} samples before training. Low: half of the "
            "signal energy is kept; high: "
            + (
                "signal and memory are equal."
                if self.upper == "balance"
                else "a further weight adds more memory than signal."
            ),
            panels=(energies, ratios),
        )


def _numbers(row: LayerAdvice) -> tuple[str, str, str]:
    if not row.seen:
        return f"{row.ratio:.3g}", NOT_SEEN, ""
    return f"{row.ratio:.3g}", f"{row.low:.3g}", f"{row.high:.3g}"


def advise(
    model: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    lr: float,
    *,
    samples: int | None = None,
    layers: Layers | None = None,
    loss: Loss = functional.cross_entropy,
    updates: float = math.inf,
    upper: str = "balance",
) -> Advice:
    """A keep range for ``Pruner(model, optimizer, keep, granularity="filter")``, before training.

    batches: (inputs, labels) as training sees them: on the model's device, normalised, noisy; 4 or
        more. Half of their samples choose what TopK keeps, so that the more the better, up to the
        size of the training set.
    lr: of plain gradient descent (Adam's first update is another one); it matters only together
        with a finite number of ``updates``.
    samples: distinct training samples; as many as in the batches if not given. Where noise or
        augmentation is drawn anew in every epoch there is less to memorise than this says.
    updates: how far weights have moved when TopK chooses, in first updates. inf: initial weights do
        not matter, as under 002's Condition 4.1, and as is true in the long run where a pruned
        weight may come back (topk-phase, ``revive``). 1: the support of the first update is final
        (``fixed``).
    upper: what ends the range, "balance" or "margin" (``theory.keep_window``).

    The model, its gradients and the random generators are left as they were.
    """
    if not 0 < lr < math.inf:
        raise bad_value("lr", lr, "must be finite and more than 0")
    if not updates > 0:
        raise bad_value("updates", updates, "must be more than 0, or inf")
    if samples is not None and samples < 1:
        raise bad_value("samples", samples, "must be at least 1")
    if upper not in UPPER:
        raise bad_value("upper", upper, f"must be one of {', '.join(UPPER)}")
    seen = measure_gradients(model, batches, layers, loss)
    return advice_from(seen, lr, samples or seen.samples, updates, upper)


def advice_from(
    seen: GradientNoise,
    lr: float,
    samples: int,
    updates: float = math.inf,
    upper: str = "balance",
) -> Advice:
    """The advice of gradients measured before: other readings of them cost next to nothing."""
    rows = []
    for layer in seen.layers:
        signal, variance = layer.kept_energies(KEEPS, lr, updates)
        shape = (layer.name, layer.filters.count, layer.filters.size)
        rows.append(
            _advised(shape, no_signal_p_value(layer.projections), signal, variance / samples, upper)
        )
    signal, noise = (
        np.sum([getattr(row, each) for row in rows], axis=0) for each in ("signal", "noise")
    )
    shape = ("all", sum(row.filters for row in rows), 0)
    network = _advised(shape, no_signal_p_value(seen.projections), signal, noise, upper)
    return Advice(network, tuple(rows), samples, seen.samples, lr, updates, upper)


def _advised(
    shape: tuple[str, int, int], p: float, signal: np.ndarray, noise: np.ndarray, upper: str
) -> LayerAdvice:
    low = lower_keep(KEEPS, signal, SHARE) if p < DOUBT else math.nan
    high = upper_keep(KEEPS, signal, noise, upper) if not math.isnan(low) else math.nan
    return LayerAdvice(*shape, low, high, p, signal, noise)
