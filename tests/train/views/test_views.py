"""Two views of every image: the chain one by one, whatever the parts, compiled and not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rarefy.core.errors import UsageError
from rarefy.core.settings import compiler_present
from rarefy.train.image_batches import Scaling
from rarefy.train.views import Views, colour, parts
from rarefy.train.views.blur import gaussian_blur
from rarefy.train.views.view_parameters import ViewParameters

COLOUR = Scaling((0.5, 0.4, 0.3), (0.2, 0.0, 0.25))
PLAIN = Scaling((0.0,), (1.0,))
EVERYTHING = Views(12, blur=0.5, solarise=0.3, way="bicubic")
CHANGES = (colour.brightness, colour.contrast, colour.saturation, colour.hue)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int, channels: int = 3, height: int = 10, width: int = 14) -> Tensor:
    shape = (count, channels, height, width)
    return torch.randint(0, 256, shape, generator=generator(9), dtype=torch.uint8)


def one_by_one(views: Views, stored: Tensor, drawn: ViewParameters, scaling: Scaling) -> Tensor:
    """All but solarise, a view at a time with Python's own ifs."""
    made = []
    for row in range(2 * len(stored)):
        top, left, tall, wide = drawn.boxes[row].tolist()
        piece = stored[row // 2, None, :, top : top + tall, left : left + wide].float() / 255
        size = (views.size, views.size)
        view = functional.interpolate(
            piece, size, mode=views.way, align_corners=False, antialias=True
        ).clamp(0, 1)
        if drawn.mirrored[row]:
            view = view.flip(3)
        if drawn.jittered[row]:
            for which in drawn.order[row].tolist():
                view = CHANGES[which](view, drawn.factors[row, which, None])
        if drawn.greyed[row]:
            view = colour.greyscale(view)
        if drawn.blurred[row]:
            view = gaussian_blur(view, drawn.sigmas[row, None], 3)
        made.append(scaling(view, torch.float32)[0])
    return torch.stack(made).unflatten(0, (-1, 2)).transpose(0, 1)


@pytest.mark.parametrize("way", ["bilinear", "bicubic"])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_chain_is_what_it_is_one_by_one(channels: int, way: str) -> None:
    views = replace(EVERYTHING, solarise=0.0, way=way)
    stored = images(60, channels)
    scaling = COLOUR if channels == 3 else Scaling((0.4,), (0.3,))
    found = views.make(stored, generator(3), scaling)
    drawn = views.draw(60, 10, 14, generator(3))
    for gate in (drawn.mirrored, drawn.jittered, drawn.greyed, drawn.blurred):
        assert 0 < int(gate.sum()) < 120
    assert found.shape == (2, 60, channels, 12, 12)
    # the network sees a grey level of 1/255 as 0.02: 1e-5 of a pixel, divided by the least std
    wanted = one_by_one(views, stored, drawn, scaling)
    torch.testing.assert_close(found, wanted, rtol=0, atol=5e-5)


def test_solarise_comes_last() -> None:
    plain = Scaling((0.0,) * 3, (1.0,) * 3)
    never = replace(EVERYTHING, solarise=0.0).make(images(30), generator(), plain)
    always = replace(EVERYTHING, solarise=1.0).make(images(30), generator(), plain)
    assert torch.equal(always, colour.solarise(never))
    drawn = EVERYTHING.draw(30, 10, 14, generator())
    sometimes = EVERYTHING.make(images(30), generator(), plain)
    gate = drawn.solarised.reshape(30, 2).T[..., None, None, None]
    assert torch.equal(sometimes, torch.where(gate, always, never))


@pytest.mark.parametrize("at_once", [1, 4, 16])
def test_parts_make_no_difference(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # solarise is left out: it is not continuous, and sums of other shapes round otherwise
    views = replace(EVERYTHING, solarise=0.0)
    whole = views.make(images(21), generator(), COLOUR)
    monkeypatch.setitem(parts.PART_BYTES, "cpu", at_once * 2 * 3 * 144 * 4)
    assert parts.images_at_once(21, 3 * 144 * 4, torch.device("cpu")) == at_once
    in_parts = views.make(images(21), generator(), COLOUR)
    torch.testing.assert_close(in_parts, whole, rtol=0, atol=5e-5)


def test_sets_of_many_sizes_make_do_with_a_few_shapes() -> None:
    shapes = {parts.images_at_once(count, 12_288, torch.device("cuda")) for count in range(1, 9000)}
    assert shapes == {2**power for power in range(13)}


def test_the_two_views_differ_and_the_same_generator_gives_the_same() -> None:
    views = EVERYTHING.make(images(20), generator(1), COLOUR)
    assert not torch.isclose(views[0], views[1]).flatten(1).all(dim=1).any()
    assert torch.equal(views, EVERYTHING.make(images(20), generator(1), COLOUR))
    assert not torch.equal(views, EVERYTHING.make(images(20), generator(2), COLOUR))


def test_views_draw_from_no_global_generator() -> None:
    before = torch.get_rng_state()
    EVERYTHING.make(images(5), generator(), COLOUR)
    assert torch.equal(before, torch.get_rng_state())


def test_shares_are_kept() -> None:
    views = Views(8, flip=0.3, jitter_share=0.6, grey=0.1, blur=0.5, solarise=0.0)
    drawn = views.draw(10_000, 8, 8, generator())
    gates = (drawn.mirrored, drawn.jittered, drawn.greyed, drawn.blurred, drawn.solarised)
    for gate, share in zip(gates, (0.3, 0.6, 0.1, 0.5, 0.0), strict=True):
        # 20,000 coins: a standard error of at most 0.0036, five of them
        assert float(gate.double().mean()) == pytest.approx(share, abs=0.018)
    assert not bool(drawn.solarised.any())
    assert bool(replace(views, flip=1.0).draw(10_000, 8, 8, generator()).mirrored.all())


def test_crops_do_not_depend_on_the_colours_asked_for() -> None:
    with_all = EVERYTHING.draw(50, 10, 14, generator())
    without = replace(EVERYTHING, jitter=(0.0,) * 4, grey=0.0, blur=0.0).draw(
        50, 10, 14, generator()
    )
    assert torch.equal(with_all.boxes, without.boxes)
    assert torch.equal(with_all.mirrored, without.mirrored)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_views_are_of_the_type_and_layout_asked_for(dtype: torch.dtype) -> None:
    views = replace(EVERYTHING, solarise=0.0)
    last = torch.channels_last
    found = views.make(images(9), generator(), COLOUR, dtype, last)
    exact = views.make(images(9), generator(), COLOUR)
    assert found.dtype == dtype
    assert all(view.is_contiguous(memory_format=last) for view in found)
    if dtype == torch.bfloat16:
        assert torch.equal(found, exact.to(dtype))
    else:
        torch.testing.assert_close(found, exact.to(dtype), rtol=0, atol=5e-5)


def test_a_whole_image_left_alone_is_the_image() -> None:
    nothing = Views(8, (1.0, 1.0), (1.0, 1.0), 0.0, (0.0,) * 4, 0.0, 0.0)
    stored = images(6, 1, 8, 8)
    found = nothing.make(stored, generator(), PLAIN, torch.float64)
    torch.testing.assert_close(found, (stored.double() / 255).expand(2, -1, -1, -1, -1))


@pytest.mark.slow
@pytest.mark.skipif(
    not compiler_present(), reason="torch.compile needs a C++ compiler (or RAREFY_COMPILE=0 is set)"
)
# torch's own compiler uses what torch itself calls deprecated
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:`torch._prims_common.check` is:FutureWarning")
@pytest.mark.usefixtures("compiler_afresh", "quickly_compiled")
def test_compiled_views_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """The real compiler, with a last part that must be filled up; grey images, because the colours
    are half a minute for a CPU's compiler."""
    views, stored = Views.default(1, 6), images(70, 1)
    found = views.make(stored, generator(), PLAIN, compile_it=True)
    wanted = views.make(stored, generator(), PLAIN, compile_it=False)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
    assert capsys.readouterr().err == ""


def traced(views: Views, scaling: Scaling, shapes: list[int]) -> parts.Change:
    """``views`` as one graph, as a GPU gets it; the sizes of the sets it is compiled for."""

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        shapes.extend(len(one) for one in inputs if one.dtype == torch.uint8)
        return graph.forward

    def change(some: Tensor, drawn: ViewParameters) -> Tensor:
        return views.show(some, drawn, scaling)

    return parts.compiled(change, backend)


def test_everything_is_one_graph_and_one_shape() -> None:
    views, shapes = replace(EVERYTHING, solarise=0.0), []
    change = traced(views, COLOUR, shapes)
    for count in (37, 16, 21):
        out = torch.empty(2, count, 3, 12, 12)
        drawn = views.draw(count, 10, 14, generator())
        parts.in_parts(change, images(count), drawn, 16, out, same_shape=True)
        wanted = views.make(images(count), generator(), COLOUR)
        torch.testing.assert_close(out, wanted, rtol=0, atol=5e-5)
    assert shapes == [16]


def test_each_setting_is_compiled_for_itself() -> None:
    """The compiler refuses the ninth version of one function; here the second."""
    shapes: list[int] = []
    with torch._dynamo.config.patch(recompile_limit=1):
        for size in (2, 3):
            views = Views(size, jitter_share=0.0)
            drawn = views.draw(4, 10, 14, generator())
            assert traced(views, COLOUR, shapes)(images(4), drawn).shape == (8, 3, size, size)
    assert shapes == [4] * 2


def test_a_compiler_that_fails_costs_speed_only(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no headers\nhere")

    def change(some: Tensor, drawn: ViewParameters) -> Tensor:
        return views.show(some, drawn, COLOUR)

    views = Views(5, jitter_share=0.0)
    drawn, kernel = views.draw(4, 10, 14, generator()), parts.compiled(change, broken)
    for _ in range(2):
        assert torch.equal(kernel(images(4), drawn), change(images(4), drawn))
    said = capsys.readouterr().err
    assert said == "note: making views without compiled kernels (no headers)\n"


def test_usual_views() -> None:
    cifar = Views.default(3, 32)
    assert (cifar.size, cifar.scale, cifar.flip, cifar.way) == (32, (0.1, 1.0), 0.5, "bicubic")
    assert (cifar.jitter, cifar.jitter_share, cifar.grey) == ((0.4, 0.4, 0.4, 0.1), 0.8, 0.2)
    assert cifar.blur == cifar.solarise == 0
    digits = Views.default(1, 8)
    assert digits.scale == (0.4, 1.0)
    assert digits.flip == digits.jitter_share == digits.grey == digits.blur == 0
    with pytest.raises(UsageError, match="channels=4: must be 1"):
        Views.default(4, 8)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"size": 0}, "size=0: must be at least 1 pixel"),
        ({"scale": (0.0, 1.0)}, r"scale=\(0.0, 1.0\): must be two shares, 0 < low <= high <= 1"),
        ({"scale": (0.5, 0.1)}, "scale=.*: must be two shares"),
        ({"scale": (0.5, 1.5)}, "scale=.*: must be two shares"),
        ({"scale": (float("nan"), 1.0)}, "scale=.*: must be two shares"),
        ({"scale": (0.5,)}, "scale=.*: must be two shares"),
        ({"ratio": (0.0, 1.0)}, "ratio=.*: must be two numbers, 0 < low <= high"),
        ({"blur_sigma": (2.0, 1.0)}, "blur_sigma=.*: must be two numbers, 0 < low <= high"),
        ({"blur_sigma": (2.0, float("inf"))}, "blur_sigma=.*: must be two numbers"),
        ({"flip": 1.1}, "flip=1.1: must lie between 0 and 1"),
        ({"jitter_share": -0.1}, "jitter_share=-0.1: must lie between 0 and 1"),
        ({"grey": float("nan")}, "grey=nan: must lie between 0 and 1"),
        ({"blur": 2}, "blur=2: must lie between 0 and 1"),
        ({"solarise": -1}, "solarise=-1: must lie between 0 and 1"),
        ({"jitter": (0.4, 0.4, 0.4)}, "jitter=.*: must be brightness, contrast, saturation and"),
        ({"jitter": (-0.1, 0.4, 0.4, 0.1)}, "jitter=.*at least 0, hue at most 0.5"),
        ({"jitter": (0.4, 0.4, 0.4, 0.6)}, "jitter=.*at least 0, hue at most 0.5"),
        ({"way": "nearest"}, "unknown way 'nearest'"),
        ({"size": 1, "blur": 0.5}, "size=1: must be at least 2 pixels for a blur"),
    ],
)
def test_settings_that_make_no_view_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Views(**{"size": 8, **settings})


def test_images_must_be_bytes_of_one_or_three_channels() -> None:
    views = Views(8)
    with pytest.raises(UsageError, match="images='torch.float32 .*must be uint8 and .images, chan"):
        views.make(images(3).float(), generator(), COLOUR)
    with pytest.raises(UsageError, match="images=.*none of them 0"):
        views.make(images(0), generator(), COLOUR)
    with pytest.raises(UsageError, match="images=.*must be uint8 and"):
        views.make(images(3)[0], generator(), COLOUR)
    with pytest.raises(UsageError, match="channels=2: must be 1"):
        views.make(images(3, 2), generator(), COLOUR)
    with pytest.raises(UsageError, match="scaling=.*needs a mean for each of 3 channels"):
        views.make(images(3), generator(), PLAIN)
    with pytest.raises(UsageError, match="generator='cpu': must be on the images' device meta"):
        views.make(images(3).to("meta"), generator(), COLOUR)
