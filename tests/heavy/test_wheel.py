"""Wheel and source archive in clean environments, on top of the packages of this one."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

import rarefy

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_built_package_in_a_clean_environment_has_a_command_that_knows_all_studies(
    kind: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet"]
    code = f"from flit_core import buildapi; print(buildapi.build_{kind}({str(tmp_path)!r}))"
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    package = tmp_path / made.stdout.strip()
    record_property("bytes", package.stat().st_size)

    venv.create(tmp_path / "clean", symlinks=True)
    python = tmp_path / "clean" / "bin" / "python"
    # packages alone: a rarefy installed beside them by a link is not followed from here
    (packages,) = (tmp_path / "clean").glob("lib/python*/site-packages")
    (packages / "beside.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    subprocess.run(
        [*pip, "--python", python, "install", "--no-deps", "--no-index", "--no-build-isolation"]
        + [package],
        check=True,
    )

    def said(*command: object) -> str:
        ran = subprocess.run(
            command, cwd=tmp_path, env={}, capture_output=True, text=True, check=True
        )
        return ran.stdout

    assert said(python, "-c", "import rarefy; print(rarefy.__file__)").startswith(str(packages))
    command = tmp_path / "clean" / "bin" / "rarefy"
    assert said(command, "--version").startswith(f"rarefy {rarefy.__version__}\n")
    assert said(python, "-c", "import rarefy; print(*dir(rarefy))").split() == dir(rarefy)
    assert (packages / "rarefy" / "py.typed").exists()
    studies = said(command, "studies", "--json")
    assert studies == said(sys.executable, "-m", "rarefy", "studies", "--json")
    record_property("studies", studies.count('"name"'))
    # reads the ledger, which is no Python file
    assert "supported" in said(command, "claims", "--json")
