"""docs/grammar.md against the real parsers: every example is taken, every refused one is refused by
the command in the heading, with the line that the page has."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rarefy import cli
from rarefy.cli.completing import METHODS, scales
from rarefy.cli.frame import numbers
from rarefy.data.hierarchy.made import check_spec
from rarefy.nets.builder import build
from rarefy.studies import get_study, load_studies
from rarefy.sweep.connecting import check_cluster
from rarefy.sweep.parse import parse_settings
from rarefy.tools.longtail.evaluation import Evaluation
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.simclr.method import Method, parse_methods


def _made(text: str) -> None:
    for one in text.split(","):
        check_spec("random:2" if one == "random" else one)


PAGE = Path(__file__).parents[2] / "docs" / "grammar.md"
PARSERS: dict[str, Callable[[str], object]] = {
    "SETTING": lambda text: parse_settings(get_study("contrast-alignment"), [text]),
    "SHARES": lambda text: text == "auto" or [PruningSpec(one) for one in numbers("keep", text)],
    "RULE": lambda text: PruningSpec.parse(text, 0.3),
    "UNIT": lambda text: PruningSpec(0.3, granularity=text),
    "METHODS": lambda text: text == "auto" or parse_methods(text),
    "PROTOCOLS": lambda text: Evaluation(tuple(text.split(","))),
    "LABELS": lambda text: _made(text),
    "ADDRESS": check_cluster,
    "NETWORK": lambda text: build(text, 1, 16, 3),
}
ACCEPTED, REFUSED = "Accepted", "Refused"


def examples(kind: str) -> Iterator[tuple[str, str]]:
    """The command of a section, and a line of its block of this kind."""
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        command = section.partition("\n")[0].strip("`")
        (block,) = re.findall(rf"\n{kind}:\n\n```\n(.*?)```", section, re.DOTALL)
        yield from ((command, line) for line in block.splitlines())


@pytest.mark.parametrize(("command", "line"), list(examples(ACCEPTED)))
def test_examples_are_taken(command: str, line: str) -> None:
    PARSERS[command.split()[-1]](re.split(r"  +", line)[0])


def refused() -> Iterator[tuple[str, str, str]]:
    """A refused example, and the line below it that a terminal shows."""
    lines = list(examples(REFUSED))
    for (command, text), (_, error) in zip(lines[::2], lines[1::2], strict=True):
        yield command, text, error.strip()


@pytest.mark.parametrize(("command", "text", "error"), list(refused()))
def test_wrong_examples_are_refused(
    command: str,
    text: str,
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main([*shlex.split(command)[1:-1], text]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == error
    assert not list(tmp_path.iterdir())


# --------------------------------------------------------------------------------------- completion


def completed(line: str) -> list[str]:
    asked = {
        "_RAREFY_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "rarefy"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {entry.rpartition("|")[2].strip() for entry in ran.stderr.splitlines()}
    assert "typer" in imported and not {"torch", "numpy"} & imported
    return ran.stdout.split()


@pytest.mark.quick(
    "rarefy prob-expected0",
    "rarefy run topk-phase --scale -expected4",
    "rarefy pretrain digits --method simclr,br-expected6",
)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rarefy prob", ["probe"]),
        ("rarefy run contrast-in", ["contrast-init"]),
        ("rarefy studies topk-p", ["topk-phase"]),
        ("rarefy explore topk-p", ["topk-phase"]),
        ("rarefy run topk-phase --scale ", ["tiny", "quick", "paper", "every50", "mean"]),
        ("rarefy run --scale q", ["quick"]),
        ("rarefy pretrain digits --method simclr,br", ["simclr,branches:0.1"]),
    ],
)
def test_tab_completes(line: str, expected: list[str]) -> None:
    assert completed(line) == expected


def test_scales_are_those_of_every_study() -> None:
    for name, kind in load_studies().items():
        context = cast(Any, SimpleNamespace(params={"study": name}, args=[]))
        assert set(scales(context, "")) == set(kind.scales), name


def test_methods_are_methods() -> None:
    for name in METHODS.keys() - {"auto"}:
        assert Method.parse(name).words


def test_a_script_for_the_shell_is_shown() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "rarefy", "--show-completion", "bash"],
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0 and "_RAREFY_COMPLETE=complete_bash" in ran.stdout, ran.stderr
