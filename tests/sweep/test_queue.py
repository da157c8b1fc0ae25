"""A queue file: what a line may say, what is refused, and how far each line is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from toy_study import Toy
from toy_training import ToyTraining

import rarefy
from rarefy.core.errors import UsageError
from rarefy.sweep.queue import (
    Entry,
    Standing,
    State,
    check_results,
    in_words,
    read_queue,
    refuse_other_results,
    standing,
)
from rarefy.sweep.results import write_results
from rarefy.sweep.runner import execute

pytestmark = pytest.mark.usefixtures("eager")
STUDIES = {"toy": Toy, "toy-training": ToyTraining}


def queue(folder: Path, *lines: str) -> list[Entry]:
    (folder / "q.txt").write_text("\n".join(lines), "utf-8")
    return read_queue(folder / "q.txt", STUDIES)


def one(folder: Path, line: str) -> Entry:
    (entry,) = queue(folder, line)
    return entry


# The file


def test_lines_become_studies(tmp_path: Path) -> None:
    first, second, third = queue(
        tmp_path,
        "# a comment that isn't closed",
        "",
        "toy --scale tiny",
        "   toy --set lr=0.5 --set 'sigma=0.1, 0.3' --seeds 4 --dtype float64  # don't count this",
        "toy-training --scale=tiny --jobs 2",
    )
    assert (first.study, first.scale, first.dtype, first.jobs) == (
        Toy.at("tiny"),
        "tiny",
        "float32",
        None,
    )
    assert (first.line, first.place, first.title) == (3, f"{tmp_path / 'q.txt'}:3", "toy tiny")
    assert second.study == Toy.at("quick", lr=0.5, sigma=(0.1, 0.3), seeds=4)
    assert (second.scale, second.dtype) == ("quick", "float64")
    assert second.title == "toy quick --set lr=0.5 --set 'sigma=0.1, 0.3' --seeds 4 --dtype float64"
    assert (third.study, third.jobs) == (ToyTraining.at("tiny"), 2)


def test_a_number_sign_inside_a_word_or_quotes_is_no_comment(tmp_path: Path) -> None:
    entries = queue(
        tmp_path, "toy --set rule=a#b", 'toy --set "rule=a #b" # said', "toy --set rule=a #b"
    )
    assert [entry.study.parameters()["rule"] for entry in entries] == ["a#b", "a #b", "a"]


def test_a_byte_order_mark_and_foreign_line_ends_are_fine(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_bytes("\ufefftoy\r\ntoy --scale tiny\r\n".encode())
    entries = read_queue(tmp_path / "q.txt", STUDIES)
    assert [(entry.line, entry.scale) for entry in entries] == [(1, "quick"), (2, "tiny")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tou", r"unknown study 'tou'; did you mean 'toy'\? \(rarefy studies lists them\)"),
        ("toy --scale tny", "unknown scale 'tny'; did you mean 'tiny'"),
        ("toy --set sigm=1", "unknown parameter of toy 'sigm'"),
        ("toy --set sigma=-1", "sigma=-1.0: must be at least 0"),
        ("toy --set sigma=1,1", r"sigma=\(1.0, 1.0\): has the same value twice"),
        ("toy --set lr", "--set='lr': must be name=value"),
        ("toy --seeds 0", "seeds=0: must be at least 1"),
        ("toy --seeds many", r"--seeds: invalid int value: 'many' \(a line is STUDY"),
        ("toy --seeds 3 --set seeds=3", "seeds is given twice, with --seeds and with --set"),
        ("toy --dtype half", "unknown dtype 'half'"),
        ("toy --jobs 2", "jobs=2: cells of toy run together in one process already; use 1"),
        ("toy-training --scale tiny --jobs 0", "jobs=0: must be at least 1"),
        ("toy --out x", r"unrecognized arguments: --out x \(a line is STUDY, then any of --scale"),
        ("toy --see 3", "unrecognized arguments: --see 3"),
        ("--scale tiny", "the following arguments are required: STUDY"),
        ("run toy", "leave out 'run': a line begins with the name of the study"),
        ("rarefy run toy", "leave out 'rarefy': a line begins"),
        ("toy --set 'lr=1", "cannot be split into words: No closing quotation"),
        ("toy --scale tiny", "is the same run as line 1"),
        ("toy --scale tiny --set lr=1 --seeds 2", "is the same run as line 1"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(UsageError, match=rf"q\.txt:3: .*{said}"):
        queue(tmp_path, "toy --scale tiny", "", line)


def test_all_wrong_lines_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        queue(tmp_path, "tou", "toy", "toy --scale x", "toy --seeds 0", "tou", "tou")
    said = str(caught.value)
    assert all(f"q.txt:{line}: " in said for line in (1, 3, 4)) and "q.txt:5" not in said
    assert said.endswith(" (and 2 more lines are wrong)")


def test_what_is_no_queue(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read queue .*q\.txt: No such file or directory"):
        read_queue(tmp_path / "q.txt", STUDIES)
    with pytest.raises(UsageError, match="cannot read queue .*: Is a directory"):
        read_queue(tmp_path, STUDIES)
    with pytest.raises(UsageError, match=r"queue .*q\.txt is empty: write one run a line"):
        queue(tmp_path, "# nothing", "")
    (tmp_path / "q.txt").write_bytes(b"toy \xff")
    with pytest.raises(UsageError, match=r"cannot read queue .*: it is no text \(UTF-8\)"):
        read_queue(tmp_path / "q.txt", STUDIES)


# Stores


def test_stores_are_named_by_what_a_line_changes(tmp_path: Path) -> None:
    def name(line: str) -> str:
        return one(tmp_path, line).store_name

    # what rarefy run keeps there too; seeds extend a store, and saying the usual changes nothing
    plain = ["toy", "toy --seeds 99", "toy --set lr=1", "toy --set drift=0,0.5,1 --dtype float32"]
    assert {name(line) for line in plain} == {"toy-quick"}
    other = ["toy --set lr=0.5", "toy --set lr=2", "toy --dtype float64", "toy --set sigma=0.1"]
    names = {name(line) for line in other}
    assert len(names) == 4 and all(each.startswith("toy-quick-") for each in names)
    assert name("toy --set lr=0.5 --seeds 7") == name("toy --set lr=0.5") != name("toy --set lr=5")


def test_an_older_version_is_found_and_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = one(tmp_path, "toy --scale tiny --set lr=0.5")
    execute(entry.study, "tiny", "cpu", out=tmp_path / entry.store_name)
    monkeypatch.setattr(Toy, "version", 2)
    now = standing(entry, tmp_path)
    assert (
        now.state == State.REFUSED and "was made by version 1 of 'toy', not version 2" in now.note
    )
    # a queue offers no --overwrite
    assert now.note.endswith("remove that store or use another --out")


def test_how_far_a_line_is(tmp_path: Path) -> None:
    entry, more = queue(tmp_path, "toy --scale tiny", "toy --scale tiny --seeds 4")
    before = standing(entry, tmp_path)
    assert (before.state, before.cells, before.cells_done) == (State.WAITING, 12, 0)
    assert not before.finished and [path.name for path in tmp_path.iterdir()] == ["q.txt"]
    execute(entry.study, "tiny", "cpu", out=before.path)
    after = standing(entry, tmp_path)
    assert after.state == State.DONE and after.finished and after.seconds > 0
    partly = standing(more, tmp_path)
    assert (partly.state, partly.cells, partly.cells_done) == (State.PARTLY, 24, 12)
    # a full store does not stand in the results yet
    assert standing(entry, tmp_path, tmp_path / "results").state == State.UNWRITTEN


def test_a_folder_of_someone_elses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "toy-tiny").mkdir()
    (tmp_path / "toy-tiny" / "letter").touch()
    now = standing(one(tmp_path, "toy --scale tiny"), tmp_path)
    assert now.state == State.REFUSED and "not a rarefy store; left untouched" in now.note


# Results


@pytest.fixture(scope="module")
def three_seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    dataset = rarefy.run(Toy, scale="tiny", seeds=3, device="cpu")
    write_results(Toy.at("tiny", seeds=3), "tiny", dataset, folder)
    return folder


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("toy --scale tiny --seeds 3", State.WRITTEN),
        ("toy --scale tiny --seeds 2", State.WRITTEN),
        ("toy --scale tiny --seeds 4", State.WAITING),
        ("toy --scale quick", State.WAITING),
        ("toy --scale tiny --set lr=0.5", State.REFUSED),
        ("toy --scale tiny --dtype float64", State.REFUSED),
    ],
)
def test_results_count_with_enough_seeds(
    tmp_path: Path, three_seeds: Path, line: str, state: State
) -> None:
    now = standing(one(tmp_path, line), tmp_path / "runs", three_seeds)
    assert now.state == state
    assert now.cells_done == (now.cells if state == State.WRITTEN else 0)


def test_results_that_lack_cells_or_their_table_do_not_count(
    tmp_path: Path, three_seeds: Path
) -> None:
    entry = one(tmp_path, "toy --scale tiny")
    described = json.loads((three_seeds / "toy-tiny.json").read_text())
    (tmp_path / "toy-tiny.json").write_text(json.dumps(described))
    assert standing(entry, tmp_path, tmp_path).state == State.WAITING  # no Parquet file
    shutil.copy(three_seeds / "toy-tiny.parquet", tmp_path)
    assert standing(entry, tmp_path, tmp_path).state == State.WRITTEN
    described["attributes"]["cells_done"] -= 1
    (tmp_path / "toy-tiny.json").write_text(json.dumps(described))
    assert standing(entry, tmp_path, tmp_path).state == State.WAITING


def test_results_that_cannot_be_read_are_not_replaced(tmp_path: Path) -> None:
    entry = one(tmp_path, "toy --scale tiny")
    (tmp_path / "toy-tiny.parquet").touch()
    for text in ("{", "{}", "[]", '{"spec": {"parameters": {"seeds": 1}}}'):
        (tmp_path / "toy-tiny.json").write_text(text)
        with pytest.raises(UsageError, match=r"q\.txt:1: cannot read results .*toy-tiny\.json"):
            refuse_other_results([entry], tmp_path)
        assert standing(entry, tmp_path, tmp_path).state == State.REFUSED


def test_results_of_other_parameters_are_refused_first(tmp_path: Path, three_seeds: Path) -> None:
    entries = queue(tmp_path, "toy", "toy --scale tiny --set lr=0.5")
    with pytest.raises(UsageError, match=r"q\.txt:2: results: .*lr=1.0, not 0.5; name another"):
        refuse_other_results(entries, three_seeds)
    refuse_other_results(queue(tmp_path, "toy --scale tiny --seeds 9"), three_seeds)


def test_two_lines_cannot_write_one_file(tmp_path: Path) -> None:
    lines = ("toy --scale tiny", "toy", "toy --scale tiny --seeds 9")
    check_results(queue(tmp_path, *lines), tmp_path / "results")
    with pytest.raises(
        UsageError, match=r"q\.txt:4: its results would replace those of line 1, .*"
    ):
        check_results(queue(tmp_path, *lines, "toy --scale tiny --set lr=2"), tmp_path / "results")
    with pytest.raises(UsageError, match="is a file; name a folder"):
        check_results(queue(tmp_path, "toy"), tmp_path / "q.txt")


# Words


def test_what_remains_in_words(tmp_path: Path) -> None:
    entry = one(tmp_path, "toy --scale tiny")

    def at(state: State, done: int) -> Standing:
        return Standing(entry, tmp_path, 12, done, state)

    full = [at(State.DONE, 12), at(State.WRITTEN, 12)]
    assert in_words(full) == "all 2 lines are done" and in_words(full[:1]) == "the line is done"
    rest = [at(State.PARTLY, 5), at(State.WAITING, 0), at(State.WAITING, 0), at(State.FAILED, 0)]
    assert in_words([*full, *rest]) == (
        "2 of 6 lines are done, 1 partly done, 2 waiting, 1 failed; 43 cells remain"
    )
