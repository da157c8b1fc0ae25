"""Every registered study keeps the contract, at its smallest scale.

Nothing here knows a study by name, except where one promise of the project is about one study.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import rarefy
from rarefy.core.contracts import NONFINITE_STEP, OUTCOMES, Cells, Context, Study
from rarefy.core.errors import UsageError
from rarefy.core.ledger import load_claims
from rarefy.core.picture import HeatMap, Lines
from rarefy.studies import get_study, load_studies
from rarefy.sweep.grid import grid_of

STUDIES = load_studies()
every_study = pytest.mark.parametrize("kind", STUDIES.values(), ids=list(STUDIES))
FLOAT64 = Context(dtype=torch.float64)
SAME = 1e-10
"""float64: how far the same cell may differ between batches, relative to an output's largest"""


pytestmark = pytest.mark.usefixtures("eager")


def fresh(kind: type[Study], **options: Any) -> xr.Dataset:
    return rarefy.run(kind, scale="tiny", device="cpu", **options)


@cache
def tiny(kind: type[Study]) -> tuple[Study, xr.Dataset]:
    return kind.at("tiny"), fresh(kind)


# --------------------------------------------------------------------------------- what it declares


@every_study
def test_it_says_what_it_is(kind: type[Study]) -> None:
    assert {"tiny", "quick", "paper"} <= set(kind.scales)
    assert kind.name and kind.title and kind.lab and kind.paper_says and kind.needs
    assert kind.__doc__ and isinstance(kind.version, int) and kind.version >= 1
    assert set(kind.random_axes) <= set(kind.axes)


@every_study
def test_its_claims_are_in_the_ledger(kind: type[Study]) -> None:
    known = {claim["id"] for claim in load_claims()}
    assert kind.claims and set(kind.claims) <= known


@every_study
def test_every_parameter_of_its_own_is_explained(kind: type[Study]) -> None:
    """A text under the field, unless the parameter is one of the shared base's."""
    inherited = {name for base in kind.__mro__[1:] for name in inspect.get_annotations(base)}
    own = {field.name for field in dataclasses.fields(kind)} - inherited
    assert own <= _explained(kind)


def _explained(kind: type) -> set[str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        statement.target.id
        for statement, following in pairwise(body.body)
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
        and isinstance(following.value.value, str)
    }


@every_study
def test_every_scale_has_a_grid_a_cost_and_unique_outputs(kind: type[Study]) -> None:
    for scale in kind.scales:
        study = kind.at(scale)
        assert all(isinstance(getattr(study, axis), tuple) for axis in study.axes)
        cost = study.cost()
        assert cost.bytes_per_cell > 0 and cost.steps_per_cell > 0
        assert len(grid_of(study)) >= study.seeds
        names = [output.name for output in study.outputs()]
        assert len(set(names)) == len(names)
        assert not set(names) & {*study.axes, "seed", "run"}
        known = set(study.coordinates())
        assert all(set(output.dims) <= known and output.meaning for output in study.outputs())


# ---------------------------------------------------------------------------------- what it returns


@every_study
def test_it_returns_what_it_declares_in_the_declared_shape(kind: type[Study]) -> None:
    study = kind.at("tiny")
    grid = grid_of(study)
    found = study.simulate(grid.cells(np.arange(len(grid))), Context())
    declared = {output.name: output.dims for output in (*study.outputs(), NONFINITE_STEP)}
    assert set(found) | {NONFINITE_STEP.name} == set(declared)
    length = {name: len(values) for name, values in study.coordinates().items()}
    for name, values in found.items():
        assert values.shape == (len(grid), *(length[dim] for dim in declared[name])), name
        assert values.dtype.kind in "biuf", name


@every_study
def test_the_results_have_named_dimensions_and_no_run_went_wrong(kind: type[Study]) -> None:
    study, results = tiny(kind)
    for output in study.outputs():
        assert set(results[output.name].dims) == {*study.axes, "seed", *output.dims}
        assert results[output.name].notnull().any(), output.name + " says nothing"
    for axis in study.axes:
        assert list(results[axis].values) == list(getattr(study, axis))
    assert results.sizes["seed"] == study.seeds
    assert (results["nonfinite_step"] == -1).all()
    assert results.attrs["study"] == study.name and results.attrs["scale"] == "tiny"


@every_study
def test_progress_adds_up_to_the_declared_cost(kind: type[Study]) -> None:
    study = kind.at("tiny")
    cells = grid_of(study).cells(np.arange(2))
    done: list[float] = []
    study.simulate(cells, Context(advance=done.append))
    assert sum(done) == pytest.approx(2 * study.cost().steps_per_cell)


@every_study
def test_verdicts_are_of_its_claims_with_n_and_told_apart(kind: type[Study]) -> None:
    study, results = tiny(kind)
    verdicts = study.verdicts(results, "tiny")
    assert {verdict.claim for verdict in verdicts} == set(study.claims)
    for verdict in verdicts:
        assert (verdict.study, verdict.scale) == (study.name, "tiny")
        assert verdict.outcome in OUTCOMES and verdict.n >= 0
        assert verdict.n > 0 or verdict.outcome in ("inconclusive", "not-run")
        assert verdict.setting and verdict.predicted and verdict.measured and verdict.tolerance
        if verdict.interval is not None:
            low, high = verdict.interval
            assert low <= high or np.isnan([low, high]).any()
    identities = [verdict.identity for verdict in verdicts]
    assert len(set(identities)) == len(identities)


@every_study
def test_verdicts_do_not_depend_on_the_order_of_the_dimensions(kind: type[Study]) -> None:
    study, results = tiny(kind)
    turned = results.transpose(*reversed(list(results.sizes)))
    said = [
        [(v.identity, v.outcome, v.n, v.measured) for v in study.verdicts(order, "tiny")]
        for order in (results, turned)
    ]
    assert said[0] == said[1]


@every_study
def test_pictures_have_labelled_axes_and_something_on_them(kind: type[Study]) -> None:
    study, results = tiny(kind)
    pictures = study.picture(results)
    assert pictures and len({picture.name for picture in pictures}) == len(pictures)
    for picture in pictures:
        assert picture.title and picture.caption and picture.panels
        for panel in picture.panels:
            assert panel.x_label and panel.y_label
            if isinstance(panel, HeatMap):
                assert panel.colour_label and np.isfinite(panel.values).any()
                assert panel.values.shape == (len(panel.y), len(panel.x))
            else:
                assert isinstance(panel, Lines) and panel.curves
                for curve in panel.curves:
                    assert curve.label and len(curve.x) == len(curve.y)
                    for band in (curve.low, curve.high):
                        assert band is None or len(band) == len(curve.y)
                assert any(np.isfinite(curve.y).any() for curve in panel.curves)


@every_study
def test_tables_have_as_many_entries_a_row_as_columns(kind: type[Study]) -> None:
    study, results = tiny(kind)
    for table in study.tables(results):
        assert table.name and table.title and table.caption and table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)


# --------------------------------------------------------------------------------------- repetition


@every_study
def test_two_runs_give_the_same_results(kind: type[Study]) -> None:
    _, first = tiny(kind)
    xr.testing.assert_identical(_bare(first), _bare(fresh(kind)))


def _bare(results: xr.Dataset) -> xr.Dataset:
    """Without what differs between two calls: the time it took, the date."""
    return results.drop_attrs()


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for name, values in expected.items():
        finite = values[np.isfinite(values)]
        largest = np.abs(finite).max() if finite.size else 0.0
        np.testing.assert_allclose(
            found[name], values, rtol=SAME, atol=SAME * largest, err_msg=name, equal_nan=True
        )


def part(found: dict[str, np.ndarray], runs: Any) -> dict[str, np.ndarray]:
    return {name: values[runs] for name, values in found.items()}


@every_study
def test_a_cell_gives_the_same_alone_in_a_batch_of_7_and_among_all(kind: type[Study]) -> None:
    study = kind.at("tiny", seeds=4)
    grid = grid_of(study)
    runs = np.arange(len(grid))
    everyone = study.simulate(grid.cells(runs), FLOAT64)
    seven = np.random.default_rng(0).permutation(runs)[:7]
    assert_same(study.simulate(grid.cells(seven), FLOAT64), part(everyone, seven))
    for one in (runs[:1], runs[-1:]):
        assert_same(study.simulate(grid.cells(one), FLOAT64), part(everyone, one))


@every_study
def test_a_cell_draws_the_same_bits_alone_and_among_all(kind: type[Study]) -> None:
    study = kind.at("tiny")
    grid = grid_of(study)
    runs = np.arange(len(grid))
    everyone = grid.cells(runs).draws(Context()).normal("noise", (9,), step=3)
    for one in (0, len(grid) - 1):
        alone = grid.cells(runs[[one]]).draws(Context()).normal("noise", (9,), step=3)
        assert torch.equal(alone[0], everyone[one])


@every_study
def test_cells_share_their_draws_along_the_axes_that_are_not_random(kind: type[Study]) -> None:
    study = kind.at("tiny")
    grid = grid_of(study)
    random = [grid.values["seed"], *(grid.values[axis] for axis in study.random_axes)]
    groups: dict[tuple[Any, ...], set[int]] = {}
    for parts, cell_key in zip(zip(*random, strict=True), grid.keys.tolist(), strict=True):
        groups.setdefault(parts, set()).add(cell_key)
    assert all(len(keys) == 1 for keys in groups.values())
    assert len(set.union(*groups.values())) == len(groups)


def test_one_cell_alone_in_7_and_in_500_gives_the_same_to_1e_10() -> None:
    """The project's promise (issue 2, 'Done when'), on the alignment study made small."""
    study = STUDIES["contrast-alignment"].at(
        "tiny", seeds=125, d1=24, batch=16, steps=24, reads=(0, 12, 24), figure_read=24
    )
    grid = grid_of(study)
    runs = np.arange(len(grid))
    assert len(runs) == 500
    everyone = study.simulate(grid.cells(runs), FLOAT64)
    assert (everyone["t1"] > 0).mean() > 0.5  # the bias is at work in most of them
    for start in (0, 250, 493):
        seven = runs[start : start + 7]
        assert_same(study.simulate(grid.cells(seven), FLOAT64), part(everyone, seven))
        alone = seven[:1]
        assert_same(study.simulate(grid.cells(alone), FLOAT64), part(everyone, alone))
    some = grid.cells(runs[::50])
    every = grid.cells(runs).draws(FLOAT64)
    for stream, shape in (("dictionary", (24, 9)), ("weights", (24, 24)), ("noise", (16, 24))):
        alike = some.draws(FLOAT64).normal(stream, shape, step=5)
        assert torch.equal(every.normal(stream, shape, step=5)[::50], alike)


def test_a_run_that_explodes_is_marked_in_its_cell_and_leaves_the_others_alone() -> None:
    study = STUDIES["contrast-alignment"].at("tiny")
    grid = grid_of(study)
    cells = grid.cells(np.arange(len(grid)))
    # tokens a hundred thousand million times as large as those of the others
    wild = {**cells.values, "sigma": np.array(cells.values["sigma"], copy=True)}
    wild["sigma"][2] = 1e11
    before = study.simulate(cells, FLOAT64)
    after = study.simulate(Cells(wild, cells.keys), FLOAT64)
    assert after["nonfinite_step"][2] >= 0
    assert np.isnan(after["best"][2, -1]).all()
    others = np.arange(len(grid)) != 2
    assert (after["nonfinite_step"][others] == -1).all()
    assert_same(part(after, others), part(before, others))


# ---------------------------------------------------------------------------------------- bad input


@every_study
@pytest.mark.parametrize(
    ("scale", "wrong", "message"),
    [
        ("tiny", {"no_such_parameter": 1}, "unknown parameter of .* 'no_such_parameter'"),
        ("gigantic", {}, "unknown scale 'gigantic'"),
        ("tiny", {"seeds": 0}, "seeds=0: must be at least 1"),
    ],
)
def test_unknown_names_and_no_seeds_are_wrong_use(
    kind: type[Study], scale: str, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        kind.at(scale, **wrong)


BOTH = ("contrast-alignment", "contrast-dynamics")
WRONG: list[tuple[tuple[str, ...], dict[str, Any], str]] = [
    ((*BOTH, "contrast-sensitivity"), {"eps_min": (0.5, -0.1)}, "eps_min=-0.1: a feature freq"),
    ((*BOTH, "contrast-sensitivity"), {"eps_min": (0.0,)}, "eps_min=0.0: a feature frequency"),
    ((*BOTH, "contrast-sensitivity"), {"eps_min": (1.5,)}, "eps_min=1.5: a feature frequency"),
    (("contrast-alignment",), {"sigma": (0.1, -1.0)}, "sigma=-1.0: the noise std must be"),
    (("contrast-dynamics", "contrast-sensitivity"), {"sigma": -1.0}, "sigma=-1.0: the noise std"),
    (BOTH, {"d1": 8}, "d1=8: must be at least the number of features, 9"),
    (("contrast-sensitivity",), {"d1": 8}, "d1=8: must be at least the number of features"),
    (BOTH, {"majority": 0}, "majority=0: must be at least 1"),
    (BOTH, {"neurons": 0}, "neurons=0: must be at least 1"),
    (BOTH, {"steps": 0}, "steps=0: must be at least 1"),
    (BOTH, {"batch": 1}, "batch=1: must be at least 2"),
    (BOTH, {"lr": 0.0}, "lr=0.0: must be positive and finite"),
    (BOTH, {"lr": float("nan")}, "lr=nan: must be positive and finite"),
    (BOTH, {"tau": -1.0}, "tau=-1.0: must be positive and finite"),
    (BOTH, {"sigma_0": float("inf")}, "sigma_0=inf: must be positive and finite"),
    (BOTH, {"weight_decay": -0.1}, "weight_decay=-0.1: must be at least 0 and below 1/lr"),
    (BOTH, {"weight_decay": 6.0}, "weight_decay=6.0: must be at least 0 and below 1/lr"),
    (BOTH, {"activation": 0.0}, "activation=0.0: must be in"),
    (BOTH, {"tokens": 0}, "tokens=0: must be between 1 and 30"),
    (BOTH, {"spread": "most"}, "spread='most': must be one of"),
    (BOTH, {"loss_form": "square"}, "loss_form='square': must be one of plain, times-tau"),
    (BOTH, {"bias_until": "T9"}, "bias_until='T9': must be one of T2, end"),
    (
        ("contrast-alignment",),
        {"bias_scale": (-1.0,)},
        "bias_scale=-1.0: must be finite and at least 0",
    ),
    (("contrast-dynamics",), {"bias_scale": -1.0}, "bias_scale=-1.0: must be"),
    (("contrast-alignment",), {"reads": (0, 41)}, "reads=.*rising steps between 0 and steps=40"),
    (("contrast-alignment",), {"reads": (40, 20)}, "reads=.*rising steps between 0 and steps=40"),
    (("contrast-alignment",), {"reads": ()}, "reads=.*rising steps between 0 and steps=40"),
    (("contrast-alignment",), {"figure_read": 7}, "figure_read=7: must be one of reads"),
    (("contrast-dynamics",), {"stage_1_steps": 0}, "stage_1_steps=0: must be in 1..steps=120"),
    (("contrast-dynamics",), {"stage_1_steps": 999}, "stage_1_steps=999: must be in 1..steps=120"),
    (("contrast-dynamics",), {"recorded": 1}, "recorded=1: must be at least 2"),
    (("contrast-dynamics",), {"moment_samples": 0}, "moment_samples=0: must be at least 1"),
    (("contrast-dynamics",), {"majority": 1, "minority": 1}, "at least 3: log log d"),
    (("contrast-sensitivity",), {"variation": (99,)}, r"variation=99: must be in 0\.\.17"),
    (("contrast-sensitivity",), {"reads": (5,)}, "reads=.*at least two"),
]


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [(name, wrong, message) for names, wrong, message in WRONG for name in names],
)
def test_a_value_that_makes_no_sense_is_named_with_what_is_allowed(
    name: str, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        STUDIES[name].at("tiny", **wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"eps_min": "abc"}, "eps_min='abc': must be a number"),
        ({"seeds": 2.5}, "seeds=2.5: must be a whole number"),
        ({"lr": "fast"}, "lr='fast': must be a number"),
        ({"reads": 40}, "reads=40: must be a list of values"),
        ({"batch": True}, "batch=True: must be a whole number"),
        ({"spread": 1}, "spread=1: must be a text"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        get_study("contrast-alignment").at("tiny", **wrong)
