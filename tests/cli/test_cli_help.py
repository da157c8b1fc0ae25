"""What the command line answers without torch: help, version, and complaints of its parser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

import rarefy
from rarefy import cli

Rarefy = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("arguments", [["run", "--help"], ["--version"]])
def test_help_is_quick_and_teaches(command: Rarefy, arguments: list[str]) -> None:
    code = f"import sys; from rarefy.cli import main; main({arguments}); print(*sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(rarefy.__file__).parents[1])},
    ).stdout
    assert ("Example: rarefy run" in shown) == ("run" in arguments)
    assert not {"torch", "xarray", "zarr", "pandas"} & set(shown.splitlines()[-1].split())


@pytest.mark.parametrize(
    "verb",
    [
        "studies",
        "run",
        "verify",
        "report",
        "check",
        "pack",
        "unpack",
        "demo",
        "data",
        "clean",
        "train",
    ],
)
def test_every_verb_has_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([verb, "--help"]) == 0
    assert f"Example: rarefy {verb}" in capsys.readouterr().out


def test_version_and_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first == f"rarefy {rarefy.__version__}"
    told = dict(line.split(None, 1) for line in others)
    named = {"Python", "torch", "numpy", "xarray", "zarr", "scikit-learn", "device", "system"}
    assert told.keys() == named
    assert told["torch"] == version("torch") and "CPU cores" in told["device"]
    assert cli.main([]) == 0
    assert "rarefy demo" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["rum"], ["run"], ["run", "toy", "--sed", "3"]])
def test_the_parsers_complaints_are_one_line_too(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert re.fullmatch(r"error: .*\n", capsys.readouterr().err)
