"""Two random views of every image: what contrastive learning compares.

The usual chain (SimCLR, BYOL): crop and resize, mirror, jitter of colours, greyscale, blur,
solarise; then what the network sees. Parameters are drawn for every view on its own from a
generator on the images' device; nothing waits for the device, and on a GPU the chain is compiled
into a few passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from rarefy.core.errors import bad_value, unknown
from rarefy.core.settings import can_compile
from rarefy.train.image_batches import Scaling
from rarefy.train.views.blur import default_taps, draw_sigmas, gaussian_blur
from rarefy.train.views.colour import (
    HUE,
    Planes,
    check_channels,
    chosen,
    draw_jitter,
    grey_planes,
    jitter_planes,
    solarise,
)
from rarefy.train.views.crop import REACH, draw_crops, resized_crop
from rarefy.train.views.parts import SMALLEST, Change, compiled, images_at_once, in_parts
from rarefy.train.views.rand_augment import Augment, rand_augment
from rarefy.train.views.view_parameters import VIEWS, ViewParameters


@dataclass(frozen=True)
class Views:
    """How a view is made of an image.

    size: of a view, in pixels; scale, ratio: of the crop, as shares of the image's area and as
        width over height; way: of interpolation.
    jitter: most that brightness, contrast, saturation and hue may change.
    flip, jitter_share, grey, blur, solarise: in what share of the views it happens.
    """

    size: int
    scale: tuple[float, float] = (0.1, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    jitter: tuple[float, float, float, float] = (0.4, 0.4, 0.4, 0.1)
    jitter_share: float = 0.8
    grey: float = 0.2
    blur: float = 0.0
    blur_sigma: tuple[float, float] = (0.1, 2.0)
    solarise: float = 0.0
    way: str = "bilinear"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise bad_value("size", self.size, "must be at least 1 pixel")
        if not (len(self.scale) == 2 and 0 < self.scale[0] <= self.scale[1] <= 1):
            raise bad_value("scale", self.scale, "must be two shares, 0 < low <= high <= 1")
        for name in ("ratio", "blur_sigma"):
            pair = getattr(self, name)
            if not (len(pair) == 2 and 0 < pair[0] <= pair[1] < float("inf")):
                raise bad_value(name, pair, "must be two numbers, 0 < low <= high")
        for name in ("flip", "jitter_share", "grey", "blur", "solarise"):
            if not 0 <= getattr(self, name) <= 1:
                raise bad_value(name, getattr(self, name), "must lie between 0 and 1")
        if not (
            len(self.jitter) == 4
            and all(0 <= amount < float("inf") for amount in self.jitter)
            and self.jitter[HUE] <= 0.5
        ):
            raise bad_value(
                "jitter",
                self.jitter,
                "must be brightness, contrast, saturation and hue, at least 0, hue at most 0.5",
            )
        if self.way not in REACH:
            raise unknown("way", self.way, REACH)
        if self.blur and default_taps(self.size) // 2 >= self.size:
            raise bad_value("size", self.size, "must be at least 2 pixels for a blur")

    @classmethod
    def default(cls, channels: int, size: int) -> Views:
        """For colour images what SDCLR does to CIFAR; for grey ones (digits, say), in which a
        mirrored image or a tenth of one may be another thing, larger crops and nothing else."""
        check_channels(channels)
        if channels == 1:
            nothing = (0.0, 0.0, 0.0, 0.0)
            return cls(size, scale=(0.4, 1.0), flip=0.0, jitter=nothing, jitter_share=0.0, grey=0.0)
        return cls(size, way="bicubic")

    def draw(
        self, count: int, height: int, width: int, generator: torch.Generator
    ) -> ViewParameters:
        """Parameters for both views of ``count`` images of ``height`` x ``width``."""
        rows = VIEWS * count
        boxes = draw_crops(rows, height, width, self.scale, self.ratio, generator)
        factors, order = draw_jitter(rows, self.jitter, generator)
        sigmas = draw_sigmas(rows, self.blur_sigma, generator)
        coins = torch.rand(5, rows, generator=generator, device=generator.device)
        shares = (self.flip, self.jitter_share, self.grey, self.blur, self.solarise)
        mirrored, jittered, greyed, blurred, solarised = (
            coin < share for coin, share in zip(coins, shares, strict=True)
        )
        return ViewParameters(
            boxes, mirrored, factors, order, jittered, greyed, sigmas, blurred, solarised
        )

    def show(
        self,
        images: Tensor,
        drawn: ViewParameters,
        scaling: Scaling,
        dtype: torch.dtype = torch.float32,
        memory_format: torch.memory_format = torch.contiguous_format,
    ) -> Tensor:
        """The views of ``images`` (uint8, or floats in [0, 1]) that were drawn, in their order:
        (rows, c, size, size). Parts that never happen cost nothing."""
        views = resized_crop(images, drawn.boxes, self.size, drawn.mirrored, self.way)
        if images.dtype == torch.uint8:
            views = views / 255
        if self.way == "bicubic":
            views = views.clamp(0.0, 1.0)
        planes: Planes = views.flatten(2).unbind(1)
        if self.jitter_share and any(self.jitter):
            changed = jitter_planes(planes, drawn.factors, drawn.order)
            planes = chosen(drawn.jittered[:, None], changed, planes)
        if self.grey and len(planes) == 3:
            planes = chosen(drawn.greyed[:, None], grey_planes(planes), planes)
        if self.blur:
            planes = self._blurred(planes, drawn)
        if self.solarise:
            inverted = tuple(solarise(plane) for plane in planes)
            planes = chosen(drawn.solarised[:, None], inverted, planes)
        if drawn.augment is not None:
            views = torch.stack(planes, dim=1).unflatten(2, (self.size, self.size))
            planes = rand_augment(views, drawn.augment).flatten(2).unbind(1)
        return self._as_seen(planes, scaling, dtype, memory_format)

    def _blurred(self, planes: Planes, drawn: ViewParameters) -> Planes:
        views = torch.stack(planes, dim=1).unflatten(2, (self.size, self.size))
        views = gaussian_blur(views, drawn.sigmas, default_taps(self.size))
        return chosen(drawn.blurred[:, None], views.flatten(2).unbind(1), planes)

    def _as_seen(
        self,
        planes: Planes,
        scaling: Scaling,
        dtype: torch.dtype,
        memory_format: torch.memory_format,
    ) -> Tensor:
        """As ``Scaling`` does it, with numbers instead of tensors, which would have to be sent to
        the device first."""
        seen = [
            ((plane - mean) / (std or 1.0)).to(dtype)
            for plane, mean, std in zip(planes, scaling.mean, scaling.std, strict=True)
        ]
        if memory_format == torch.channels_last:
            return torch.stack(seen, dim=2).unflatten(1, (self.size, -1)).permute(0, 3, 1, 2)
        return torch.stack(seen, dim=1).unflatten(2, (self.size, -1))

    @torch.no_grad()
    def make(
        self,
        images: Tensor,
        generator: torch.Generator,
        scaling: Scaling,
        dtype: torch.dtype = torch.float32,
        memory_format: torch.memory_format = torch.contiguous_format,
        compile_it: bool | None = None,
        augment: Augment | None = None,
    ) -> Tensor:
        """Both views of ``images`` (n, c, h, w), uint8, as the network sees them:
        (2, n, c, size, size) on their device. The more images at once, the less a GPU waits.

        memory_format: of each view, that is of ``views[0]`` and ``views[1]``.
        compile_it: None compiles on a GPU, where a part of a minute is well spent.
        augment: what RandAugment does to the views in the end, rows as in ``ViewParameters``.
        """
        self._check(images, generator, scaling)
        count, channels, height, width = images.shape
        drawn = self.draw(count, height, width, generator)._replace(augment=augment)
        # the type that is computed in is the one asked for, where that is wider than float32
        if dtype == torch.float64:
            images = images.double() / 255
        out = torch.empty(
            (VIEWS * count, channels, self.size, self.size),
            dtype=dtype,
            device=images.device,
            memory_format=memory_format,
        ).unflatten(0, (VIEWS, count))
        if compile_it is None:
            compile_it = images.is_cuda
        compile_it = compile_it and can_compile(images.device)
        change = _change(self, scaling, dtype, memory_format, compile_it)
        image_bytes = channels * max(height * width, self.size**2) * 4
        at_once = images_at_once(count, image_bytes, images.device)
        if compile_it:
            at_once = max(SMALLEST, at_once)
        return in_parts(change, images, drawn, at_once, out, same_shape=compile_it)

    def _check(self, images: Tensor, generator: torch.Generator, scaling: Scaling) -> None:
        if images.ndim != 4 or images.dtype != torch.uint8 or 0 in images.shape:
            raise bad_value(
                "images",
                f"{images.dtype} {tuple(images.shape)}",
                "must be uint8 and (images, channels, height, width), none of them 0",
            )
        check_channels(images.shape[1])
        if len(scaling.mean) != images.shape[1]:
            raise bad_value(
                "scaling", scaling, f"needs a mean for each of {images.shape[1]} channels"
            )
        if generator.device.type != images.device.type:
            raise bad_value(
                "generator", str(generator.device), f"must be on the images' device {images.device}"
            )


@cache
def _change(
    views: Views,
    scaling: Scaling,
    dtype: torch.dtype,
    memory_format: torch.memory_format,
    compile_it: bool,
) -> Change:
    def change(images: Tensor, drawn: ViewParameters) -> Tensor:
        return views.show(images, drawn, scaling, dtype, memory_format)

    return compiled(change) if compile_it else change
