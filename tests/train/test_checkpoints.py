"""Checkpoints: whole or not at all, and nothing in a file is ever run."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rarefy.core.errors import RunError
from rarefy.train import checkpoints
from rarefy.train.checkpoints import EVERY_SECONDS, Checkpoint

CPU = torch.device("cpu")
STATE: dict[str, Any] = {
    "step": 3,
    "weights": torch.arange(6.0).reshape(2, 3),
    "history": {"loss": [1.0, 0.5], "watched": {}},
}


def partial_of(checkpoint: Checkpoint, process: int | None = None) -> Path:
    return checkpoint.path.with_name(f".{checkpoint.path.name}.{process or os.getpid()}.partial")


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "deep" / "one.pt")
    assert checkpoint.load(CPU) is None
    checkpoint.save(STATE)
    found = checkpoint.load(CPU)
    assert found is not None
    assert torch.equal(found.pop("weights"), STATE["weights"])
    assert found == {name: value for name, value in STATE.items() if name != "weights"}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["one.pt"]
    checkpoint.remove()
    assert checkpoint.load(CPU) is None
    checkpoint.remove()  # twice is no error


def test_it_is_due_when_the_last_one_is_old(tmp_path: Path) -> None:
    now = [100.0]
    checkpoint = Checkpoint(tmp_path / "one.pt", lambda: now[0])
    assert not checkpoint.due()  # a training that has just begun has nothing to lose
    now[0] += EVERY_SECONDS
    assert checkpoint.due()
    checkpoint.save(STATE)
    assert not checkpoint.due()
    now[0] += EVERY_SECONDS - 0.1
    assert not checkpoint.due()


class Killed(BaseException):
    """As SIGKILL: nobody handles it."""


@pytest.mark.parametrize("moment", ["while it is written", "before it is renamed"])
def test_a_kill_while_saving_leaves_the_old_file(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    checkpoint.save(STATE)

    def half(state: object, path: Path) -> None:
        Path(path).write_bytes(b"half a file")
        raise Killed

    def never(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "while it is written":
            patch.setattr(checkpoints.torch, "save", half)
        else:
            patch.setattr(os, "replace", never)
        with pytest.raises(Killed):
            checkpoint.save({**STATE, "step": 4})
    found = checkpoint.load(CPU)
    assert found is not None and found["step"] == 3
    checkpoint.save({**STATE, "step": 5})  # what was left over is in nobody's way
    found = checkpoint.load(CPU)
    assert found is not None and found["step"] == 5
    assert not partial_of(checkpoint).exists()


def test_two_processes_do_not_write_into_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one is in the middle of the same training's checkpoint: its bytes stay its own."""
    checkpoint = Checkpoint(tmp_path / "one.pt")
    partial_of(checkpoint, os.getpid() + 1).write_bytes(b"half a file")
    checkpoint.save(STATE)
    assert partial_of(checkpoint, os.getpid() + 1).read_bytes() == b"half a file"
    written: list[Path] = []
    save = torch.save

    def watched(state: object, path: Path) -> None:
        written.append(Path(path))
        save(state, path)

    monkeypatch.setattr(checkpoints.torch, "save", watched)
    for process in (11, 12):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        checkpoint.save({**STATE, "step": process})
    assert written == [partial_of(checkpoint, 11), partial_of(checkpoint, 12)]
    found = checkpoint.load(CPU)
    assert found is not None and found["step"] == 12


def cut_short(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def of_others(_: bytes) -> bytes:
    return b"this is a text\n" * 20


def empty(_: bytes) -> bytes:
    return b""


def another_object(_: bytes) -> bytes:
    file = io.BytesIO()
    torch.save([1, 2, 3], file)
    return file.getvalue()


@pytest.mark.fault(
    theme="Runs and trainings that are stopped or fail",
    when="a checkpoint is cut short, empty, or holds something else",
    then="a warning names it, and that training starts over",
    lost="that training so far",
    named="truncated or garbled checkpoint",
)
@pytest.mark.parametrize("damage", [cut_short, of_others, empty, another_object])
def test_a_damaged_file_means_starting_over_with_a_warning(
    damage: Callable[[bytes], bytes], tmp_path: Path, logged: list[str]
) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    checkpoint.save(STATE)
    checkpoint.path.write_bytes(damage(checkpoint.path.read_bytes()))
    assert checkpoint.load(CPU) is None
    (said,) = logged
    assert "one.pt is damaged, starting over" in said
    assert "\n" not in said
    checkpoint.save(STATE)
    assert checkpoint.load(CPU) is not None


@pytest.mark.quick("1-255")
@pytest.mark.fault(
    theme="Runs and trainings that are stopped or fail",
    when="any byte of a checkpoint is wrong",
    then="the run goes on, from it or from the start",
    lost="that training so far",
    named="truncated or garbled checkpoint",
)
@pytest.mark.parametrize(("first", "byte"), list(enumerate([0, 255, ord("R")])))
def test_a_file_with_a_wrong_byte_never_ends_a_run(first: int, byte: int, tmp_path: Path) -> None:
    """Disks turn bits: what is loaded is a state or None, never an exception."""
    checkpoint = Checkpoint(tmp_path / "one.pt")
    checkpoint.save({"step": 3, "weights": torch.ones(3)})
    content = checkpoint.path.read_bytes()
    lost = 0
    for place in range(first, len(content), 3):
        checkpoint.path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
        found = checkpoint.load(CPU)
        assert found is None or isinstance(found, dict)
        lost += found is None
    assert lost > 0


class Evil:
    """A pickle that would write a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_an_evil_pickle_does_nothing(tmp_path: Path) -> None:
    target = tmp_path / "was here"
    bare, zipped = tmp_path / "bare.pt", tmp_path / "zipped.pt"
    bare.write_bytes(pickle.dumps({"step": Evil(target)}, protocol=2))
    torch.save({"step": Evil(target)}, zipped)
    for path in (bare, zipped):
        assert Checkpoint(path).load(CPU) is None
        assert not target.exists()
    pickle.loads(pickle.dumps(Evil(target)))  # it would have
    assert target.exists()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    checkpoint = Checkpoint(tmp_path / "file" / "one.pt")
    with pytest.raises(RunError, match="cannot write .*one.pt") as caught:
        checkpoint.save(STATE)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_line_and_leaves_the_old_file(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    checkpoint.save(STATE)
    partial_of(checkpoint).symlink_to("/dev/full")
    with pytest.raises(RunError, match="cannot write .*one.pt") as caught:
        checkpoint.save({"weights": torch.ones(100_000)})
    assert "\n" not in str(caught.value)
    assert not partial_of(checkpoint).is_symlink()
    found = checkpoint.load(CPU)
    assert found is not None and found["step"] == 3
