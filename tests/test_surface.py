"""What ``import rarefy`` gives: results opened and drawn, types that hold in users' programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr
from matplotlib.figure import Figure

import rarefy
from pages.reference import entries
from rarefy.studies import get_study

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stores") / "store"
    rarefy.run("contrast-dynamics", "tiny", seeds=2, out=made)
    return made


def test_load_opens_files_folders_stores_and_addresses(store: Path) -> None:
    committed = rarefy.load(RESULTS)
    assert isinstance(committed, rarefy.Results) and len(committed) == len(list(committed)) > 50
    one = committed["contrast-init-paper"]
    assert one.identical(rarefy.load(RESULTS / "contrast-init-paper.json"))
    assert one.identical(rarefy.load(RESULTS, "contrast-init-paper"))
    assert set(one.dims) == set(one.coords)
    there = rarefy.load(f"file://{store}")
    assert isinstance(there, xr.Dataset) and there.equals(rarefy.load(store))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("absent",), "path='absent': there is no such file or folder"),
        ((RESULTS, "contrast-int-paper"), "did you mean 'contrast-init-paper'?"),
        ((RESULTS / "contrast-init-paper.parquet", "x"), "name='x': is for a folder of results"),
        ((ROOT / "docs",), f"path={str(ROOT / 'docs')!r} is a folder that is not a rarefy store"),
    ],
)
def test_load_says_what_is_wrong(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(rarefy.UsageError, match=re.escape(said)):
        rarefy.load(*arguments)


def test_plain_xarray_opens_a_store_with_the_coordinates_of_its_cells(store: Path) -> None:
    plain = xr.open_zarr(store, consolidated=False)
    assert {"eps_min", "seed", "done"} <= set(plain.coords)
    grid = plain.load().reset_coords(["key", "done", "run_seconds"], drop=True)
    grid = grid.set_index(run=["eps_min", "seed"]).unstack("run")
    mine = rarefy.load(store)
    assert isinstance(mine, xr.Dataset)
    xr.testing.assert_equal(grid["t1"].transpose("eps_min", "seed"), mine["t1"])


def test_plot_draws_datasets_and_files_and_a_notebook_shows_it(store: Path) -> None:
    file = RESULTS / "contrast-init-paper.parquet"
    results = rarefy.load(store)
    assert isinstance(results, xr.Dataset)
    for what in (store, str(file), results):
        figure = rarefy.plot(what)
        assert isinstance(figure, Figure) and figure.get_suptitle()
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    pictures = get_study("contrast-dynamics").at("tiny", seeds=2).picture(results)
    assert rarefy.plot(results, pictures[-1].name).get_suptitle() == pictures[-1].title


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"picture": "nothing"}, "unknown picture of contrast-dynamics 'nothing'"),
        ({"picture": 99}, "picture=99: contrast-dynamics has"),
    ],
)
def test_plot_says_what_is_wrong(store: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(rarefy.UsageError, match=re.escape(said)):
        rarefy.plot(store, **options)
    with pytest.raises(rarefy.UsageError, match="are several; name one"):
        rarefy.plot(RESULTS)
    with pytest.raises(rarefy.UsageError, match="are no results of a study"):
        rarefy.plot(xr.Dataset())


PROGRAM = """
import numpy as np
import torch
import rarefy

results = rarefy.run("contrast-init", scale="tiny", seeds=2)
print(rarefy.judge("contrast-init", results)[0].outcome.upper(), results.sizes["seed"] + 1)
rarefy.plot(results).savefig("a.png")
opened = rarefy.load("results", "contrast-init-paper")
print(opened.attrs, rarefy.plot(rarefy.load("results")))
found = rarefy.train("digits", keep=(0.5, 0.3), epochs=1)
print(found.decision.sentence.upper(), found.finished)
learnt: rarefy.PretrainedBackbone = rarefy.pretrain(np.zeros((8, 1, 8, 8), "uint8"))
print(learnt.features(torch.zeros(8, 1, 8, 8, dtype=torch.uint8)).shape[0] + 1)
print(rarefy.checkup("digits").sentence.upper(), rarefy.granularity("digits").advice.sentence)
model = torch.nn.Linear(8, 4)
pruner = rarefy.Pruner(
    model, torch.optim.SGD(model.parameters()), keep=0.5, schedule=rarefy.pruning.constant(10)
)
print(pruner.keep + 1, pruner.export().eval())
draws = rarefy.lab.Draws(range(8))
print(rarefy.lab.dictionary(draws, d1=100, d=9).shape, draws.per_run(0.1) + 1)
try:
    rarefy.influence([[1.0]], [1])
except rarefy.UsageError as error:
    print(error.exit_code + 1)
"""
WRONG = """
rarefy.run("contrast-init", seeds="two")
rarefy.judge("contrast-init", results)[0].outcom
rarefy.plot(3)
rarefy.Pruner(model)
rarefy.lab.descend()
rarefy.absent_name
"""


MYPY = """
[mypy]
strict = True
follow_imports = silent
# no public name has a type of theirs, and to read them takes longer than all the rest
[mypy-torch._decomp.*,torch._dynamo.*,torch._export.*,torch._functorch.*,torch._inductor.*,torch._refs.*,torch._subclasses.*,torch.ao.*,torch.distributed.*,torch.distributions.*,torch.export.*,torch.fx.*,torch.onnx.*,dask.*,distributed.*,onnx.*,onnx_ir.*,onnxscript.*,rich.*,tornado.*]
follow_imports = skip
"""


@pytest.mark.slow
def test_users_programs_are_checked_by_mypy_strict(tmp_path: Path) -> None:
    """A program that uses every public name has no error; each line of a wrong one has its own."""
    right, wrong, settings = (tmp_path / name for name in ("right.py", "wrong.py", "mypy.ini"))
    names = "".join(f"print({entry.name})\n" for entry in entries())
    right.write_text(PROGRAM + names, encoding="utf-8")
    wrong.write_text(PROGRAM + WRONG, encoding="utf-8")
    settings.write_text(MYPY, encoding="utf-8")
    cache = ROOT / ".mypy_cache" / "users"  # (ten seconds the first time)
    command = [sys.executable, "-m", "mypy", f"--config-file={settings}", f"--cache-dir={cache}"]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    said = subprocess.run(
        [*command, str(right), str(wrong)], capture_output=True, text=True, env=environment
    ).stdout
    assert "right.py" not in said, said
    lines = PROGRAM.count("\n") + 1
    found = {int(line) for line in re.findall(r"wrong\.py:(\d+): error", said)}
    assert found == set(range(lines + 1, lines + WRONG.count("\n"))), said
