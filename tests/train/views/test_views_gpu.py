"""A GPU makes the views that a CPU makes of the same draws, and never waits for the host."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from rarefy.train.image_batches import Scaling
from rarefy.train.views import Views
from rarefy.train.views.rand_augment import draw_augment

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

SCALING = Scaling((0.5, 0.4, 0.3), (0.2, 0.3, 0.25))
KINDS = {
    "usual": (Views.default(3, 32), 32),
    "reduced": (Views(24, blur=0.5), 40),
    "reduced a lot, by matrices": (Views(8), 80),
}


@pytest.mark.parametrize("compile_it", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_views_are_those_of_a_cpu(kind: str, compile_it: bool) -> None:
    views, side = KINDS[kind]
    images = torch.randint(0, 256, (100, 3, side, side), dtype=torch.uint8, device="cuda")
    generator = torch.Generator("cuda").manual_seed(0)
    drawn = views.draw(100, side, side, generator)
    there = views.show(images.cpu(), drawn.each(torch.Tensor.cpu), SCALING)
    wanted = there.unflatten(0, (-1, 2)).transpose(0, 1)
    # a pixel to 1e-5, divided by the least std; matrices may be rounded to TF32 if someone says so
    found = views.make(images, generator.manual_seed(0), SCALING, compile_it=compile_it)
    torch.testing.assert_close(found.cpu(), wanted, rtol=0, atol=5e-5)


@pytest.mark.parametrize("compile_it", [False, True])
def test_nothing_waits_for_the_gpu(compile_it: bool) -> None:
    views = replace(Views.default(3, 32), blur=0.5, solarise=0.1)
    images = torch.randint(0, 256, (100, 3, 32, 32), dtype=torch.uint8, device="cuda")
    generator = torch.Generator("cuda").manual_seed(0)
    options = (SCALING, torch.bfloat16, torch.channels_last, compile_it)
    rows = torch.rand(200, device="cuda", generator=generator)
    augment = draw_augment(rows, rows, generator)
    views.make(images, generator, *options, augment)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        made = views.make(images, generator, *options, augment)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert bool(torch.isfinite(made).all())
