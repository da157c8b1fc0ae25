"""The studies of 003 without vectors: at any d, in any batch, and who may not."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from same_law import assert_same_laws

import rarefy
from rarefy.core.contracts import Cells, Context, Study
from rarefy.core.errors import UsageError
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

BenignCorrelation: Any = get_study("benign-correlation")
BenignFeatures: Any = get_study("benign-features")
BenignHomogeneous: Any = get_study("benign-homogeneous")
BenignTail: Any = get_study("benign-tail")
BenignTraining: Any = get_study("benign-training")

pytestmark = pytest.mark.usefixtures("eager")

HUGE = 10**9
LARGE = 10**5
"""Up to this d vectors are stored, unless asked otherwise."""
FLOAT64 = Context(dtype=torch.float64)
STUDIES: dict[str, dict[str, Any]] = {
    "benign-correlation": {"law": ("gaussian",)},
    "benign-features": {},
    "benign-homogeneous": {},
    "benign-majority": {},
    "benign-mixing": {},
    "benign-sizes": {},
    "benign-tail": {},
    "benign-training": {},
}
every_study = pytest.mark.parametrize("name", STUDIES)


def tiny(name: str, d: int, **more: Any) -> Any:
    """With filters that begin small against one sample's noise, whatever d is."""
    where: dict[str, Any] = {"d": d}
    if name == "benign-homogeneous":
        where = {"dimension": (d, 2 * d)}
    if name == "benign-training":
        where |= {"wide_d": d, "small_sigma_0": 0.1 / d**0.5}
    begin = {"initialisation": "gaussian", "sigma_0": 0.3 / d**0.5, "form": "dual"}
    return get_study(name).at("tiny", **{**STUDIES[name], **where, **begin, **more})


def whole_grid(study: Study, context: Context = FLOAT64) -> dict[str, np.ndarray]:
    grid = grid_of(study)
    return study.simulate(grid.cells(np.arange(len(grid))), context)


# --------------------------------------------------------------------------- a billion coordinates


@pytest.mark.quick("benign-tail", "benign-mixing", "benign-correlation")
@every_study
def test_a_study_runs_in_a_billion_coordinates(name: str) -> None:
    """From simulation to verdicts and tables, and nothing of d numbers is made on the way."""
    study = tiny(name, HUGE, seeds=1)
    assert study.cost().bytes_per_cell < 10**7
    found = rarefy.run(type(study), scale="tiny", device="cpu", **_changed(study))
    assert (found["nonfinite_step"] == -1).all()
    for output in study.outputs():
        values = found[output.name].values
        if name == "benign-training":  # each case measures its part, some only once trained
            continue
        assert np.isfinite(values).all(), output.name
    if name == "benign-training":
        for part in ("lr", "loss_at", "rank_share", "active_least", "memory_own"):
            assert found[part].notnull().any(), part
        np.testing.assert_allclose(found["first_drop"].sel(case="slow"), 1, rtol=0.35)
    assert study.verdicts(found, "tiny") and study.picture(found)
    for table in study.tables(found):
        assert table.rows


def _changed(study: Study) -> dict[str, Any]:
    """The parameters in which it differs from its scale."""
    usual = type(study).at("tiny").parameters()
    return {name: value for name, value in study.parameters().items() if usual[name] != value}


@pytest.mark.quick("benign-tail", "benign-mixing", "benign-correlation", "benign-sizes")
@every_study
def test_a_cell_is_the_same_alone_and_in_any_batch(name: str) -> None:
    """Though axes are counted by study, and kinds of noise may be without directions in a run."""
    study = tiny(name, HUGE, seeds=1)
    grid = grid_of(study)
    together = whole_grid(study)
    for row in np.unique(np.linspace(0, len(grid) - 1, 4).astype(int)):
        alone = study.simulate(grid.cells(np.array([row])), FLOAT64)
        for output, values in alone.items():
            size = np.nanmax(np.abs(np.where(np.isfinite(together[output]), together[output], 0)))
            np.testing.assert_allclose(
                values[0], together[output][row], rtol=0, atol=1e-9 * size, err_msg=output
            )


def test_sizes_share_initial_filters_and_test_samples() -> None:
    study = tiny("benign-sizes", HUGE)
    cells = grid_of(study).cells(np.array([0]))
    both = []
    for size in study.size:
        both.append(
            study.setup(
                cells,
                FLOAT64,
                spectrum=BenignHomogeneous(d=HUGE, classes=3).spectrum(1.0),
                strength=torch.ones(1, dtype=torch.float64),
                sizes=torch.full((1, 3), size),
                room=3 * max(study.size),
            )
        )
    assert torch.equal(both[0].initial, both[1].initial)
    assert torch.equal(both[0].fresh(30, 0).noise, both[1].fresh(30, 0).noise)


# ----------------------------------------------------------------------------------- who does what


def test_auto_does_without_vectors_only_where_it_can_and_must() -> None:
    plain = BenignCorrelation()
    assert plain.form == "auto" and not plain.without_vectors()
    gaussian = dataclasses.replace(plain, initialisation="gaussian")
    assert not gaussian.without_vectors()
    assert not dataclasses.replace(gaussian, d=LARGE).without_vectors()
    large = dataclasses.replace(gaussian, d=LARGE + 1)
    assert large.without_vectors() and not large.without_vectors("uniform")
    assert not dataclasses.replace(large, form="primal").without_vectors()
    assert dataclasses.replace(gaussian, form="dual").without_vectors()


@pytest.mark.parametrize("form", ["auto", "primal", "dual"])
def test_the_form_decides_how_a_study_trains(form: str) -> None:
    study = tiny("benign-tail", 60, form=form)
    cells = grid_of(study).cells(np.arange(2))
    experiment = study.setup(
        cells,
        FLOAT64,
        spectrum=study.spectrum(4.0),
        strength=torch.ones(2, dtype=torch.float64),
        sizes=torch.full((1, 3), 4),
    )
    assert experiment.form == form and experiment.spectrum.d.tolist() == [60]
    assert experiment.initial.shape[3] == (60 if form != "dual" else 6 + 12 + 18)


def test_rates_mean_the_same_above_a_thousand_coordinates() -> None:
    study = BenignTail(lr=0.1)
    for d, unit in ((40, 1.0), (1000, 1.0), (4000, 0.25), (HUGE, 1e-6)):
        for form in ("primal", "dual"):
            there = dataclasses.replace(study, d=d, form=form)
            for name in ("printed", "carried on"):
                assert there.training(name).lr == pytest.approx(0.1 * unit)
    natural = BenignFeatures(d=HUGE, trained_lr=0.5)
    rate = natural.training("trained").rates(50, natural.filters, 1.0, natural.spectrum(1.0))
    trace = 0.25 * (HUGE - 5)  # rate 0.5 in units of n/(m trace)
    assert float(rate) == pytest.approx(0.5 * 50 / (natural.filters * trace))


def test_stored_coordinates_do_not_grow_without_vectors() -> None:
    small, large = (tiny("benign-majority", d) for d in (10**6, 10**12))
    assert small.cost() == large.cost()
    assert small.stored_axes(36) == 6 + 3 * (36 + 18)
    assert tiny("benign-majority", 400, form="primal").stored_axes(36) == 400


def test_the_special_coordinate_is_drawn_anew_and_nothing_else_moves() -> None:
    """Training sets of ``benign-mixing``: a share of long-tailed samples, in both forms."""
    for form in ("primal", "dual"):
        study = tiny("benign-mixing", 60, form=form, samples=200, moment=("held",), seeds=1)
        grid = grid_of(study)
        rows = np.flatnonzero(grid.values["schedule"] == "trained")
        samples = study._prepared("trained", grid.cells(rows), FLOAT64).samples
        assert len(samples.noise) == len(study.share)
        special = torch.stack([samples.noise[:, i, 3 + i // 200] for i in range(600)], dim=1)
        for row, share in enumerate(study.share):
            lam = study.training_spectrum(4.0, "held", share).eigenvalues[0, 0, 3]
            tail = (special[row] / lam).abs() >= study.tail
            assert float(tail.double().mean()) == pytest.approx(share, abs=0.07)
        others = samples.noise.clone()
        for i in range(600):
            others[:, i, 3 + i // 200] = 0
        assert (others == others[:1]).all() and others[0].abs().amax(dim=1).min() > 0


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        (
            "benign-tail",
            {"initialisation": "default"},
            "initialisation='default': without vectors only gaussian: .*; use --form primal",
        ),
        (
            "benign-correlation",
            {"law": ("gaussian", "uniform-own")},
            "law='uniform-own': without vectors only gaussian: .*; use --form primal",
        ),
        (
            "benign-training",
            {"initialisation": "default"},
            "initialisation='default': without vectors only gaussian: .*; use --form primal",
        ),
        (
            "benign-tail",
            {"form": "primal"},
            "d=1000000000: at most 11111111 where vectors are stored; --form dual stores none, and "
            "needs gaussian law and initialisation",
        ),
        (
            "benign-homogeneous",
            {"form": "primal"},
            "d=1000000000: at most 12500000 where vectors are stored",
        ),
        (
            "benign-features",
            {"form": "auto", "initialisation": "default"},
            "d=1000000000: at most 14142 where vectors are stored",
        ),
        (
            "benign-correlation",
            {"form": "auto", "law": ("gaussian", "uniform")},
            "d=1000000000: at most 14142 where vectors are stored",
        ),
    ],
)
def test_what_has_no_such_form_is_named(name: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        tiny(name, HUGE, **wrong)
    assert "\n" not in str(caught.value)


def test_cases_that_begin_gaussian_may_do_without_vectors_alone() -> None:
    study = BenignTraining.at("tiny", case=("wide", "wide large start"), wide_d=HUGE, form="dual")
    assert all(part.without_vectors() for part in study.parts())
    with pytest.raises(UsageError, match="initialisation='default'"):
        BenignTraining.at("tiny", case=("wide", "trained"), form="dual")


# ------------------------------------------------------------------------------------------ the law


RUNS = 120
FEW = 8
"""Values that an output must take at least."""
SETTINGS: dict[str, dict[str, Any]] = {
    "benign-correlation": {"law": ("gaussian",), "strength": (1.0,), "gamma": (10.0,)},
    "benign-features": {"gamma": (1.2,), "strength": (0.5, 1.0, 2.0), "size": (6,)},
    "benign-homogeneous": {"strength": (0.5, 1.5, 3.0), "dimension": (60,), "size": (10,)},
    "benign-majority": {"majority": (12,), "control": ("as stated", "ratio held")},
    "benign-mixing": {"share": (0.2,)},
    "benign-sizes": {"gamma": (1.0, 10.0)},
    "benign-tail": {"gamma": (2.0,)},
    "benign-training": {"case": ("wide",), "gamma": (10.0,), "strength": (2.0,)},
}


def simulated(name: str, form: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Which setting each cell has, and what it gives. All cells are one batch, as cells of one seed
    are, but every one has a key of its own, and so its own draws."""
    more = {"d": 60, "initialisation": "gaussian", "sigma_0": 0.04, "seeds": 1, "form": form}
    if name == "benign-training":
        more["wide_d"] = 60
    elif name != "benign-correlation":
        more["schedule"] = ("trained",)
    study = get_study(name).at("tiny", **{**more, **SETTINGS[name]})
    grid = grid_of(study)
    cells = grid.cells(np.repeat(np.arange(len(grid)), RUNS))
    rows = zip(*(cells.values[axis] for axis in study.axes), strict=True)
    place = np.array(["|".join(str(value) for value in row) for row in rows])
    keys = np.arange(len(cells), dtype=np.int64) + (10**6 if form == "dual" else 0)
    return place, study.simulate(Cells(cells.values, keys), Context())


@pytest.mark.quick("benign-training", "benign-tail", "benign-homogeneous")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_study_says_the_same_with_and_without_vectors(name: str) -> None:
    """All outputs of all cells, but those that take few values (an error that is nearly always 0,
    a constant) or are missing in some runs: they have no law that could be compared."""
    (place, primal), (_, dual) = (simulated(name, form) for form in ("primal", "dual"))
    pairs = {}
    for output, values in primal.items():
        both = [np.asarray(v, dtype=float).reshape(len(place), -1) for v in (values, dual[output])]
        for where in np.unique(place):
            for column in range(both[0].shape[1]):
                x, y = (v[place == where, column] for v in both)
                finite = np.isfinite(x).all() and np.isfinite(y).all()
                if finite and min(len(np.unique(x)), len(np.unique(y))) >= FEW:
                    pairs[f"{output} at {where}, {column}"] = (x, y)
    assert len(pairs) >= 4
    assert_same_laws(pairs)
