"""Hierarchical multi-view samples (004 Def. 4.1-4.4, App. B.1): patches with common features,
subclass features and noise; hard samples without common features but with distractions.

Everything is written in the coordinates of the dictionary: coordinate 0 is v_+, 1 is v_-, then come
the subclasses' features, those of + first. Neurons begin as isotropic Gaussian vectors and noise is
isotropic too, so no generality is lost. Positions of patches in a sample are not drawn: a network
that adds up over patches cannot see them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws

COUNTS = ("fixed", "drawn")
PLUS, MINUS = 0, 1
Layout = tuple[tuple[int, str], ...]
"""Of ``MultiViewSamples``."""


@dataclass(frozen=True)
class MultiViewSamples:
    """A batch of samples, leading axis run.

    subclass: (run, n), 0..k_+ + k_- - 1; patches: (run, n, slot, d), those that hold something;
    feature: coordinate of the feature that dominates each, -1 for none, (run, n, slot); noise: the
    other patches of every sample, (run, n, rest, d), drawn when called; sigma: their std;
    strongest: bound of the strength of features.

    layout: slots in a row and the feature each run of them has where it has any: "own side",
    "other side", "subclass", or "none"; empty where slots hold whatever comes. grouped: the number
    of features, if there is a layout and samples are sorted by subclass, equally many of each; else
    0.
    """

    subclass: Tensor
    patches: Tensor
    feature: Tensor
    noise: Callable[[], Tensor]
    rest: int
    sigma: float
    strongest: float
    layout: Layout = ()
    grouped: int = 0


@dataclass(frozen=True)
class MultiView:
    """The data model. plus, minus: k_+, k_-; patches: P; feature_patches: s*; spread: iota, so that
    strengths lie in [sqrt(1 - iota), sqrt(1 + iota)]; sigma: of the noise in every patch.

    Hard samples: ``distractors`` patches (s^dagger) with the other side's common feature, of
    strength in ``distraction``, and one patch of noise with std ``strong``.

    counts: "fixed", s* patches of each kind, or "drawn": each patch holds the common feature with
    probability s*/P, each other one the subclass's with s*/(P - |common|), as App. B.1 has it.
    """

    d: int
    patches: int
    plus: int
    minus: int
    feature_patches: int
    spread: float = 0.0
    sigma: float = 0.02
    distractors: int = 2
    distraction: tuple[float, float] = (0.3, 0.3)
    strong: float = 0.3
    counts: str = "fixed"

    def __post_init__(self) -> None:
        for name in ("plus", "minus", "feature_patches"):
            if getattr(self, name) < 1:
                raise bad_value(name, getattr(self, name), "must be at least 1")
        features = 2 + self.plus + self.minus
        if features > self.d:
            raise bad_value(
                "d", self.d, f"must be at least 2 + k_+ + k_- = {features}: features are orthogonal"
            )
        # a hard sample has distractors and a strong patch in the place of common features
        most = self.feature_patches + max(self.feature_patches, self.distractors + 1)
        if most > self.patches:
            raise bad_value(
                "feature_patches",
                self.feature_patches,
                f"its samples need {most} patches, there are {self.patches}",
            )
        if not 0 <= self.spread < 1:
            raise bad_value("spread", self.spread, "must be in [0, 1)")
        for name in ("sigma", "strong"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise bad_value(name, getattr(self, name), "must be finite and at least 0")
        low, high = self.distraction
        if not 0 <= low <= high < float("inf"):
            raise bad_value("distraction", self.distraction, "must be two rising finite strengths")
        if self.distractors < 0:
            raise bad_value("distractors", self.distractors, "must be at least 0")
        if self.counts not in COUNTS:
            raise bad_value("counts", self.counts, f"must be one of {', '.join(COUNTS)}")

    @property
    def subclasses(self) -> int:
        return self.plus + self.minus

    def superclass(self, subclass: Tensor) -> Tensor:
        """0 for +, 1 for -."""
        return (subclass >= self.plus).long()

    def balanced(self, count: int) -> Tensor:
        """Subclasses of a batch in which both sides, and the subclasses of a side, are equally
        frequent (App. B.1, 9), sorted: (count,)."""
        for side in (self.plus, self.minus):
            if count < 2 * side or count % (2 * side):
                raise bad_value(
                    "batch", count, f"must be a multiple of 2 k = {2 * side}: equal subclasses"
                )
        place = torch.arange(count // 2)
        first, second = (place * side // (count // 2) for side in (self.plus, self.minus))
        return torch.cat([first, self.plus + second])

    def grouped(self, views: MultiViewSamples) -> MultiViewSamples:
        """The same, if ``views`` are samples of equally many of each subclass, sorted: told that
        their patches come in groups of one feature."""
        alike = bool(views.layout) and self.plus == self.minus
        return replace(views, grouped=2 + self.subclasses if alike else 0)

    def sample(
        self,
        draws: Draws,
        subclass: Tensor,
        hard: bool = False,
        stream: str = "train",
        step: int = 0,
    ) -> MultiViewSamples:
        """Easy or hard samples of given subclasses, (run or 1, n)."""
        runs, n = len(draws), subclass.shape[-1]
        subclass = subclass.to(draws.keys.device).expand(runs, -1)
        kind, layout = self._kinds(draws, (runs, n), hard, stream, step)
        slots = kind.shape[2]
        own = 2 + subclass[:, :, None]
        side = self.superclass(subclass)[:, :, None]
        feature = torch.where(kind == _SUBCLASS, own, torch.where(kind == _COMMON, side, -1))
        feature = torch.where(kind == _DISTRACTION, 1 - side, feature)
        if hard:
            patches = self._noise(draws, f"{stream} patches", (n, slots), step, 1.0)
            scale = torch.where(kind == _STRONG, self.strong, self.sigma).to(patches)
            patches.mul_(scale[..., None])
        else:
            patches = self._noise(draws, f"{stream} patches", (n, slots), step, self.sigma)
        place = feature.clamp(min=0)[..., None]
        strength = self._strengths(draws, kind, stream, step).to(patches)
        patches.scatter_add_(3, place, strength[..., None])
        rest = self.patches - slots

        def noise() -> Tensor:
            return self._noise(draws, f"{stream} noise", (n, rest), step, self.sigma)

        strongest = max((1 + self.spread) ** 0.5, self.distraction[1])
        given = (subclass, patches, feature, noise, rest, self.sigma, strongest, layout)
        return MultiViewSamples(*given)

    def _noise(
        self, draws: Draws, stream: str, shape: tuple[int, int], step: int, sigma: float
    ) -> Tensor:
        """(run, n, slot, d), in memory slot by slot: networks take it in that order."""
        n, slots = shape
        std = torch.full((len(draws),), sigma, device=draws.keys.device)
        return draws.normal(stream, (slots, n, self.d), step, std).transpose(1, 2)

    def _kinds(
        self, draws: Draws, shape: tuple[int, int], hard: bool, stream: str, step: int
    ) -> tuple[Tensor, Layout]:
        """What each slot holds, (run, n, slot), and the layout."""
        s, device = self.feature_patches, draws.keys.device
        if self.counts == "fixed":
            first: tuple[tuple[int, int], ...] = ((s, _COMMON),)
            if hard:
                first = ((1, _STRONG), (self.distractors, _DISTRACTION))
            parts = tuple(part for part in (*first, (s, _SUBCLASS)) if part[0])
            row = torch.tensor([kind for count, kind in parts for _ in range(count)], device=device)
            return row.expand(*shape, -1), tuple((count, _HOLDS[kind]) for count, kind in parts)
        size = (shape[1], self.patches)
        common = draws.uniform(f"{stream} common", size, step) < s / self.patches
        left = self.patches - common.sum(dim=2, keepdim=True)
        own = ~common & (draws.uniform(f"{stream} own", size, step) < s / left.clamp(min=1))
        if not hard:
            return self._sorted((s, _COMMON, common), own)
        left = (~own).sum(dim=2, keepdim=True).clamp(min=1)
        chosen = draws.uniform(f"{stream} distractors", size, step) < self.distractors / left
        return self._sorted((self.distractors, _DISTRACTION, ~own & chosen), own, strong=1)

    def _sorted(
        self, first: tuple[int, int, Tensor], own: Tensor, strong: int = 0
    ) -> tuple[Tensor, Layout]:
        """Patches by kind: a strong one, those of the ``first`` kind (how many are expected, kind,
        which), noise, and those with the subclass's feature last. Each kind has ``_SPARE`` room or
        all there is, and a layout if all samples fit into it."""
        expected, kind, which = first
        count, owned = (each.sum(dim=2, keepdim=True) for each in (which, own))
        one = strong * (count + owned < self.patches)  # a noise patch is left to be strong
        room, last = (2 * mean + _SPARE for mean in (expected, self.feature_patches))
        if strong + room + last <= self.patches:
            count, owned = count.clamp(max=room), owned.clamp(max=last)
        else:
            room = (self.patches - strong) // 2
            last = self.patches - strong - room
        slots = strong + room + last
        place = torch.arange(slots, device=own.device)
        found = torch.where(place < one, _STRONG, _NOISE)
        found = torch.where((place >= one) & (place < one + count), kind, found)
        found = torch.where(place >= slots - owned, _SUBCLASS, found)
        fits = (count + one <= strong + room) & (owned <= last)
        parts = ((strong, _STRONG), (room, kind), (last, _SUBCLASS))
        layout = tuple((size, _HOLDS[each]) for size, each in parts if size)
        return found, layout if bool(fits.all()) else ()

    def _strengths(self, draws: Draws, kind: Tensor, stream: str, step: int) -> Tensor:
        where = draws.uniform(f"{stream} strengths", tuple(kind.shape[1:]), step)
        low, high = (1 - self.spread) ** 0.5, (1 + self.spread) ** 0.5
        feature = low + (high - low) * where
        low, high = self.distraction
        distraction = low + (high - low) * where
        strength = torch.where(kind == _DISTRACTION, distraction, feature)
        return torch.where((kind == _NOISE) | (kind == _STRONG), 0.0, strength)


_NOISE, _COMMON, _SUBCLASS, _DISTRACTION, _STRONG = range(5)
_SPARE = 16
"""Of drawn counts with mean s, room for 2 s and so many more: one sample in ten thousand million
has more, and loses what is too much."""
_HOLDS = {
    _COMMON: "own side",
    _DISTRACTION: "other side",
    _SUBCLASS: "subclass",
    _STRONG: "none",
}
