"""docs/grammar.md against the real parsers: every example is taken, every refused one is refused by
the command in the heading, with the line that the page has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rarefy import cli
from rarefy.cli.frame import numbers
from rarefy.data.hierarchy.made import check_spec
from rarefy.nets.builder import build
from rarefy.studies import get_study
from rarefy.sweep.connecting import check_cluster
from rarefy.sweep.parse import parse_settings
from rarefy.tools.longtail.evaluation import Evaluation
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.simclr.method import parse_methods


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
