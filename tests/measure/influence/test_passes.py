"""A scoring that is stopped goes on to the same bits; what it refuses, and how it says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from rarefy.core.errors import OutOfTime, RunError, UsageError
from rarefy.measure.influence import mahalanobis, plan, state
from rarefy.measure.influence.passes import ClassScores, score_classes
from rarefy.measure.influence.rows import is_mapped

CLASSES = 4
ARRAYS = (
    *("influence", "own", "shared", "shrinking", "distance", "mahalanobis", "norm"),
    *("counts", "means", "covariance_norms", "shrinkage"),
)


def data() -> tuple[np.ndarray, np.ndarray]:
    """Classes by both routes, two groups, and one by tiles that are read again and again."""
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(CLASSES), [30, 9, 1, 25])
    random.shuffle(labels)
    return random.standard_normal((len(labels), 5)).astype(np.float32), labels


FEATURES, LABELS = data()
FIXED = 8 * (9 * len(LABELS) + CLASSES * 5)
OPTIONS = {"chunk": 2, "memory": FIXED + 2100}
"""On one core. Just enough: two classes do not fit together, nor do nine rows."""
TWO_CORES = {"chunk": 2, "memory": FIXED + 2400}


@pytest.fixture(autouse=True)
def one_core() -> Iterator[None]:
    """Unless a test asks for another number; memory depends on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def score(**options) -> ClassScores:
    usual = OPTIONS if torch.get_num_threads() == 1 else TWO_CORES
    return score_classes(FEATURES, LABELS, CLASSES, **{**usual, **options})


@pytest.mark.parametrize(("cores", "options"), [(1, OPTIONS), (2, TWO_CORES)])
def test_what_is_stopped_below_has_all_kinds_of_steps(cores, options):
    counts = np.bincount(LABELS)
    made = plan.make_plan(counts, 5, 4, options["memory"], options["chunk"], cores)
    assert [getattr(step, "kept", None) for step in made.steps] == [False, True, None, None]


def same(first: ClassScores, second: ClassScores) -> bool:
    return all(
        np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True)
        for name in ARRAYS
    )


class Alarm:
    """Says True at one of the times that it is asked; counts them."""

    def __init__(self, at: int | None = None) -> None:
        self.at, self.asked = at, 0

    def __call__(self) -> bool:
        self.asked += 1
        return self.asked - 1 == self.at


@pytest.mark.quick("two cores")
def test_a_stop_anywhere_changes_no_bit(tmp_path, threads):
    alarm = Alarm()
    whole = score(deadline=alarm)
    assert alarm.asked > 30
    # with two threads the same code, in another order: some places will do
    for at in range(0, alarm.asked, 1 if threads == 1 else 5):
        folder = tmp_path / str(at)
        with pytest.raises(OutOfTime, match=rf"the same call goes on from .*{at}"):
            score(deadline=Alarm(at), state=folder)
        assert same(score(state=folder), whole)


def test_stops_all_the_way(tmp_path):
    whole = score()
    stops = 0
    while True:
        try:
            found = score(deadline=lambda: True, state=tmp_path)
            break
        except OutOfTime:
            stops += 1
    assert stops > 30 and same(found, whole)


def test_a_run_that_dies_goes_on_from_its_last_file(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "EVERY_SECONDS", 0.0)
    whole = score()

    def dying(after: int) -> Callable[[float], None]:
        left = iter(range(after))

        def tell(share: float) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt

        return tell

    for after in (0, 1, 7, 18):
        folder = tmp_path / str(after)
        with pytest.raises(KeyboardInterrupt):
            score(state=folder, progress=dying(after))
        assert same(score(state=folder), whole)


@pytest.mark.parametrize("stop", [None, 3, 20])
def test_progress_adds_up_to_one(tmp_path, stop):
    if stop is not None:
        with pytest.raises(OutOfTime):
            score(deadline=Alarm(stop), state=tmp_path)
    shares: list[float] = []
    score(progress=shares.append, state=tmp_path)
    assert min(shares) > 0 and sum(shares) == pytest.approx(1, rel=1e-9)


@pytest.mark.slow
def test_leading_directions_are_stopped_and_resumed_as_well(tmp_path, monkeypatch):
    for module in (mahalanobis, plan):
        monkeypatch.setattr(module, "FULL_WIDTH", 4)
    monkeypatch.setattr(plan, "DIRECTIONS", 2)
    alarm = Alarm()
    options = {"memory": 1 << 20}
    whole = score(deadline=alarm, **options)
    assert whole.directions == 2
    for at in range(alarm.asked):
        folder = tmp_path / str(at)
        with pytest.raises(OutOfTime):
            score(deadline=Alarm(at), state=folder, **options)
        assert same(score(state=folder, **options), whole)


def test_without_a_folder_nothing_is_kept():
    with pytest.raises(OutOfTime, match="nothing is kept without a state folder"):
        score(deadline=lambda: True)


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(OutOfTime):
        score(deadline=Alarm(5), state=tmp_path)
    with pytest.raises(UsageError, match=r"was begun with ddof 1, now it is 0; give another fold"):
        score(state=tmp_path, ddof=0)
    with pytest.raises(UsageError, match=r"was begun with chunk 2, now it is 5"):
        score(state=tmp_path, chunk=5)
    with pytest.raises(UsageError, match=r"was begun with samples 65, now it is 64"):
        score_classes(FEATURES[1:], LABELS[1:], CLASSES, state=tmp_path, **OPTIONS)
    with pytest.raises(UsageError, match=r"was begun with data "):
        score_classes(FEATURES + 1, LABELS, CLASSES, state=tmp_path, **OPTIONS)
    with pytest.raises(UsageError, match=r"was begun with data "):
        score_classes(FEATURES, np.roll(LABELS, 1), CLASSES, state=tmp_path, **OPTIONS)
    # another unit of the features is no other data
    assert score(state=tmp_path, scale=2.0).norm == pytest.approx(2 * score().norm)


def test_finished_scores_are_kept_for_what_comes_after_them(tmp_path):
    whole = score(state=tmp_path)
    alarm = Alarm(0)
    assert same(score(state=tmp_path, deadline=alarm), whole)  # nothing is left to be stopped


def test_content_stands_for_all_rows(tmp_path):
    score(state=tmp_path, content="these")
    with pytest.raises(UsageError, match=r"was begun with data 'these', now it is 'those'"):
        score(state=tmp_path, content="those")


def test_damaged_folders(tmp_path):
    (tmp_path / "about.json").write_text("no JSON")
    score(state=tmp_path)  # nothing had been done there: it stands in nobody's way
    (tmp_path / "about.json").write_text("no JSON")
    with pytest.raises(UsageError, match=r"^state=.* is damaged \(about\.json: Expecting"):
        score(state=tmp_path)
    (tmp_path / "state.npz").unlink()
    score(state=tmp_path)
    assert json.loads((tmp_path / "about.json").read_text())["samples"] == 65
    (tmp_path / "state.npz").write_bytes(b"nothing")
    with pytest.raises(UsageError, match=r"^state=.* is damaged \(cannot read .*state\.npz"):
        score(state=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write .*about\.json"):
        score(state=tmp_path / "file")


@pytest.mark.parametrize("memory", [OPTIONS["memory"], 1 << 30])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_named(value, memory):
    features = FEATURES.copy()
    features[[60, 3, 3, 17], [0, 1, 2, 4]] = value
    with pytest.raises(
        UsageError, match=r"features: 3 of 65 rows hold NaN or infinite values \(rows 3, 17, 60\)$"
    ):
        score_classes(features, LABELS, CLASSES, memory=memory, chunk=2)
    features[:, 0] = value
    with pytest.raises(UsageError, match=r"65 of 65 rows .* \(rows 0, 1, 2, 3, 4, \.\.\.\)$"):
        score_classes(features, LABELS, CLASSES, memory=memory)


def test_rows_whose_fourth_powers_overflow():
    with pytest.raises(UsageError, match=r"all are finite, but some so large that their fourth po"):
        score_classes(FEATURES.astype(np.float64) * 1e90, LABELS, CLASSES)


def test_memory_maps_are_read_as_they_are(tmp_path):
    np.save(tmp_path / "x.npy", FEATURES)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert same(score_classes(mapped, LABELS, CLASSES, **OPTIONS), score())


def test_types_that_torch_does_not_know():
    whole = np.abs(FEATURES * 100)
    plain = score_classes(np.floor(whole).astype(np.float64), LABELS, CLASSES)
    for kind in (">f8", "uint16", "uint32", "longdouble", ">i2"):
        found = score_classes(np.floor(whole).astype(kind), LABELS, CLASSES)
        assert np.array_equal(found.influence, plain.influence, equal_nan=True)
    black = score_classes(FEATURES > 0, LABELS, CLASSES)
    assert np.array_equal(
        black.influence, score_classes((FEATURES > 0) * 1.0, LABELS, CLASSES).influence, True
    )
    columns = score_classes(np.asfortranarray(FEATURES), LABELS, CLASSES, **OPTIONS)
    assert same(columns, score())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"scale": 0.0}, r"scale=0.0: must be finite and not 0"),
        ({"scale": np.nan}, r"scale=nan: must be finite and not 0"),
        ({"ddof": -1}, r"ddof=-1: must be 0 or 1"),
        ({"chunk": 0}, r"chunk=0: must be at least 1"),
        ({"memory": 0}, r"memory=0: must be at least 1"),
        ({"memory": 999}, r"memory=999: is too little for 65 samples of width 5; \d+ would do"),
        ({"classes": 0}, r"classes=0: must be at least 1"),
        ({"labels": LABELS[1:]}, r"labels=\(64,\): must be one for each of 65 rows"),
        ({"labels": LABELS * 1.0}, r"labels='float64': must be whole numbers"),
        ({"labels": LABELS + 1}, r"labels=4: must be in 0..3"),
        ({"labels": LABELS - 1}, r"labels=-1: must be in 0..3"),
        ({"features": FEATURES[0]}, r"features=\(5,\): must have the shape \(samples, features\)"),
        ({"features": FEATURES[:, :0]}, r"features=\(65, 0\): must have the shape \(samples, fea"),
        ({"features": FEATURES + 1j}, r"features='complex64': must be real numbers"),
    ],
)
def test_complaints(options, complaint):
    arguments = {"features": FEATURES, "labels": LABELS, "classes": CLASSES, **options}
    with pytest.raises(UsageError, match=complaint):
        score_classes(**arguments)


def test_the_memory_that_would_do_does():
    with pytest.raises(UsageError) as told:
        score(memory=999)
    enough = int(str(told.value).split(" would do")[0].split()[-1])
    assert score(memory=enough).memory <= enough


@pytest.mark.parametrize("kind", ["u1", "i2", "f4", "f8", ">f8"])
def test_rows_are_kept_as_given_and_scored_as_float64(kind, tmp_path):
    """Both routes; a file is gone through by all classes together, memory by a few at a time."""
    draws = np.random.default_rng(1)
    labels = np.repeat(np.arange(7), [40, 6, 40, 40, 40, 40, 9])
    rows = draws.integers(0, 200, (len(labels), 8)).astype(kind)
    before = rows.copy()
    expected = score_classes(rows.astype(np.float64), labels, 7)
    found = score_classes(rows, labels, 7)
    assert same(expected, found) and np.array_equal(rows, before)
    assert set(found.routes) == {"gram", "covariance"}
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert is_mapped(np.asarray(mapped[3:])) and not is_mapped(rows)
    for name in ("influence", "distance", "norm"):
        read = getattr(score_classes(mapped, labels, 7), name)
        np.testing.assert_allclose(read, getattr(found, name), rtol=1e-10)
    counts = np.bincount(labels)
    steps = [plan.make_plan(counts, 8, 8, 10**9, cores=1, mapped=m).steps for m in (False, True)]
    groups = [[len(s.labels) for s in some if hasattr(s, "labels")] for some in steps]
    assert groups == [[2, 2, 1], [5]]
