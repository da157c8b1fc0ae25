"""Which cluster is meant, and what its workers are together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from toy_study import Toy

from rarefy.core.errors import UsageError
from rarefy.sweep import connecting
from rarefy.sweep.runner import execute


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("local:0", "must be local:N, for N processes here, N from 1 to 256"),
        ("local:x", "must be local:N"),
        ("local", "must be local:N"),
        ("missing.json", r"cannot be read \(No such file or directory\); dask scheduler --sched"),
        ("garbled.json", "is no scheduler file: it names no address"),
        ("listed.json", "is no scheduler file: it names no address"),
        ("127.0.0.1:1", r"no Dask scheduler answers there \("),
        ("no such address", r"no Dask scheduler answers there \("),
    ],
)
def test_what_is_no_cluster_is_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(connecting, "ANSWER_SECONDS", 0.5)
    Path("garbled.json").write_text('{"addr')
    Path("listed.json").write_text('["address"]')
    with pytest.raises(UsageError, match=said) as caught:
        execute(Toy.at("tiny"), "tiny", out="store", cluster=text)
    assert str(caught.value).startswith(f"cluster={text!r}: ") and "\n" not in str(caught.value)
    assert not Path("store").exists()


def fact(device: str = "cpu", memory: str = "a", free: int = 100, **made: str) -> dict[str, Any]:
    kept = {"device": device, "torch": torch.__version__, "machine": "chip", **made}
    return {"made": kept, "memory": memory, "free": free, "compiles": True}


def worker(threads: int = 1, **resources: int) -> dict[str, Any]:
    return {"nthreads": threads, "resources": resources}


def test_the_tightest_memory_decides() -> None:
    found = {"a": fact(), "b": fact(), "c": fact(memory="c", free=60)}
    workers = {"a": worker(2), "b": worker(1), "c": worker(1)}
    machine, words = connecting._machine(found, workers, "auto")
    assert (machine.device.type, machine.free, machine.at_once) == ("cpu", 100, 3)
    assert words == "3 workers on cpu" and machine.compiles and machine.made["workers"] == 3


def test_gpus_are_used_where_they_are_offered() -> None:
    found = {"a": fact("cuda"), "b": fact("cuda"), "c": fact("cpu", "c")}
    workers = {"a": worker(4, GPU=1), "b": worker(1), "c": worker(8)}
    for device in ("auto", "cuda"):
        machine, words = connecting._machine(found, workers, device)
        assert (machine.device.type, machine.at_once) == ("cuda", 1)
        assert words == "1 worker on cuda (2 that offer none stay idle)"
    with pytest.raises(
        UsageError, match="^device='auto': no worker offers its GPU; start each with"
    ):
        connecting._machine(found, dict.fromkeys(found, worker()), "auto")
    with pytest.raises(UsageError, match="^device='cuda': no worker has a CUDA device"):
        connecting._machine({"a": fact()}, {"a": worker()}, "cuda")


def test_what_may_change_last_digits_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"a": fact(torch="1.0"), "b": fact(machine="other", torch="1.0")}
    machine, _ = connecting._machine(found, dict.fromkeys(found, worker()), "cpu")
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"note: more than one torch (1.0, {torch.__version__}): last digits")
    assert said[1].startswith("note: more than one machine (chip, other): last digits may depend")
    assert machine.made["machine"] == "chip, other" and len(said) == 2
