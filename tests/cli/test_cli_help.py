"""What the command line answers without torch: help, version, and complaints of its parser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rarefy
from rarefy import cli

Rarefy = Callable[..., subprocess.CompletedProcess[str]]


def test_help_is_quick_and_teaches(command: Rarefy) -> None:
    code = "import sys; from rarefy.cli import main; main(['run', '--help']); print(*sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(rarefy.__file__).parents[1])},
    ).stdout
    assert "Example: rarefy run" in shown
    assert not {"torch", "xarray", "zarr", "pandas"} & set(shown.split())


@pytest.mark.parametrize(
    "verb",
    [
        "studies",
        "run",
        "verify",
        "report",
        "explore",
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
    assert capsys.readouterr().out == f"rarefy {rarefy.__version__}\n"
    assert cli.main([]) == 0
    assert "rarefy demo" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["rum"], ["run"], ["run", "toy", "--sed", "3"]])
def test_the_parsers_complaints_are_one_line_too(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert re.fullmatch(r"error: .*\n", capsys.readouterr().err)
