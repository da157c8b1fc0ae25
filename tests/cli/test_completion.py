"""What a shell completes, asked as the shell asks."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rarefy.cli.completing import METHODS, scales
from rarefy.studies import load_studies
from rarefy.train.simclr.method import Method


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
