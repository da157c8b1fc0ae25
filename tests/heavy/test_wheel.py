"""The wheel in a clean environment, on top of the packages of this one."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import rarefy

ROOT = Path(__file__).parents[2]


def test_wheel_in_a_clean_environment_has_a_command_that_knows_all_studies(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet"]
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, ROOT]
    subprocess.run(built, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    record_property("bytes", wheel.stat().st_size)

    venv.create(tmp_path / "clean", symlinks=True)
    python = tmp_path / "clean" / "bin" / "python"
    subprocess.run(
        [*pip, "--python", python, "install", "--no-deps", "--no-index", wheel], check=True
    )
    # packages alone: a rarefy installed beside them by a link is not followed from here
    (packages,) = (tmp_path / "clean").glob("lib/python*/site-packages")
    (packages / "beside.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")

    def said(*command: object) -> str:
        ran = subprocess.run(
            command, cwd=tmp_path, env={}, capture_output=True, text=True, check=True
        )
        return ran.stdout

    assert said(python, "-c", "import rarefy; print(rarefy.__file__)").startswith(str(packages))
    command = tmp_path / "clean" / "bin" / "rarefy"
    assert said(command, "--version") == f"rarefy {rarefy.__version__}\n"
    studies = said(command, "studies", "--json")
    assert studies == said(sys.executable, "-m", "rarefy", "studies", "--json")
    record_property("studies", studies.count('"name"'))
    # reads the ledger, which is no Python file
    assert "supported" in said(command, "claims", "--json")
