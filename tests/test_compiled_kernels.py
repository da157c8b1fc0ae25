"""Compiled kernels give what eager code gives, and where none can be built, work goes on without.

They are compiled in one file, and so as a rule in one process of the tests: to wake torch's
compiler costs as much as a kernel. Each is compiled once, for any number of runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from drawn_cells import CELLS
from small_contrastive import small

from rarefy.core.compilation import built, compiled
from rarefy.core.normals import by_torch, normal_pairs
from rarefy.core.rng import Draws
from rarefy.core.settings import compiler_present
from rarefy.pruning.update_rules import rule_codes
from rarefy.train.neuron_pruning import NeuronPruning
from rarefy.train.two_branches import TwoBranches

RUNS = (3, 5)

pytestmark = [
    pytest.mark.skipif(
        not compiler_present(),
        reason="torch.compile needs a C++ compiler (or RAREFY_COMPILE=0 is set)",
    ),
    # torch's own compiler uses what torch itself calls deprecated
    pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`torch._prims_common.check` is:FutureWarning"),
]


@pytest.fixture(autouse=True)
def once() -> Iterator[None]:
    """To compile anything again for another number of runs is an error."""
    with torch._dynamo.config.patch(error_on_recompile=True):
        yield


@pytest.mark.usefixtures("drawn_by_numpy")
@pytest.mark.parametrize("shape", [(9, 3, 37), (4000,), (3, 1001), (2, 3, 2, 5)])
def test_draws_by_cpp_by_numpy_and_by_torch_are_the_same_bits(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rarefy.core.normals._CHUNK", 2000)  # two runs at once, or part of one
    draws, scale = Draws(CELLS[:3]), torch.linspace(0.01, 3.0, 3)
    origin = draws._origin("noise", 3)
    alike = draws.normal("offset", (1, *shape[:1], *(1,) * (len(shape) - 1)))
    each = draws.normal("offset", (2, *reversed(shape)))
    each = each.permute(0, 1, *range(len(shape) + 1, 1, -1))  # the last axis is not a row
    for offset in (None, alike, each):
        expected = by_torch(*origin, scale, shape, offset)
        for compile_kernels in (False, True):
            found = normal_pairs(*origin, scale, shape, offset, compile_kernels)
            assert torch.equal(found.view(torch.int32), expected.view(torch.int32))


@pytest.mark.parametrize(
    ("samples", "tokens", "width", "neurons"), [(5, 1, 37, 7), (4, 3, 600, 41)]
)
def test_neurons_are_shown_the_pairs_that_would_be_drawn(
    samples: int, tokens: int, width: int, neurons: int
) -> None:
    draws, scale = Draws(CELLS[:3], compile_kernels=True), torch.linspace(0.1, 3.0, 3)
    weights, shape = draws.normal("weights", (neurons, width)), (samples, tokens, width)
    for offset in (draws.normal("o", (1, samples, 1, width)), draws.normal("o", (2, *shape))):
        given = "noise", shape, 3, scale, offset
        views = draws.normal_views(*given).double()
        found = draws.shown_views(*given, weights)
        assert found is not None
        seen, products, first = (each.double() for each in found)
        assert torch.equal(first, views[:, 0])
        expected = torch.einsum("rvstd,rmd->rvstm", views, weights.double())
        torch.testing.assert_close(seen, expected, rtol=1e-5, atol=1e-4)
        torch.testing.assert_close(products, views @ views.mT, rtol=1e-5, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "pruned", "masked branch"])
def test_the_compiled_gradient_is_the_eager_one_to_float32(
    kind: str, request: pytest.FixtureRequest
) -> None:
    torch._dynamo.reset()  # the first two are two kernels of one function
    request.getfixturevalue("quickly_compiled" if kind == "pruned" else "once")
    for runs in RUNS:
        case = small(runs=runs, bias=0.2, tau=0.7, factor=1.3, dtype=torch.float32)
        batch = case.data.sample(case.draws, 8, step=0)
        problem = case.problem
        if kind == "masked branch":
            problem = TwoBranches(**vars(problem), keep=0.4)
        if kind == "pruned":
            start, share = torch.zeros(runs, dtype=torch.int64), torch.linspace(0, 0.75, runs)
            pruning = NeuronPruning(share, start, rule_codes(["dense"] * runs), 4)
            problem = replace(problem, pruning=pruning)
            pruning.before(0, case.parameters)
        loss, expected = problem.gradients(case.parameters, batch)
        found_loss, found = replace(problem, compile_kernels=True).gradients(case.parameters, batch)
        torch.testing.assert_close(found_loss, loss, rtol=1e-5, atol=0)
        largest = float(expected["weights"].abs().max())
        torch.testing.assert_close(
            found["weights"], expected["weights"], rtol=1e-5, atol=1e-6 * largest
        )
        plain = case.problem.gradients(case.parameters, batch)[1]["weights"]
        apart = (expected["weights"] - plain).abs().max()
        assert apart == 0 if kind == "plain" else apart > 1e-3 * largest


def test_a_compiler_that_fails_costs_speed_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which vector units there are is asked once, and not of this compiler."""
    import torch._inductor.config as inductor  # late: a second of imports

    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x + 1

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    x = torch.arange(6.0).reshape(2, 3)
    with inductor.patch({"cpp.cxx": ("/bin/false",), "cpp.vec_isa_ok": True}):
        for each in (x, x + 1):
            assert torch.equal(compiled(twice)(each), twice(each))
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("going on without compiled kernels") == 1


@pytest.mark.usefixtures("drawn_by_numpy")
def test_a_compiler_that_builds_nothing_costs_the_draws_speed_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "/bin/false")
    built.cache_clear()
    try:
        for _ in range(2):
            found = Draws(CELLS[:2], compile_kernels=True).normal("noise", (9,))
            assert torch.equal(found, Draws(CELLS[:2]).normal("noise", (9,)))
    finally:
        built.cache_clear()
    assert capsys.readouterr().err.count("going on without normals.cpp") == 1


def test_a_network_is_compiled_once_whatever_its_last_layer_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One graph: what it is made into is not asked."""
    from rarefy.nets.backbones import Headed
    from rarefy.train.supervised import _compiled

    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model: real(model, backend="eager"))
    torch._dynamo.reset()
    images = torch.randn(4, 6)
    for classes in (3, 5, 7):  # (compiling again would be an error)
        model = Headed(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU()), 8, classes)
        torch.testing.assert_close(_compiled(model)(images), model(images))
