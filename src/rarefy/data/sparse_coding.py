"""Sparse-coding tokens with features of unequal frequency (000 Assumptions 3.1-3.4, Def. 3.1).

A sample has L tokens x = M z + xi. Feature j is present in a sample with probability
``activation * eps_j``; its sign is one for the whole sample (Assumption 3.2 ii), and ``spread``
says on which tokens it shows. A positive pair shares support and sign of the summed latent
(Assumption 3.4); the tokens and the noise are drawn afresh for each of the two. With ``instance``
part of the noise is the sample's own instead, the same wherever the sample is seen, as the content
of an image that is in all its crops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws

SPREADS = ("one", "subset", "all")


@dataclass(frozen=True)
class Pairs:
    """A batch of positive pairs: view 0 is X_n, view 1 its partner Y_n.

    tokens: (run, view, sample, token, d1); latents: (run, view, sample, token, d).
    """

    tokens: Tensor
    latents: Tensor

    @property
    def x(self) -> Tensor:
        return self.tokens[:, 0]

    @property
    def y(self) -> Tensor:
        return self.tokens[:, 1]

    def present(self) -> Tensor:
        """Which features a sample contains: (run, sample, d), boolean."""
        return self.latents[:, 0].abs().amax(dim=2) > 0

    def signature(self) -> Tensor:
        """Sign of the summed latent, what a pair shares: (run, sample, d), values -1, 0, 1."""
        return self.latents[:, 0].sum(dim=2).sign()


class FreshPairs(Pairs):
    """Pairs whose noise is drawn when their tokens are asked for."""

    def __init__(
        self,
        draw: Callable[[], Tensor],
        show: Callable[[Tensor], tuple[Tensor, Tensor, Tensor] | None],
        latents: Tensor,
    ) -> None:
        self.__dict__.update(_draw=draw, shown_to=show, latents=latents)

    shown_to: Callable[[Tensor], tuple[Tensor, Tensor, Tensor] | None]
    """What neurons, (run, m, d1), see of tokens that nobody asks for (``Draws.shown_views``)."""
    _draw: Callable[[], Tensor]

    @cached_property
    def tokens(self) -> Tensor:
        return self._draw()


def frequencies(majority: int, minority: int, eps_min: Tensor, eps_max: float = 1.0) -> Tensor:
    """How often each feature shows: frequent ones first, then rare ones.

    Arguments:
        majority, minority: how many features of each kind.
        eps_min: of the rare ones, (run,).
        eps_max: of the frequent ones.

    Returns:
        (run, feature).

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> rarefy.lab.frequencies(2, 1, draws.per_run(0.3))[0]
        tensor([1.0000, 1.0000, 0.3000])
    """
    level = torch.cat([torch.full((majority,), eps_max), torch.full((minority,), torch.nan)])
    level = level.to(eps_min)
    return torch.where(torch.isnan(level), eps_min[:, None], level)


def dictionary(draws: Draws, d1: int, d: int) -> Tensor:
    """A random column-orthonormal M, uniform over such matrices up to the signs of its columns
    (LAPACK's choice), which symmetric latents make irrelevant.

    Arguments:
        draws: one key per run.
        d1, d: dimensions of a token, and features.

    Returns:
        (run, d1, d).

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> rarefy.lab.dictionary(draws, d1=100, d=9).shape
        torch.Size([3, 100, 9])
    """
    if not 1 <= d <= d1:
        raise bad_value("d", d, f"needs 1 <= d <= d1, and d1={d1}")
    # float64 on the CPU whatever the run's dtype: orthonormal to the last place, once per run
    gauss = draws.normal("dictionary", (d1, d)).to("cpu", torch.float64)
    orthonormal = torch.linalg.qr(gauss).Q
    return orthonormal.to(draws.keys.device, draws.dtype)


@dataclass(frozen=True)
class Companions:
    """Features that come together: with chance ``share``, (run,), the presence of feature j is
    decided by the same coin as that of feature ``of[j]`` (of[j] = j: by its own, as always).

    The frequencies of single features stay as they are; a rarer feature whose coin is its
    companion's appears only together with it. Signs stay independent.
    """

    of: Sequence[int]
    share: Tensor

    def check(self, d: int) -> None:
        """Refuse what is not a companion for each of ``d`` features."""
        if len(self.of) != d or not all(0 <= j < d for j in self.of):
            raise bad_value("companions", tuple(self.of), f"needs a feature 0..{d - 1} for each")
        if any(self.of[j] != j for j in self.of):
            raise bad_value("companions", tuple(self.of), "a companion must not follow another one")
        for value in self.share.flatten().tolist():
            if not 0 <= value <= 1:
                raise bad_value("share", value, "must be in [0, 1]: it is a chance")


@dataclass(frozen=True)
class SparseCoding:
    """Positive pairs of sparse-coding tokens, features of unequal frequency (Liao et al.).

    Arguments:
        dictionary: (run, d1, d).
        eps: (run, d), frequencies in (0, 1].
        sigma: (run,), std of the noise.
        activation: presence probability of a feature with eps = 1.
        tokens: of a sample.
        spread: on which tokens a feature shows: one, subset or all.
        companions: features that come together (None: supports are independent, as the papers
            assume).
        instance: (run,), share of the noise's variance that all tokens of a pair have in common
            (None: as the papers).

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> atoms = rarefy.lab.dictionary(draws, d1=100, d=9)
        >>> eps = rarefy.lab.frequencies(5, 4, draws.per_run(0.3))
        >>> data = rarefy.lab.SparseCoding(atoms, eps, sigma=draws.per_run(0.03))
        >>> data.sample(draws, 64, step=0).tokens.shape  # run, view, sample, token, d1
        torch.Size([3, 2, 64, 2, 100])
    """

    dictionary: Tensor
    eps: Tensor
    sigma: Tensor
    activation: float = 0.3
    tokens: int = 2
    spread: str = "all"
    companions: Companions | None = None
    instance: Tensor | None = None

    def __post_init__(self) -> None:
        check_sparse_coding(
            self.eps.flatten().tolist(),
            self.sigma.flatten().tolist(),
            self.activation,
            self.tokens,
            self.spread,
        )
        for value in [] if self.instance is None else self.instance.flatten().tolist():
            if not 0 <= value <= 1:
                raise bad_value("instance", value, "must be in [0, 1]: it is a share")
        if self.companions is not None:
            self.companions.check(self.eps.shape[1])

    def latents(self, draws: Draws, samples: int, step: int, views: int = 2) -> Tensor:
        """Latents of ``views`` positive views of each sample: (run, view, sample, token, d)."""
        L = self.tokens
        signed = self._signed_support(draws, samples, step)
        shape = (views, samples, 1, self.eps.shape[1])
        token = torch.arange(L, device=signed.device)[:, None]
        if self.spread == "one":
            shown = draws.integers("token", L, shape, step) == token
        elif self.spread == "subset":  # a non-empty subset of the tokens, uniformly
            chosen = draws.integers("token", 2**L - 1, shape, step) + 1
            shown = ((chosen >> token) & 1) == 1
        else:
            return signed[:, None, :, None, :].expand(-1, views, -1, L, -1)
        return signed[:, None, :, None, :] * shown

    def _signed_support(self, draws: Draws, samples: int, step: int) -> Tensor:
        """-1, 0 or 1 for every feature of a sample: (run, sample, d)."""
        shape = (samples, self.eps.shape[1])
        chance = (self.activation * self.eps)[:, None, :]
        if self.companions is None:
            return draws.sign_with_chance("support", chance, shape, step)
        coin = draws.uniform("support", shape, step)
        together = draws.uniform("companion", shape, step) < self.companions.share[:, None, None]
        coin = torch.where(together, coin[:, :, list(self.companions.of)], coin)
        return (coin < chance) * draws.sign("sign", shape, step)

    def sample(self, draws: Draws, samples: int, step: int) -> Pairs:
        """``samples`` positive pairs, fresh for every step."""
        return self.seen(draws, self.content(draws, samples, step), step)

    def content(self, draws: Draws, samples: int, step: int) -> Pairs:
        """Pairs before the noise of their tokens: (run, 1 or view, sample, 1 or token, d1), once
        where it is alike for all."""
        d1 = self.dictionary.shape[1]
        latents = self.latents(draws, samples, step)
        # what all tokens of a sample share is multiplied with the dictionary once
        distinct = latents[:, :1, :, :1] if self.spread == "all" else latents
        flat = distinct.reshape(len(draws), -1, distinct.shape[-1])
        signal = torch.bmm(flat, self.dictionary.transpose(1, 2)).reshape(*distinct.shape[:-1], d1)
        if self.instance is not None:
            std, nothing = (
                self.sigma * self.instance.sqrt(),
                signal.new_zeros(len(draws), 1, 1, 1, 1),
            )
            # of two views the first: a sample's numbers then do not depend on how many are drawn
            own = draws.normal_views("instance", (samples, 1, d1), step, std, nothing)[:, :1]
            signal = signal + own
        return Pairs(signal, latents)

    def seen(self, draws: Draws, pairs: Pairs, step: int, noisy: Tensor | None = None) -> Pairs:
        """``content`` with the noise of each token, in the runs of ``noisy``, (run,), alone."""
        shape = (pairs.tokens.shape[2], self.tokens, pairs.tokens.shape[4])
        std = self.sigma if self.instance is None else self.sigma * (1 - self.instance).sqrt()
        std = std if noisy is None else torch.where(noisy, std, 0.0)
        given = "noise", shape, step, std, pairs.tokens
        return FreshPairs(
            partial(draws.normal_views, *given), partial(draws.shown_views, *given), pairs.latents
        )


def check_sparse_coding(
    eps: Sequence[float], sigma: Sequence[float], activation: float, tokens: int, spread: str
) -> None:
    """Refuse values outside the model, by name."""
    if not 0 < activation <= 1:
        raise bad_value("activation", activation, "must be in (0, 1]: it is a probability")
    for value in eps:
        if not 0 < value <= 1:
            raise bad_value("eps", value, "a feature frequency must be in (0, 1]")
    for value in sigma:
        if not 0 <= value < float("inf"):
            raise bad_value("sigma", value, "the noise std must be finite and at least 0")
    if not 1 <= tokens <= 30:
        raise bad_value("tokens", tokens, "must be between 1 and 30")
    if spread not in SPREADS:
        raise bad_value("spread", spread, f"must be one of {', '.join(SPREADS)}")
