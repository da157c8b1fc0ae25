"""What the command line answers without torch: help, version, and complaints of its parser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

import rarefy
from rarefy import cli
from rarefy.cli.folding import PANELS, PRUNING

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


def test_each_verb_is_where_it_is_looked_for() -> None:
    """And there is no other: a program imports the file of the verb that it was called with."""
    known = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    assert set(cli.VERBS) == set(known)
    for verb, module in cli.VERBS.items():
        if verb != "data":  # (a group, whose own verbs are in that file)
            assert known[verb].callback.__module__ == f"rarefy.cli.{module}"
    code = "import sys; sys.argv[1:] = ['studies', '--help']; from rarefy import cli; cli.run()"
    code += "; print('rarefy.cli.training' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "False"


VERBS = sorted(typer.main.get_command(cli.app).commands)  # type: ignore[attr-defined]
SCREEN = 52
"""Lines of a help text: about one screen."""


def options_in(shown: str) -> list[str]:
    return re.findall(r"^│ (--[\w-]+)", shown, re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_help_is_one_screen_with_examples_and_help_all_has_the_rest(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"Example: rarefy {verb}" in shown
    first, lines = options_in(shown), shown.splitlines()
    assert len(first) <= 15 and len(lines) <= SCREEN and max(map(len, lines)) <= 80
    if "--help-all" not in first:
        return
    assert cli.main([verb, "--help-all"]) == 0
    whole = capsys.readouterr().out
    folded = [one for one in options_in(whole) if one not in first]
    said = re.search(r"--help-all shows (\d+) more options: (.*)\.", " ".join(shown.split()))
    assert (int(said[1]) if said else 0) == len(folded)
    headings = re.findall(r"^╭─ (.+?) ─", whole, re.MULTILINE)[2:]
    assert sorted(said[2].split("; ") if said else []) == sorted(headings)


def test_what_was_folded_away_is_under_its_heading(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "--help-all"]) == 0
    shown = capsys.readouterr().out
    under = shown.partition(f"╭─ {PRUNING} ─")[2].partition("╰─")[0]
    assert options_in(under) == ["--update", "--granularity", "--every"]
    assert "docs/grammar.md" in " ".join(under.split())


def test_verbs_are_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    """None is forgotten: it would stand at the end, under Commands."""
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    panels = re.findall(r"^╭─ (.+?) ─+╮$", shown, re.MULTILINE)
    assert panels == ["Options", *PANELS]
    assert re.search(r"train +Train a network on images", shown)


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
