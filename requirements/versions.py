"""Part of the suite on the lowest and on the latest versions: ``make test-versions``.

    python requirements/versions.py lowest latest

Lowest: each package that pyproject.toml names at its lower bound, and what these need as new as
they allow. Latest: everything as new as the public index has it. torch stays as constraints.txt
pins it. Each gets an environment of its own below build/versions. What came out is kept in
requirements/versions.json; exit code 1 when a test failed.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lists import CONSTRAINTS, HERE, PIN, ROOT, resolved

KEPT = HERE / "versions.json"
PLACE = ROOT / "build" / "versions"
PREFER = {"lowest": "lowest-direct", "latest": "highest"}
PART = (
    "data/images/test_decoding.py",
    "data/images/test_folders.py",
    "sweep/test_store.py",
    "sweep/test_results.py",
    "sweep/test_runner.py",
    "sweep/test_workers.py",
    "pruning/models/test_hugging_face.py",
    "pruning/models/test_lightning.py",
    "tools/checkup/test_checkup.py",
    "tools/influence/test_estimators.py",
    "tools/influence/test_scoring.py",
    "tools/influence/test_writing.py",
    "tools/samples",
    "report/test_figures.py",
    "report/test_gallery.py",
    "report/test_page.py",
    "cli/test_cli.py",
    "cli/test_cli_help.py",
    "cli/test_cli_influence.py",
)
"""Tests that meet other people's packages; most others meet torch and NumPy alone."""

MILD = [
    f"-Wdefault::{kind}"
    for kind in ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")
]
"""For lowest versions: an old package that uses what a newer one calls deprecated still works."""


def torch_pin() -> str:
    (version,) = re.findall(r"^torch==(.*)$", CONSTRAINTS.read_text("utf-8"), re.MULTILINE)
    return version


def environment(name: str) -> tuple[Path, dict[str, str]]:
    """A new environment with those versions, and rarefy in it.

    Returns:
        Its interpreter, and the versions by name of package.
    """
    folder = PLACE / name
    PLACE.mkdir(parents=True, exist_ok=True)
    torch = PLACE / "torch.txt"
    torch.write_text(f"torch=={torch_pin()}\n", encoding="utf-8")
    flags = ("--python", sys.executable, "--generate-hashes", "--constraints", str(torch))
    chosen = resolved(*flags, "--extra", "dev", "--resolution", PREFER[name])
    listed = PLACE / f"{name}.txt"
    listed.write_text("\n".join(chosen.values()) + "\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    python = folder / "bin" / "python"
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python)]
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    # pip knows where this machine has its torch
    for command in (
        [*uv, "--require-hashes", "--no-deps", "--requirements", str(listed)],
        [*pip, "--requirement", str(torch)],
        [*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
    ):
        subprocess.run(command, check=True)
    return python, dict(PIN.findall("\n".join(chosen.values())))


def outcome(python: Path, name: str) -> dict[str, Any]:
    """Run the part of the suite and count."""
    report = PLACE / f"{name}.xml"
    report.unlink(missing_ok=True)
    tests = [str(ROOT / "tests" / part) for part in PART]
    command = [str(python), "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"]
    subprocess.run(
        [*command, *(MILD if name == "lowest" else []), f"--junitxml={report}", *tests],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    suite = xml.parse(report).getroot()[0]
    wrong = suite.findall("testcase[failure]") + suite.findall("testcase[error]")
    total, skipped = (int(suite.attrib[count]) for count in ("tests", "skipped"))
    return {
        "passed": total - skipped - len(wrong),
        "skipped": skipped,
        "failed": sorted(f"{case.attrib['classname']}::{case.attrib['name']}" for case in wrong),
        "seconds": round(float(suite.attrib["time"])),
    }


def main(names: list[str]) -> int:
    wrong = 0
    for name in names:
        print(f"== {name} versions", flush=True)
        python, versions = environment(name)
        came_out: dict[str, Any] = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            "torch": torch_pin(),
            "part": list(PART),
            **outcome(python, name),
            "versions": versions,
        }
        kept: dict[str, Any] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
        KEPT.write_text(json.dumps({**kept, name: came_out}, indent=1) + "\n", encoding="utf-8")
        wrong += len(came_out["failed"])
    return int(wrong > 0)


if __name__ == "__main__":
    asked = sys.argv[1:] or list(PREFER)
    if unknown := set(asked) - set(PREFER):
        sys.exit(f"{', '.join(sorted(unknown))}: no such versions; there are {', '.join(PREFER)}")
    sys.exit(main(asked))
