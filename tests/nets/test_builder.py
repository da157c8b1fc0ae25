"""What all networks for images have in common, and anybody's network by ``module:callable``."""

from __future__ import annotations

import copy
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from rarefy import Pruner
from rarefy.core.errors import UsageError
from rarefy.nets.builder import NETWORKS, build

IMAGES = torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(8)


def made(name: str) -> nn.Module:
    torch.manual_seed(0)
    return build(name, 1, 8, 10)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(IMAGES), LABELS)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# ------------------------------------------------------------------------------- all that are known


@pytest.mark.quick("lenet", "cnn", "cnn-small", "vit")
@pytest.mark.parametrize("name", NETWORKS)
def test_thirty_steps_lower_the_loss(name: str) -> None:
    model = made(name)
    optimizer = (
        torch.optim.Adam(model.parameters(), 3e-3)
        if name == "vit"  # as Transformers are trained
        else torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    )
    losses = train(model, optimizer, 30)
    assert losses[-1] < 0.9 * losses[0]  # a tenth: clearly learning, whatever the rounding


@pytest.mark.quick("vit", "cnn", "lenet", "cnn-small")
@pytest.mark.parametrize("name", NETWORKS)
def test_one_seed_gives_one_network(name: str) -> None:
    first, again, other = made(name), made(name), build(name, 1, 8, 10)
    with torch.no_grad():
        assert all(torch.equal(a, b) for a, b in _pairs(first, again))
        assert not all(torch.equal(a, b) for a, b in _pairs(first, other))
        copied = copy.deepcopy(first)
        assert all(torch.equal(a, b) and a is not b for a, b in _pairs(first, copied))
        assert torch.equal(first.eval()(IMAGES), copied.eval()(IMAGES))


def parameters(model: nn.Module) -> int:
    return sum(each.numel() for each in model.parameters())


def _pairs(first: nn.Module, second: nn.Module) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return list(zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("name", NETWORKS)
def test_training_draws_nothing_from_the_global_generator(name: str) -> None:
    model = made(name)
    before = torch.get_rng_state()
    train(model, torch.optim.SGD(model.parameters(), 0.01), 1)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.quick("vit", "cnn", "lenet", "cnn-small")
@pytest.mark.parametrize("name", NETWORKS)
def test_memory_format_changes_no_answer(name: str) -> None:
    model = made(name).eval()
    wide = build(name, 3, 12, 5).eval()
    images = torch.rand(4, 3, 12, 12, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected = wide(images)
        last = wide.to(memory_format=torch.channels_last)
        found = last(images.contiguous(memory_format=torch.channels_last))
        # float32 sums of at most 4,608 products in another order
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
        with torch.autocast("cpu", torch.bfloat16):
            assert model(IMAGES).isfinite().all()


@pytest.mark.quick(
    "lenet-dense",
    "lenet-masked",
    "lenet-project",
    "cnn-dense",
    "cnn-masked",
    "cnn-project",
    "cnn-small-dense",
    "cnn-small-masked",
    "cnn-small-project",
    "vit-dense",
    "vit-masked",
    "vit-project",
)
@pytest.mark.parametrize("update", ["dense", "masked", "project"])
@pytest.mark.parametrize("name", NETWORKS)
def test_all_its_matrices_are_pruned(name: str, update: str) -> None:
    model = made(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    pruner = Pruner(model, optimizer, keep=0.3, update=update)
    matrices = {key for key, each in model.named_parameters() if each.ndim > 1} - {"place"}
    assert set(pruner.masks) == matrices
    train(model, optimizer, 1)  # masks are chosen before it and after it
    sparse = pruner.export()
    for key, each in sparse.named_parameters():
        if key in matrices:
            inputs = each[0].numel()
            stay = (each.flatten(1) != 0).sum(dim=1)
            assert stay.max() <= round(0.3 * inputs) + 1 and stay.sum() > 0, key
    with torch.no_grad(), pruner.masked() as masked:
        expected = masked.eval()(IMAGES)
        assert torch.equal(sparse.eval()(IMAGES), expected)


def test_wrong_names_and_numbers() -> None:
    with pytest.raises(UsageError, match="unknown network 'resnet'; did you mean 'resnet9'.*lenet"):
        build("resnet", 1, 8, 10)
    with pytest.raises(UsageError, match="your own: module:callable"):
        build("", 1, 8, 10)
    with pytest.raises(UsageError, match="size=7: must be a whole number, at least 8"):
        build("cnn", 1, 7, 10)
    with pytest.raises(UsageError, match="channels=0: must be a whole number, at least 1"):
        build("cnn", 0, 8, 10)
    with pytest.raises(UsageError, match="classes=True: must be a whole number"):
        build("cnn", 1, 8, True)


# ----------------------------------------------------------------------------------- somebody's own

Written = Callable[[str], str]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Writes a module into an empty current folder and gives its name, a new one each time."""
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> str:
        name = f"somebodys_{abs(hash(tmp_path))}_{len(list(tmp_path.iterdir()))}"
        head = "import torch\nfrom torch import nn\n"
        (tmp_path / f"{name}.py").write_text(head + textwrap.dedent(text))
        return name

    return write


def test_a_callable_gets_what_it_takes(written: Written) -> None:
    name = written("""
        def linear(num_classes, img_size, bias=True):
            return nn.Sequential(nn.Flatten(), nn.Linear(img_size**2, num_classes, bias=bias))
        class Mean(nn.Module):
            def __init__(self, in_channels, /, *rest, classes, **others):
                super().__init__()
                assert not rest and not others
                self.head = nn.Linear(in_channels, classes)
            def forward(self, x):
                return self.head(x.mean((2, 3)))
            @staticmethod
            def of_two(depth=2, /, in_chans=1, n_classes=2):
                assert depth == 2
                return Mean(in_chans, classes=n_classes)
        """)
    path = list(sys.path)
    assert parameters(build(f"{name}:linear", 1, 5, 3)) == 78
    assert build(f"{name}:Mean", 3, 8, 7)(torch.rand(1, 3, 8, 8)).shape == (1, 7)
    assert build(f"{name}:Mean.of_two", 3, 8, 7)(torch.rand(1, 3, 8, 8)).shape == (1, 7)
    assert sys.path == path


def test_what_is_imported_late_is_found_too(written: Written) -> None:
    other = written(
        "def net(classes):\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))"
    )
    name = written(f"def net(classes):\n    import {other}\n    return {other}.net(classes)")
    assert isinstance(build(f"{name}:net", 1, 8, 4), nn.Sequential)


def test_the_trial_leaves_no_trace(written: Written) -> None:
    name = written("""
        class Odd(nn.Module):
            def __init__(self, channels, classes):
                super().__init__()
                self.norm, self.rest = nn.BatchNorm2d(channels), nn.Dropout(0.5).eval()
                self.head = nn.Linear(channels, classes)
                self.register_buffer("calls", torch.zeros(()))
                self.register_buffer("last", torch.zeros(1))
            def forward(self, x):
                self.calls += 1
                self.last = x.mean()
                x = nn.functional.dropout(self.norm(x), 0.5, training=True)
                return self.head(self.rest(x).mean((2, 3)))
        """)
    torch.manual_seed(0)
    model = build(f"{name}:Odd", 3, 8, 7)
    after = torch.get_rng_state()
    torch.manual_seed(0)
    fresh = type(model)(3, 7)
    assert torch.equal(torch.get_rng_state(), after)
    assert model.training and model.norm.training and not model.rest.training  # type: ignore[union-attr]
    for key, value in fresh.state_dict().items():
        assert torch.equal(model.state_dict()[key], value), key
    assert torch.equal(torch.get_rng_state(), after)
    assert all(each.grad is None and each.requires_grad for each in model.parameters())


def test_a_lazy_network_knows_its_shape_afterwards(written: Written) -> None:
    name = written("""
        def net(classes):
            return nn.Sequential(
                nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(classes)
            )
        """)
    model = build(f"{name}:net", 3, 8, 5)
    assert parameters(model) == 4 * 28 + 8 + 5 * (4 * 36 + 1)


BROKEN = """
    number = 3
    model = nn.Linear(3, 3)
    def more(classes, width): pass
    def fails(classes): raise KeyError("no\\nluck")
    def leaves(): raise SystemExit
    def text(classes): return "net"
    def fixed(): return nn.Sequential(nn.Flatten(), nn.Linear(48, 4))
    def tuple_(classes): return Answer(lambda x: (x, x))
    def other(): return Answer(lambda x: torch.zeros(len(x), 9))
    def whole(classes): return Answer(lambda x: torch.zeros(len(x), classes).long())
    class Answer(nn.Module):
        def __init__(self, answer):
            super().__init__()
            self.forward = answer
"""


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("numbr", "there is no 'numbr' in '{name}'; did you mean 'number'[?]"),
        ("Answer.nothing", "there is no 'nothing' in '{name}'$"),
        ("number", "is not callable, but int"),
        ("model", "is a network; name the class or function that makes one"),
        ("more", "needs 'width', but what can be given is: channels or in_channels.*; size or"),
        ("fails", r"called with \(classes=4\) it raised KeyError: 'no\\nluck'$"),
        ("leaves", r"called with \(\) it raised SystemExit$"),
        ("text", "must return a torch.nn.Module, not str"),
        ("fixed", "given images of 3 x 8 x 8 it raised RuntimeError: mat1 and mat2"),
        ("tuple_", r"must return \(2, 4\) numbers for 2 images of 3 x 8 x 8, not tuple"),
        ("other", r"must return \(2, 4\) numbers for 2 images of 3 x 8 x 8, not \(2, 9\)"),
        ("whole", r"must return \(2, 4\) numbers .* of a floating type, not torch.int64"),
        ("", "must be module:callable, such as my_nets:small"),
        ("a b", "must be module:callable"),
    ],
)
def test_what_somebody_may_have_done_wrong(written: Written, what: str, words: str) -> None:
    name, path = written(BROKEN), list(sys.path)
    with pytest.raises(UsageError, match=words.format(name=name)) as found:
        build(f"{name}:{what}", 3, 8, 4)
    assert str(found.value).startswith(f"network='{name}:{what}': ")
    assert "\n" not in str(found.value) and sys.path == path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "import no_such_thing",
            "importing '{name}' raised ModuleNotFoundError: No module named 'no",
        ),
        ("1 / 0", "importing '{name}' raised ZeroDivisionError: division by zero"),
        ("def :", "importing '{name}' raised SyntaxError: "),
        ("raise SystemExit(3)", "importing '{name}' raised SystemExit: 3"),
    ],
)
def test_modules_that_cannot_be_imported(written: Written, text: str, words: str) -> None:
    name, path = written(text), list(sys.path)
    with pytest.raises(UsageError, match=words.format(name=name)) as found:
        build(f"{name}:net", 3, 8, 4)
    assert "\n" not in str(found.value) and sys.path == path


def test_modules_that_are_not_there() -> None:
    with pytest.raises(UsageError, match="no module 'no_such_module', neither installed nor in"):
        build("no_such_module:net", 3, 8, 4)
    with pytest.raises(UsageError, match="no module 'rarefy.nets.none', neither installed nor"):
        build("rarefy.nets.none:net", 3, 8, 4)
    for file in ("nets.py:net", "some/nets:net"):
        with pytest.raises(UsageError, match="before the colon stands a module"):
            build(file, 3, 8, 4)
    with pytest.raises(UsageError, match="its parameters cannot be read"):
        build("builtins:iter", 3, 8, 4)
    with pytest.raises(UsageError, match="size=0: must be a whole number, at least 1"):
        build("builtins:iter", 3, 0, 4)
