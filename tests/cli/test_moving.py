"""``rarefy pack`` and ``rarefy unpack``: a training that goes on elsewhere, and packs that are not
as they were written."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from folders import seen_in
from small_commands import HERE, SMALL
from small_longtail import task

from rarefy import cli
from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime
from rarefy.core.writing import file_hash
from rarefy.sweep import moving
from rarefy.sweep.lock import Lock
from rarefy.tools import forecasting
from rarefy.tools.longtail.pretraining import PretrainResult, pretrain_one
from rarefy.train.checkpoints import made_light, made_whole
from rarefy.train.recipe import Recipe
from rarefy.train.simclr.method import Method

COMMAND = ("pretrain", *SMALL, "--batch", "32", "--protocols", "knn", "--seeds", "1")
COMMAND = (*COMMAND, "--method", "simclr,branches:0.3", "--no-control", *HERE, "--out", "runs/x")
SEEDS, WAY = 8, Method.parse("branches:0.3")


def stop_after(patch: pytest.MonkeyPatch, looks: int) -> None:
    asked: list[int] = []

    def soon(self: Context) -> None:
        asked.append(1)
        if len(asked) > looks:
            raise OutOfTime("the time given with --max-seconds is over")

    patch.setattr(Context, "check_time", soon)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one finished cell, and a training with two branches in its second epoch."""
    folder = tmp_path_factory.mktemp("begun")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("RAREFY_COMPILE", "0")
        patch.setattr(forecasting, "seconds_for", lambda experiment, device: 36.0)
        stop_after(patch, 14)
        assert cli.main([*COMMAND, "--max-seconds", "500"]) == 3
    return folder


@pytest.fixture
def stopped(begun: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: 36.0)
    shutil.copytree(begun, here, dirs_exist_ok=True)
    return here / "runs" / "x"


def state_of(store: Path) -> dict[str, Any]:
    (file,) = store.with_name(f".{store.name}.scratch").glob("*.pt")
    state: dict[str, Any] = torch.load(file, weights_only=True)
    return state


def leaves(value: Any, at: str = "") -> dict[str, Any]:
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {
            place: leaf
            for name, part in parts
            for place, leaf in leaves(part, f"{at}/{name}").items()
        }
    return {at: value}


def test_it_moves_and_goes_on_with_all_but_the_rounding_exact(
    stopped: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = stopped.with_name(".x.scratch").glob("*.pt")
    state = state_of(stopped)
    kept = {name: state[name] for name in ("model", "pruner")}  # (as after a look)
    torch.save({**state, "kept": kept}, file)
    before = leaves(state_of(stopped))
    assert cli.main(["pack", "runs/x", "moved", "--part-mb", "0.02"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("pretrain-images: 1 of 2 cells, 1 file of trainings under way, ")
    assert said[1] == "packed in moved; to go on elsewhere: rarefy unpack moved runs/x"
    parts = sorted(Path("moved").glob("part-*"))
    assert len(parts) > 1 and all(part.stat().st_size <= 20_000 for part in parts)

    there = stopped.parents[1] / "there"
    there.mkdir()
    shutil.move("moved", there / "moved")
    monkeypatch.chdir(there)
    assert cli.main(["unpack", "moved", "runs/x"]) == 0
    assert "unpacked as runs/x; the command that" in capsys.readouterr().out
    after = leaves(state_of(there / "runs" / "x"))
    assert after.keys() == before.keys() and before["/step"] == after["/step"] > 3
    rounded = set()
    for place, value in before.items():
        if not isinstance(value, torch.Tensor):
            assert value == after[place], place
            continue
        assert value.dtype == after[place].dtype and value.shape == after[place].shape
        if not torch.equal(value, after[place]):
            assert torch.equal(value.to(torch.bfloat16).float(), after[place])
            rounded.add(place)
    kinds = {"momentum_buffer" if "momentum" in place else "weight" for place in rounded}
    assert kinds == {"momentum_buffer", "weight"}
    assert {place[5:] for place in rounded if place.startswith("/kept")} == {
        place for place in rounded if place.startswith(("/model", "/pruner"))
    }
    exact = before.keys() - rounded
    assert any(place.endswith("/mask") for place in exact)
    assert {"/sums", "/random", "/losses", "/pruner/generator"} <= exact
    for name in sorted(os.listdir(stopped / "accuracy" / "c" / "0")):
        path = Path("accuracy", "c", "0", name)
        if (stopped / path).is_file():
            assert (stopped / path).read_bytes() == (there / "runs/x" / path).read_bytes()

    assert cli.main([*COMMAND, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["finished"]


def run(seed: int, scratch: Path | None) -> PretrainResult:
    own = task(recipe=Recipe(epochs=6, learning_rate=0.05, weight_decay=1e-4))
    return pretrain_one(own, WAY, seed, seed, Context(scratch=scratch), "one")


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_it_ends_like_an_undisturbed_training_within_seed_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Declared before it was run: the mean over 8 seeds of what moving changes (test accuracy, loss
    at the end) is within two standard errors of a mean over 8 seeds of undisturbed trainings."""
    accuracy, loss = np.zeros((2, SEEDS)), np.zeros((2, SEEDS))
    for seed in range(SEEDS):
        scratch = tmp_path / str(seed)
        with monkeypatch.context() as patch, pytest.raises(OutOfTime):
            stop_after(patch, 10)  # of 18 updates
            run(seed, scratch)
        (file,) = scratch.iterdir()
        state = torch.load(file, weights_only=True)
        assert state["step"] == 10
        torch.save(made_whole(made_light(state)), file)
        both = [run(seed, None), run(seed, scratch)]
        for place, found in enumerate(both):
            assert found.quality is not None
            accuracy[place, seed] = float(found.quality.accuracy["knn"].mean())
            loss[place, seed] = found.history.loss[-1]
        first, second = (one.history.loss for one in both)
        assert first[:3] == second[:3] and first[3:] != second[3:]
    for values in (accuracy, loss):
        error = values[0].std(ddof=1) / np.sqrt(SEEDS)
        assert abs((values[1] - values[0]).mean()) <= 2 * error


def damaged(at: Path) -> None:
    content = bytearray(at.read_bytes())
    content[len(content) // 2] ^= 1
    at.write_bytes(content)


def renamed_hash(folder: Path, **changes: Any) -> None:
    """A manifest that somebody else wrote, whole in itself."""
    told = {**json.loads((folder / "manifest.json").read_text()), **changes}
    told.pop("hash")
    told["hash"] = moving._hash_of(told)
    (folder / "manifest.json").write_text(json.dumps(told))


def foreign_archive(folder: Path, *members: tuple[str, bytes]) -> None:
    with tarfile.open(folder / "part-001", "w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    part = folder / "part-001"
    about = {"name": part.name, "bytes": part.stat().st_size, "hash": file_hash(part)}
    renamed_hash(folder, parts=[about])


class Harm:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("harmed",)


def with_code(folder: Path) -> None:
    foreign_archive(folder, ("scratch/a.pt", pickle.dumps(Harm())))


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "damaged": (lambda at: damaged(at / "part-001"), "part-001 is damaged, or of another pack;"),
    "short": (lambda at: (at / "part-001").write_bytes(b"x"), "part-001 has 1 bytes, not "),
    "missing": (lambda at: (at / "part-001").unlink(), "part-001 is missing; move it again"),
    "foreign": (lambda at: (at / "part-007").touch(), "part-007 is not of this pack; remove it"),
    "no manifest": (lambda at: (at / "manifest.json").unlink(), "is no pack: it has no manifest"),
    "manifest": (lambda at: damaged(at / "manifest.json"), "manifest.json is damaged"),
    "a list": (lambda at: (at / "manifest.json").write_text("[]"), "manifest.json is damaged"),
    "elsewhere": (
        lambda at: renamed_hash(at, parts=[{"name": "../x", "bytes": 1, "hash": ""}]),
        "manifest.json is damaged",
    ),
    "outside": (lambda at: foreign_archive(at, ("../../x", b"")), "holds no store of rarefy ("),
    "empty": (lambda at: foreign_archive(at), "holds no store of rarefy"),
    "code": (with_code, "holds no store of rarefy ("),
    "not a folder": (shutil.rmtree, "is no pack: it has no manifest.json"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_pack_that_is_not_as_it_was_written_is_refused(
    wrong: str, stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["pack", "runs/x", "moved", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["under_way"] == 1
    spoil, message = WRONG[wrong]
    spoil(Path("moved"))
    assert cli.main(["unpack", "moved", "there/y"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: folder='moved': ") and message in said
    assert said.count("\n") == 1
    assert not Path("harmed").exists() and not list(Path("there").glob("*"))
    assert not list(Path("there").glob(".*"))


def test_what_is_in_the_way_stays(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*words: str) -> str:
        code = cli.main([*words])
        said = capsys.readouterr().err
        assert code in (1, 2, 3) and said.count("\n") == 1
        return said

    assert "no store at nowhere" in refused("pack", "nowhere", "moved")
    Path("photos").mkdir()
    Path("photos/a.png").touch()
    assert "is a folder that is not a rarefy store" in refused("pack", "photos", "moved")
    assert "--part-mb=0.0: must be more than 0" in refused(
        "pack", "runs/x", "moved", "--part-mb", "0"
    )
    assert "folder='photos': is there already" in refused("pack", "runs/x", "photos")
    lock = Lock(stopped.with_name(".x.lock"), stopped)
    lock.acquire()
    assert "is being written by another process" in refused("pack", "runs/x", "moved")
    lock.release()
    assert not Path("moved").exists()

    assert cli.main(["pack", "runs/x", "moved"]) == 0
    capsys.readouterr()
    before = state_of(stopped)["model"]
    said = refused("unpack", "moved", "runs/x")
    assert "store='runs/x': is there already; pass --overwrite, or name another" in said
    assert "is a folder that is not a rarefy store" in refused("unpack", "moved", "photos")
    assert all(torch.equal(one, before[name]) for name, one in state_of(stopped)["model"].items())
    assert cli.main(["unpack", "moved", "runs/x", "--overwrite"]) == 0
    now = state_of(stopped)["model"]
    assert any(not torch.equal(one, before[name]) for name, one in now.items())
    assert {path.name for path in seen_in(stopped.parent)} == {"x", ".x.scratch"}

    (file,) = stopped.with_name(".x.scratch").iterdir()
    file.write_bytes(b"no checkpoint")
    assert f"{file.name} is damaged; remove it to pack" in refused("pack", "runs/x", "more")
    damaged(next(file for file in (stopped / "accuracy").rglob("0") if file.is_file()))
    assert "store runs/x is damaged: accuracy" in refused("pack", "runs/x", "more")
    assert not Path("more").exists()


def test_overwriting_is_all_or_nothing(
    stopped: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["pack", "runs/x", "moved"]) == 0
    (file,) = stopped.with_name(".x.scratch").iterdir()
    before, rename, old = file.read_bytes(), Path.rename, stopped.with_name(".x.old")
    again = ["unpack", "moved", "runs/x", "--overwrite"]
    for last in (".x.scratch", "x"):

        def full(self: Path, target: Path, last: str = last) -> Path:
            if target.name == last and self.parent.name == ".x.building":
                raise OSError("no space left")
            return rename(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", full)
            assert cli.main(again) == 1
        assert "no space left" in capsys.readouterr().err
        assert file.read_bytes() == before and (stopped / "zarr.json").is_file()
        assert {path.name for path in seen_in(stopped.parent)} == {"x", ".x.scratch"}

    (old / "accuracy").mkdir(parents=True)  # killed when all but the tidying was done
    assert cli.main(again) == 0
    assert file.read_bytes() != before
    (old / "scratch").mkdir(parents=True)  # killed between the two
    rename(stopped, old / "store")
    assert cli.main(again) == 0
    assert (stopped / "zarr.json").is_file() and file.is_file()
    assert {path.name for path in seen_in(stopped.parent)} == {"x", ".x.scratch"}


@pytest.mark.slow
def test_saved_networks_and_the_race_go_along(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: 36.0)
    one = ("pretrain", *SMALL, "--batch", "32", "--protocols", "knn", "--method", "simclr")
    one = (*one, "--no-control", *HERE, "--out", "runs/z", "--features", "f.csv", "--seeds", "2")
    with monkeypatch.context() as patch:
        stop_after(patch, 10)
        assert cli.main([*one, "--max-seconds", "500"]) == 3
    (first,) = Path("runs/z-networks").glob("*.pt")
    assert first.name.endswith("seed-0.pt")
    shutil.copytree("runs/z", "runs/z-race")
    Path("runs/z-networks/notes.txt").write_text("mine")
    capsys.readouterr()
    assert cli.main(["pack", "runs/z", "moved"]) == 0
    assert ", saved networks, the race of --method auto, " in capsys.readouterr().out

    assert cli.main(["unpack", "moved", "there/z"]) == 0
    for folder in ("z-networks", "z-race"):
        files = [file for file in Path("runs", folder).rglob("*") if file.is_file()]
        moved = [Path("there", file.relative_to("runs")) for file in files]
        assert len(files) > 2
        assert [file.read_bytes() for file in files] == [file.read_bytes() for file in moved]
    capsys.readouterr()
    shutil.rmtree("there/z")
    for more, why in ((), "pass --overwrite, or name another"), (("--overwrite",), "move it away"):
        assert cli.main(["unpack", "moved", "there/z", *more]) == 2
        assert f"there/z-networks is there already; {why}" in capsys.readouterr().err
        assert not Path("there/z").exists() and Path("there/z-networks/notes.txt").is_file()
    Path("there/z-networks/notes.txt").unlink()
    assert cli.main(["unpack", "moved", "there/z", "--overwrite"]) == 0

    there = [word.replace("runs/z", "there/z") for word in one]
    assert cli.main(there) == 0
    assert f"network: there/z-networks/{first.name}\n" in capsys.readouterr().out
    Path("there/z-networks", first.name).unlink()  # no other seed stands in for it
    Path("f.csv").unlink()
    assert cli.main(there) == 2
    said = capsys.readouterr().err
    assert f"error: --features: there/z-networks/{first.name} is missing: it was trained" in said
    assert "copy it there, or --overwrite trains all again" in said and not Path("f.csv").exists()
