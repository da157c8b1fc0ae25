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

from lists import CONSTRAINTS, HERE, ROOT, resolved

KEPT = HERE / "versions.json"
PLACE = ROOT / "build" / "versions"
PREFER = {"lowest": "lowest-direct", "latest": "highest"}
PART = (
    "core",
    "data/images",
    "sweep",
    "pruning",
    "tools/checkup",
    "tools/influence",
    "tools/samples",
    "report",
    "cli",
)
"""Folders of tests that meet other people's packages most; the whole suite takes twice as long."""


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
    for asked in (
        ["--require-hashes", "--no-deps", "-r", str(listed)],
        ["-r", str(torch)],
        ["--no-deps", "--no-build-isolation", "-e", str(ROOT)],
    ):
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *asked], check=True)
    heads = (re.match(r"([\w.-]+)==([\w.!+]+)", block) for block in chosen.values())
    return python, dict(head.groups() for head in heads if head)  # type: ignore[misc]


def outcome(python: Path, report: Path) -> dict[str, Any]:
    """Run the part of the suite and count."""
    folders = [str(ROOT / "tests" / folder) for folder in PART]
    command = [str(python), "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"]
    subprocess.run(
        [*command, f"--junitxml={report}", *folders],
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
    kept: dict[str, Any] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    for name in names:
        print(f"== {name} versions", flush=True)
        python, versions = environment(name)
        kept[name] = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            "torch": torch_pin(),
            "part": list(PART),
            **outcome(python, PLACE / f"{name}.xml"),
            "versions": versions,
        }
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return int(any(kept[name]["failed"] for name in names))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(PREFER)))
