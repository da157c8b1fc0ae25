"""What every registered study declares and returns; nothing here knows a study by name."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable
from itertools import chain, pairwise

import numpy as np
import pytest
from pinned import Simulations
from registered_studies import (
    assert_declared,
    every_study,
    tiny,
    tiny_batches,
    tiny_verdicts,
)

from rarefy.core.contracts import OUTCOMES, Study
from rarefy.core.errors import UsageError
from rarefy.core.picture import HeatMap, Lines
from rarefy.ledger.claims import load_claims
from rarefy.ledger.verdicts import load_verdicts
from rarefy.studies.api import judge
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")


# --------------------------------------------------------------------------------- what it declares


@every_study
def test_it_says_what_it_is(kind: type[Study]) -> None:
    assert {"tiny", "quick", "paper"} <= set(kind.scales)
    texts = (kind.name, kind.title, kind.papers, kind.shows, kind.paper_says, kind.needs)
    assert all(texts)
    assert kind.__doc__ and isinstance(kind.version, int) and kind.version >= 1
    assert set(kind.random_axes) <= set(kind.axes)


@every_study
def test_its_claims_are_in_the_ledger(kind: type[Study]) -> None:
    known = {claim.id for claim in load_claims()}
    # (one's own images can judge no claim of a paper)
    assert (kind.claims or kind.name.endswith("-images")) and set(kind.claims) <= known


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
    _, returned = tiny_batches(kind)
    assert sum(len(batch.cells) for batch in returned) == len(grid_of(study))
    for batch in returned:
        assert_declared(study, len(batch.cells), batch.found)


@every_study
def test_its_numbers_are_the_golden_ones(
    kind: type[Study], record_property: Callable[[str, int], None]
) -> None:
    Simulations().compared(kind.name, tiny(kind)[1]).demand_none(record_property)


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
    cost = kind.at("tiny").cost()
    for batch in tiny_batches(kind)[1]:
        assert batch.advanced == pytest.approx(len(batch.cells) * cost.steps_per_cell)


@every_study
def test_verdicts_are_of_its_claims_with_n_and_told_apart(kind: type[Study]) -> None:
    study, verdicts = kind.at("tiny"), tiny_verdicts(kind)
    assert {verdict.about for verdict in verdicts} - {""} == set(study.claims)
    primaries = [verdict.claim for verdict in verdicts if verdict.role == "primary"]
    assert len(set(primaries)) == len(primaries), "a primary reading has one verdict"
    # (some are of one data set or scale, which tiny is not)
    judged = set(primaries) | {verdict.claim for verdict in load_verdicts()}
    declared = [one.id for one in chain(*(claim.primaries for claim in load_claims()))
                if one.study == study.name]  # fmt: skip
    assert set(declared) <= judged, f"{study.name} gives no {set(declared) - judged}"
    for verdict in verdicts:
        assert (verdict.study, verdict.scale) == (study.name, "tiny")
        assert verdict.outcome in OUTCOMES and verdict.n >= 0
        assert verdict.n > 0 or verdict.outcome in ("inconclusive", "premise-not-met", "not-run")
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
        [(v.identity, v.outcome, v.n, v.measured) for v in verdicts]
        for verdicts in (tiny_verdicts(kind), study.verdicts(turned, "tiny"))
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


@every_study
def test_one_value_of_an_axis_is_refused_or_judged_and_shown(kind: type[Study]) -> None:
    study, results = tiny(kind)
    for axis in study.axes:
        for place in {0, results.sizes[axis] - 1}:
            try:
                cut = kind.at("tiny", **{axis: getattr(study, axis)[place]})
            except UsageError:
                continue
            some = results.isel({axis: [place]})
            for verdict in judge(cut, some, "tiny"):
                assert verdict.outcome in ("inconclusive", "premise-not-met") or verdict.n > 0
            assert all(picture.panels for picture in cut.picture(some))
            assert all(table.columns for table in cut.tables(some))
