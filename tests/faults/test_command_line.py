"""The command line"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
import zarr
from PIL import Image
from rich.console import Console

from rarefy.cli import frame, main
from rarefy.core.progress import Progress
from rarefy.core.tables import Table
from rarefy.nets.backbones import build_backbone

SOURCE = Path(main.__code__.co_filename).parents[1]
LONG, LARGE = "x" * 400, "9" * 400
Rarefy = Callable[..., subprocess.CompletedProcess[str]]
TOY = ("run", "toy", "--scale", "tiny")


def photos(folder: str) -> None:
    for label in ("cat", "dog"):
        Path(folder, label).mkdir(parents=True)
        for shade in range(6):
            Image.new("L", (8, 8), 40 * shade).save(Path(folder, label, f"{shade}.png"))


@pytest.mark.fault(
    when="a folder, class, file or store has a name such as `[/bold]`",
    then="it is printed as it is: no text from outside is read as markup",
    lost="nothing",
)
@pytest.mark.usefixtures("here")
def test_d10_names_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    photos("[/bold]")
    quick = ["--epochs", "1", "--seeds", "1", "--jobs", "1", "--network", "lenet", "--keep", "0.5"]
    assert main(["train", "[/bold]", *quick]) == 0
    assert "[/bold], lenet, 1 epochs" in capsys.readouterr().out
    photos("[red]")
    assert main(["influence", "[red]", "--no-gallery", "--neighbours", "0"]) == 0
    assert "[red]: 12 samples" in capsys.readouterr().out


@pytest.mark.fault(
    when="somebody adds a table to the code",
    then="there is one kind of table, and it reads no markup",
    lost="nothing",
)
def test_d10_only_one_file_knows_richs_tables() -> None:
    pattern = re.compile(r"rich\.(table|markup)|markup=True|Text\.from_markup")
    found = [path for path in SOURCE.rglob("*.py") if pattern.search(path.read_text("utf-8"))]
    assert found == [SOURCE / "core" / "tables.py"]
    table = Table(title="[/a]", caption="[/b]")
    table.add_column("[/c]")
    table.add_row("[red]d[/]")
    drawn = StringIO()
    Console(width=40, file=drawn).print(table)
    assert all(text in drawn.getvalue() for text in ("[/a]", "[/b]", "[/c]", "[red]d[/]"))


@pytest.mark.fault(
    when="a progress bar is about something named `[/bold]`",
    then="the bar says so",
    lost="nothing",
)
def test_d10_progress_bars_read_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with open(os.devnull, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        with Progress("influence of [/bold]", 2.0, stream=stream) as progress:
            progress.advance(1.0)


@pytest.mark.fault(
    when="an option has a value that makes no sense (infinite, no number, too large, empty)",
    then="one line names option and value, exit code 2, before any work",
    lost="nothing",
)
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("run contrast-heatmap --set bias_scale=1:inf", "bias_scale='1:inf': "),
        ("run benign-correlation --set gamma=1:2:nan", "gamma='1:2:nan': a range has a first"),
        ("run benign-correlation --set gamma=inf", "gamma="),
        ("run granularity-errors --set neurons=1e308", "neurons='1e308': must be a whole number"),
        ("run contrast-init --seeds 100000000000000", "seeds=100000000000000: makes more than"),
        (f"pretrain digits --batch {LARGE}", "batch='9999"),
        (f"influence digits --neighbours {LARGE}", "neighbours='9999"),
        ("influence digits --memory 1e300", "memory=1e+300: must be above 0 (GB) and below"),
        ("train digits --lr nan", "--lr=nan: is not a number"),
        ("train digits --keep inf", "keep="),
        ("train ''", "data='': is empty"),
        ("run contrast-init --scale tiny --out .", "out='.': has no name of its own"),
        ("granularity digits --out .", "out='.': has no name of its own"),
        ("run contrast-init --scale tiny --out ''", "out='': is empty"),
        ("run contrast-init --scale tiny --out file/store", "out='file/store': "),
        ("data check digits --sheet file/x.png", "sheet='file/x.png': "),
        (f"data check digits --sheet {LONG}.png", "is too long for a name"),
        (f"report {LONG}", f"{'x' * 120}: File name too long"),
        (f"influence {LONG}.csv --label a", "File name too long"),
        (f"train digits --save {LONG}", "File name too long"),
        (f"train digits --seeds {LARGE * 20}", "Invalid value for '--seeds': '9999"),
        (f"train digits --{LONG} 3", "No such option: --xxxx"),
        ("train digits --lr 1e308", "--lr=1e+308: must be below 1e+38"),
        ("pretrain digits --temperature 1e308", "--temperature=1e+308: must be below 1e+38"),
        ("run contrast-init --set sigma_0=1e39", "sigma_0=1e+39: must be below 1e+38"),
        ("probe none.pt --test-share 0.2", "--test-share=0.2: of a folder, which --on names"),
        ("demo --max-seconds 0", "--max-seconds=0.0: must be more than 0"),
        ("granularity digits --out .", "out='.': has no name of its own"),
        ("checkup digits --out file/x", "out='file/x"),
        ("demo --out file/x", "out='file/x"),
        ("run contrast-init --scale tiny --results file/x", "results='file/x"),
        (f"report none --out {LONG}/a", "is too long for a name"),
        (f"explore contrast-init --save {LONG}/x.html", "is too long for a name"),
        (f"run contrast-init --scale tiny --out {'d/' * 1500}x", "is too long for a name"),
        (f"influence digits --out {'d/' * 1500}x", "is too long for a name"),
    ],
)
def test_d11_bad_values_are_one_line(
    call: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").write_text("mine")
    words = [word.strip("'") for word in call.split(" ")]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ") and message in told and told.count("\n") == 1
    assert len(told) < 400 and [path.name for path in here.iterdir()] == ["file"]


@pytest.mark.fault(
    when="`--sheet` names a folder that is not there yet",
    then="it is made",
    lost="nothing",
)
def test_d11_a_picture_makes_its_folder(here: Path) -> None:
    assert main(["data", "check", "digits", "--sheet", "new/x.png"]) == 0
    assert (here / "new" / "x.png").stat().st_size > 1000


@pytest.mark.fault(
    when="nothing can be written where an output shall lie",
    then="one line names the option and the folder, exit code 2, before any work",
    lost="nothing",
)
@pytest.mark.parametrize(
    "call",
    [
        "run contrast-init --scale tiny --out s",
        "run contrast-init --scale tiny --results r",
        "train digits --keep 1 --out t",
        "train digits --keep 1 --save n",
        "pretrain digits --method simclr --out p",
        "pretrain digits --method simclr --rho 2 --save-split p.json",
        "granularity digits --out g",
        "granularity digits --page g.html",
        "checkup digits --out c",
        "influence digits --out i",
        "explore contrast-init --save e.html",
        "report none --out r.html",
        "demo --out d",
        "data check digits --sheet y.png",
    ],
)
def test_d11_an_unwritable_folder_is_refused_before_the_work(
    call: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access  # (root may write anywhere)
    refused = lambda path, mode: not mode & os.W_OK and access(path, mode)  # noqa: E731
    monkeypatch.setattr(os, "access", refused)
    assert main(call.split()) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(r"error: -*\w+=.*: nothing can be written into .*\n", said)
    assert not list(here.iterdir())


@pytest.mark.slow
@pytest.mark.fault(
    when="standard output or standard error is closed (`2>&-`), or both",
    then="the run goes on, and none of its files gets the messages",
    lost="the messages",
)
def test_lower_closed_streams(toy_environment: dict[str, str], tmp_path: Path) -> None:
    line = f"{sys.executable} -W error -m rarefy {' '.join(TOY)} --out s 1>&- 2>&-"
    ran = subprocess.run(line, shell=True, cwd=tmp_path, env=toy_environment, check=False)
    assert ran.returncode == 0
    assert zarr.open_array(tmp_path / "s" / "done", mode="r")[:].all()
    assert not any(b"toy: " in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.fault(
    when="the terminal claims to have no columns (`COLUMNS=0`)",
    then="tables and help are printed 80 columns wide",
    lost="nothing",
)
@pytest.mark.usefixtures("here")
def test_lower_no_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for call in (["data"], ["--help"]):
        monkeypatch.setenv("COLUMNS", "0")
        assert main(call) == 0
        assert len(capsys.readouterr().out) > 500


SLOW = """
import time, toy_study
from rarefy.cli import frame, main
simulate = toy_study.Toy.simulate
def slowly(self, cells, context):
    try:
        print("begun", flush=True)
        time.sleep(60)
    finally:
        print("ending", flush=True)
        time.sleep(2)  # what an orderly end takes
toy_study.Toy.simulate = slowly
raise SystemExit(main(["run", "toy", "--scale", "tiny", "--out", "s"]))
"""


@pytest.mark.slow
@pytest.mark.fault(
    when="Ctrl-C is pressed again while a run is being stopped",
    then="a line says that it is being stopped; no tracebacks",
    lost="the batches in flight",
    named="a parent killed at random moments: SIGKILL, SIGTERM, Ctrl-C twice",
)
def test_lower_ctrl_c_again(toy_environment: dict[str, str], tmp_path: Path) -> None:
    environment = {**toy_environment, "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-c", SLOW]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(program, cwd=tmp_path, env=environment, **pipes) as run:
        for moment in ("begun\n", "ending\n"):
            assert run.stdout.readline() == moment
            run.send_signal(signal.SIGINT)
        _, told = run.communicate(timeout=60)
    assert run.returncode == 130 and "Traceback" not in told, told
    assert "note: stopping, what is under way is being kept" in told
    assert "error: stopped: 0 of 12 cells" in told


@pytest.mark.fault(
    when="Ctrl-C is pressed a third time",
    then="the run ends at once, with exit code 130",
    lost="the batches in flight",
    named="a parent killed at random moments: SIGKILL, SIGTERM, Ctrl-C twice",
)
def test_lower_ctrl_c_a_third_time(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    before = signal.signal(signal.SIGINT, frame._again)
    try:
        signal.raise_signal(signal.SIGINT)
        assert codes == [] and "note: stopping, what is under way" in capfd.readouterr().err
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert codes == [130]


@pytest.mark.fault(
    when="the C++ compiler does not work and `--compile` is given",
    then="a note says so, and training goes on without it",
    lost="speed",
    named="no C++ compiler",
)
@pytest.mark.skipif(shutil.which("g++") is None, reason="without a compiler nothing is tried")
@pytest.mark.usefixtures("here", "compiler_afresh")
def test_d12_a_broken_compiler(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no headers\n" + 40 * "a page of text\n")

    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model, **_: real(model, backend=broken))
    monkeypatch.delenv("RAREFY_COMPILE")
    quick = ["--epochs", "1", "--seeds", "1", "--samples", "64", "--network", "lenet"]
    assert main(["train", "digits", "--keep", "1", *quick, "--jobs", "1", "--compile"]) == 0
    told = capsys.readouterr().err
    assert "note: going on without compiled kernels (no headers)\n" in told
    assert told.count("a page of text") == 0


@pytest.mark.fault(
    when="a network file holds something else, or not all of it",
    then="one line names the file, exit code 2",
    lost="that file",
)
@pytest.mark.parametrize(
    "wrong",
    [
        {"state_dict": 3},
        {"state_dict": {"a": 1}},
        {"channels": "x"},
        {"size": -1},
        {"mean": "x"},
        {"recipe": None},
        {"tail": {}},
        {"tail": {"balanced": False, "rho": 2.0, "newer": 1}},
        *({name: None} for name in ("data", "tail", "way", "class_order_seed", "epochs")),
    ],
)
@pytest.mark.usefixtures("here")
def test_d12_files_that_are_no_networks(
    wrong: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    weights = build_backbone("lenet", 1, 8)[0].state_dict()
    held = {"kind": "backbone", "network": "lenet", "state_dict": weights, "data": "digits"}
    held |= {"channels": 1, "size": 8, "classes": list("0123456789"), "mean": [0.0], "std": [1.0]}
    held |= {"way": "simclr", "class_order_seed": 0, "recipe": {}, "epochs": 1}
    held |= {"tail": {"balanced": False, "rho": 2.0}} | wrong
    torch.save(held, "net.pt")
    assert main(["probe", "net.pt", "--on", "digits"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: net.pt") and told.count("\n") == 1 and len(told) < 200
