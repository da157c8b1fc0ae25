"""Renew the lists of packages with their hashes: ``make lock``.

    requirements/run.txt        what rarefy needs to run, and flit_core, which builds it
    requirements/dev.txt        what tests, style and pages need besides
    requirements/heavy.txt      what make test-heavy needs besides
    requirements/optional.txt   what the extras need that no target of the Makefile installs

The versions are those of constraints.txt; a package that has none there gets its newest one, which
is written there too. To renew versions change or delete their lines there (not torch's) first. A
package is listed with the hashes of all its files in the public index, so one list serves every
Python from 3.11 on, on Linux and macOS. Builds of torch are left out: the same version is another
file for a CPU, for CUDA and in a local index.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
CONSTRAINTS = ROOT / "constraints.txt"

LISTS: dict[str, Sequence[str]] = {
    "run": (),
    "dev": ("--extra", "dev"),
    "heavy": ("--extra", "heavy"),
    "optional": ("--all-extras",),
}
"""What each list adds to those before it, as uv is asked for it."""

HEADER = """\
# Made by make lock from pyproject.toml and constraints.txt; do not edit. Lists before it: {before}.
# docs/supply.md says how it is used.
"""


PIN = re.compile(r"^([\w.-]+)==([^\s\\]+)", re.MULTILINE)
OF_TORCH = re.compile(r"(torch|torchvision|triton|nvidia-.*|cuda-.*)==")
"""Builds of torch, and what comes with one."""
ELSEWHERE = re.compile(r"sys_platform == '(win32|emscripten)'")
"""The marker of what is needed where make does not run."""


def resolved(*flags: str) -> dict[str, str]:
    """What pyproject.toml asks for, by the public index.

    Arguments:
        flags: of ``uv pip compile``: extras, constraints, which versions to prefer.

    Returns:
        By name of package: its version and marker, and its hashes if they were asked for.
    """
    with (ROOT / "pyproject.toml").open("rb") as file:
        builders = tomllib.load(file)["build-system"]["requires"]
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header"]
    ran = subprocess.run(
        [*command, "--no-annotate", *flags, "pyproject.toml", "-"],
        cwd=ROOT,
        input="\n".join(builders),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    blocks = re.split(r"\n(?=\S)", ran.stdout.rstrip())
    return {
        block.partition("==")[0]: block
        for block in blocks
        if not OF_TORCH.match(block) and not ELSEWHERE.search(block)
    }


def texts() -> dict[str, str]:
    """The lists by their names."""
    every_place = ("--universal", "--python-version", "3.11", "--generate-hashes")
    listed: set[str] = set()
    made = {}
    for number, (name, extras) in enumerate(LISTS.items()):
        blocks = resolved(*every_place, "--constraints", str(CONSTRAINTS), *extras).values()
        before = ", ".join(list(LISTS)[:number]) or "none"
        new = [block for block in blocks if block not in listed]
        made[name] = HEADER.format(before=before) + "".join(f"{block}\n" for block in new)
        listed.update(new)
    return made


def pins(old: str, lists: dict[str, str]) -> str:
    """constraints.txt: its head and builds of torch as they were, and what the lists have."""
    listed = ["==".join(pin) for pin in PIN.findall("\n".join(lists.values()))]
    kept = old.splitlines()
    head = [line for line in kept if line.startswith("#")]
    builds = [line for line in kept if OF_TORCH.match(line)]
    return "\n".join([*head, *sorted({*listed, *builds})]) + "\n"


def main() -> None:
    lists = texts()
    files = {HERE / f"{name}.txt": text for name, text in lists.items()}
    files[CONSTRAINTS] = pins(CONSTRAINTS.read_text(encoding="utf-8"), lists)
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {len(PIN.findall(text))} packages")


if __name__ == "__main__":
    main()
