"""What was stored before a parameter or an axis got another name is read, gone on with and kept."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import xarray as xr

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import UsageError
from rarefy.studies import get_study
from rarefy.sweep.results import check_folder, read_results, write_results
from rarefy.sweep.runner import execute
from rarefy.sweep.spec import spec_hash, spec_of
from rarefy.sweep.store import open_store

RESULTS = Path(__file__).parents[2] / "results"


class Walk(Experiment):
    name: ClassVar[str] = "walk"
    title: ClassVar[str] = "A walk"
    scales: ClassVar[dict[str, dict[str, Any]]] = {"tiny": {"seeds": 2}}

    def outputs(self) -> tuple[Output, ...]:
        return (Output("end"),)

    def coordinates(self) -> dict[str, np.ndarray]:
        return {}

    def cost(self) -> Cost:
        return Cost(1000, 1)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        chance = cells.draws(context).normal("noise", (1,), 0)[:, 0].cpu().numpy()
        return {"end": np.asarray(cells.values[self.axes[0]], dtype=np.float64) + chance}


@dataclass(frozen=True, kw_only=True)
class Before(Walk):
    axes: ClassVar[tuple[str, ...]] = ("way", "sigma")
    random_axes: ClassVar[tuple[str, ...]] = ("way",)

    way: tuple[float, ...] = (0.0, 0.5)
    sigma: tuple[float, ...] = (1.0,)
    watched: int = 3


@dataclass(frozen=True, kw_only=True)
class Now(Walk):
    axes: ClassVar[tuple[str, ...]] = ("algorithm", "sigma")
    random_axes: ClassVar[tuple[str, ...]] = ("algorithm",)
    renamed: ClassVar[dict[str, str]] = {"way": "algorithm", "watched": "evaluations"}

    algorithm: tuple[float, ...] = (0.0, 0.5)
    sigma: tuple[float, ...] = (1.0,)
    evaluations: int = 3


def ran(kind: type[Walk], out: Path, **parameters: Any) -> xr.Dataset:
    return execute(kind.at("tiny", **parameters), "tiny", "cpu", out=out).dataset


def test_an_old_store_opens_with_the_names_of_today_and_is_extended(tmp_path: Path) -> None:
    old = ran(Before, tmp_path / "store")
    store = open_store(tmp_path / "store", lambda name: Now)
    assert store.study == Now.at("tiny")
    expected = old.rename(way="algorithm")
    assert store.read().drop_attrs().identical(expected.drop_attrs())
    more = ran(Now, tmp_path / "store", seeds=4)
    assert more.attrs["cells_done"] == more.attrs["cells"] == 8
    assert more["end"].isel(seed=[0, 1]).drop_attrs().identical(expected["end"].drop_attrs())
    # draws depend on the values of an axis, not on its name
    assert more["end"].identical(ran(Now, tmp_path / "new", seeds=4)["end"])
    assert (tmp_path / "store" / "way").is_dir() and not (tmp_path / "store" / "algorithm").exists()
    assert open_store(tmp_path / "store", lambda name: Now).read().identical(more)
    with pytest.raises(UsageError, match="was made with evaluations=3, not 5"):
        ran(Now, tmp_path / "store", evaluations=5)


def test_a_damaged_old_store_is_mended_under_its_own_names(tmp_path: Path) -> None:
    whole = ran(Before, tmp_path / "store")
    (chunk,) = (tmp_path / "store" / "way" / "c").iterdir()
    was = chunk.read_bytes()
    chunk.write_bytes(b"torn")
    open_store(tmp_path / "store", lambda name: Now).repair()
    assert chunk.read_bytes() == was and not (tmp_path / "store" / "algorithm").exists()
    again = ran(Now, tmp_path / "store")
    np.testing.assert_array_equal(again["end"].values, whole["end"].values)


def test_old_results_are_read_and_may_be_written_again(tmp_path: Path) -> None:
    old = ran(Before, tmp_path / "store")
    path = write_results(Before.at("tiny"), "tiny", old, tmp_path)
    study, _, found = read_results(path, lambda name: Now)
    assert study == Now.at("tiny") and found["end"].dims == ("algorithm", "sigma", "seed")
    np.testing.assert_allclose(found["end"].values, old["end"].values, rtol=1e-5)
    assert json.loads(found.attrs["parameters"]).keys() == {
        *("seeds", "algorithm", "sigma", "evaluations")
    }
    check_folder(study, "tiny", "float32", tmp_path)
    write_results(study, "tiny", found, tmp_path)
    assert read_results(path, lambda name: Now)[2].identical(found)


def test_hashes_stay_what_they_were() -> None:
    before, now = (spec_of(kind.at("tiny"), "float32") for kind in (Before, Now))
    assert spec_hash(before) == spec_hash(now, Now.renamed) == spec_hash(before, Now.renamed)
    assert spec_hash(now) != spec_hash(before)


@pytest.mark.parametrize(
    ("name", "former", "today"),
    [
        ("longtail-table-cifar10-keep-100", ("way", "watched"), ("algorithm", "evaluations")),
    ],
)
def test_committed_results_are_of_before(
    name: str, former: tuple[str, ...], today: tuple[str, ...]
) -> None:
    described = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    stored = described["spec"]["parameters"]
    study, _, found = read_results(RESULTS / f"{name}.json", get_study)
    assert former[0] in described["cell_dims"] and today[0] in found.dims
    for before, now in zip(former, today, strict=True):
        value = getattr(study, now)
        assert stored[before] == (list(value) if isinstance(value, tuple) else value)
    spec = spec_of(study, "float32")
    younger = {*spec["parameters"]} - {*today} - {*stored}
    for parameter in younger:  # (the study has its default, which no hash then knew)
        del spec["parameters"][parameter]
    assert spec_hash(spec, study.renamed) == described["attributes"]["spec_hash"]
