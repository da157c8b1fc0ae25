"""``make archive``: the results of a commit as one zip file, as Zenodo takes it.

    python docs/archive.py dist

It has ``results/``, the ledger, ``CITATION.cff`` and the licence as the commit has them, a README
and ``.zenodo.json``. The same commit gives the same bytes: names are sorted, times are those of the
commit, and nothing is compressed again (another zlib would give other bytes).
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

from pages import ROOT
from rarefy.core.papers import PAPERS
from rarefy.core.version import __version__

TAKEN = ("results", "src/rarefy/ledger", "CITATION.cff", "LICENSE")
TITLE = f"Results of rarefy {__version__}: rare features and pruning while training"
README = """# {title}

What every study of rarefy gave, and what follows from it.

- `results/STUDY-SCALE.parquet`: one row per cell, coordinates first, then what was measured; the
  JSON file of the same name has parameters, dimensions, versions, device and the table's hash.
- `ledger/`: a TOML file per paper (every claim, the readings that decide it, the answer in words),
  and the verdicts last measured, a JSON file per study.
- `CITATION.cff`: how to cite this, and the papers.

With rarefy, `rarefy.load("results")` opens all of it as xarray, `rarefy report results` draws it,
and `rarefy verify results` says whether the answers follow from it. Without, any reader of Parquet
will do.

Commit {commit}.

The papers:

{papers}
"""


def contents(commit: str = "HEAD") -> tuple[dict[str, bytes], int]:
    """Files by name, and the time of the commit."""

    def git(*words: str) -> bytes:
        return subprocess.run(
            ["git", *words], cwd=ROOT, check=True, capture_output=True
        ).stdout.strip(b"\n" if words[0] != "archive" else b"")

    name, when = git("log", "-1", "--format=%H %ct", commit).decode().split()
    found = {}
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", name, *TAKEN))) as files:
        for member in files.getmembers():
            kept = member.name.removeprefix("src/rarefy/")
            content = files.extractfile(member) if member.isfile() else None
            # (of the ledger what was declared and measured, not the code that reads it)
            if content is not None and not kept.endswith((".py", ".pyc")):
                found[kept] = content.read()
    papers = "\n".join(f"- {paper}" for paper in PAPERS.values())
    found["README.md"] = README.format(title=TITLE, commit=name, papers=papers).encode()
    found[".zenodo.json"] = (json.dumps(zenodo(), indent=1, ensure_ascii=False) + "\n").encode()
    return found, int(when)


def zenodo() -> dict[str, object]:
    """The fields that Zenodo fills its form from."""
    return {
        "title": TITLE,
        "upload_type": "dataset",
        "description": "Results of studies of five theory papers on rare features and on pruning "
        "while training, with the claims, the readings declared for them, and the verdicts.",
        "creators": [{"name": "the rarefy developers"}],
        "version": __version__,
        "license": "MIT",
        "access_right": "open",
        "keywords": ["contrastive learning", "imbalanced data", "label noise", "pruning"],
        "references": [str(paper) for paper in PAPERS.values()],
    }


def write(folder: Path, commit: str = "HEAD") -> Path:
    """``rarefy-results-VERSION.zip``."""
    found, when = contents(commit)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rarefy-results-{__version__}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(found.items()):
            entry = zipfile.ZipInfo(f"{path.stem}/{name}", time.gmtime(when)[:6])
            entry.external_attr, entry.create_system = 0o644 << 16, 3
            archive.writestr(entry, content)
    return path


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
