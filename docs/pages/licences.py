"""docs/licences.md: the licence of every package that is installed, as it says itself.

What is installed stands in requirements/ and, for builds of torch, in constraints.txt.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

from pages import ROOT
from pages.markdown import table

FURTHER = ROOT / "build" / "optional"
"""Where make lock puts packages that are only looked at."""

PERMISSIVE = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CNRI-Python",
    "ISC",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "PSF-2.0",
    "Zlib",
}
BY_FILE = {"LGPL-2.1-or-later", "LGPL-3.0-or-later", "MPL-2.0"}
"""Who changes such a file or library passes the change on; nothing is asked of who uses it."""

WORDS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0 License": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
SILENT = {"atheris": "Apache-2.0"}
"""Their metadata has no licence; this is the heading of the LICENSE file that they bring."""

OPENING = """# Licences of what is installed

rarefy itself is under the MIT licence. Each package below stands here with what its own metadata
says; `make lock` makes this page. A test fails where a licence is neither permissive nor one that
asks something only of those who change the package ({by_file}). BSD without a number: the
package does not say which.

A wheel can hold further libraries under their own terms (NumPy and SciPy bring the run-time library
of the Fortran compiler, for example: GPL with an exception for just that use); these stand in the
licence files that the wheel installs. On Linux the build of torch in the public index brings
NVIDIA's CUDA libraries, under NVIDIA's own terms; a CPU build does not.

**Not permissive**: {noted}.
"""
HEADINGS = {
    "run": "To run rarefy: `make demo`",
    "dev": "To test, check and document it: `make test`, `make lint`, `make docs`",
    "heavy": "For `make test-heavy`, `make test-versions`, `make lock`, `make audit`",
    "optional": "For the extras that no target installs",
}
TORCH = "Builds of torch, by version alone"


def page() -> str:
    """The whole page, a table per list."""
    chapters = {HEADINGS[name]: listed(name) for name in HEADINGS}
    chapters[TORCH] = builds()
    told = {package: licence(package) for pins in chapters.values() for package in pins}
    noted = [f"{package} ({said})" for package, said in told.items() if parts(said) & BY_FILE]
    opening = OPENING.format(by_file=", ".join(sorted(BY_FILE)), noted=", ".join(sorted(noted)))
    return opening + "".join(
        f"\n## {heading}\n\n"
        + table(["package", "version", "licence"], [(*pin, told[pin[0]]) for pin in pins.items()])
        + "\n"
        for heading, pins in chapters.items()
    )


def listed(name: str) -> dict[str, str]:
    """Versions of the packages of one list, by name."""
    return _pins(ROOT / "requirements" / f"{name}.txt")


def builds() -> dict[str, str]:
    """Versions of what constraints.txt has and no list."""
    known = {package for name in HEADINGS for package in listed(name)}
    pins = _pins(ROOT / "constraints.txt")
    return {package: version for package, version in pins.items() if package not in known}


def licence(package: str) -> str:
    """What a package that is installed, or lies in ``FURTHER``, says about itself."""
    found = metadata.distributions(name=package, path=[*sys.path, str(FURTHER)])
    try:
        about = next(iter(found)).metadata
    except StopIteration:
        raise SystemExit(
            f"{package} is not installed here; make lock with Python 3.11 installs all"
        ) from None
    if expressions := about.get_all("License-Expression"):
        return expressions[0]
    said = " ".join((about.get_all("License") or [""])[0].split())
    if not parts(WORDS.get(said, said)) - PERMISSIVE - BY_FILE:
        return WORDS.get(said, said)
    kinds = [line.split(" :: ") for line in about.get_all("Classifier") or []]
    words = [kind[-1] for kind in kinds if kind[0] == "License" and kind[-1] != "OSI Approved"]
    joined = " OR ".join(WORDS.get(word, word) for word in words)
    return joined or SILENT.get(package) or said or "unknown"


def parts(said: str) -> set[str]:
    """The licences that an expression names."""
    return set(re.split(r" AND | OR ", said.replace("(", "").replace(")", "")))


def _pins(path: Path) -> dict[str, str]:
    pins = re.findall(r"^([\w.-]+)==([^\s\\]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return dict(pins)
