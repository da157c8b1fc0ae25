"""The study of docs/your-study.md, run exactly as it is printed there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rarefy
from rarefy.studies import get_study, listed

PAGE = Path(__file__).parents[1] / "docs" / "your-study.md"
PRINTED = re.compile(r"`(src/rarefy/[a-z_/]+\.py)`:\n\n```python\n(.*?)```\n", re.DOTALL)

# Runs where only the printed files and the package are known, so in a process of its own.
DRIVER = """
import json, sys, warnings
warnings.simplefilter("error")
import rarefy
from rarefy.studies import get_study, listed

assert rarefy.__file__.startswith(sys.argv[1]), rarefy.__file__
study = get_study("rare-coin").at("tiny")
results = rarefy.run("rare-coin", scale="tiny", device="cpu")
verdicts = rarefy.judge(study, results, "tiny")
print(json.dumps({
    "studies": list(listed()),
    "sizes": {name: int(size) for name, size in results.sizes.items()},
    "wait": results["wait"].mean("seed").values.tolist(),
    "outcomes": {verdict.claim: verdict.outcome for verdict in verdicts},
    "pictures": [picture.name for picture in study.picture(results)],
}))
"""


def printed_files() -> dict[str, str]:
    return dict(PRINTED.findall(PAGE.read_text("utf-8")))


@pytest.mark.slow
def test_three_printed_files_make_a_study(tmp_path: Path) -> None:
    """In a copy of the package, to which files can be added."""
    assert rarefy.__file__ is not None
    shutil.copytree(Path(rarefy.__file__).parent, tmp_path / "rarefy")
    files = printed_files()
    assert [Path(path).name for path in files] == ["study.py", "claims.py", "charts.py"]
    for path, text in files.items():
        target = tmp_path / Path(path).relative_to("src")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "RAREFY_COMPILE": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout.splitlines()[-1])
    assert "rare-coin" in report["studies"]
    assert report["sizes"] == {"seed": 1000, "frequency": 4, "sample": 200}
    # the mean wait is 1/eps; 1000 runs give it to 3 % (one standard deviation), 200 samples
    # cut off less than 0.01 % of the runs
    for wait, frequency in zip(report["wait"], (0.05, 0.1, 0.2, 0.4), strict=True):
        assert wait == pytest.approx(1 / frequency, rel=0.15)
    assert report["outcomes"] == {"X1": "holds", "X2": "holds"}
    assert report["pictures"] == ["unseen"]


def test_a_study_of_another_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same files as a package of their own, announced as the page says."""
    package = tmp_path / "your_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for path, text in printed_files().items():
        text = text.replace("rarefy.studies.example.coin", "your_package")
        (package / Path(path).name).write_text(text, encoding="utf-8")
    announced = re.search(r'"(rarefy\.[a-z]+)"\]\n(rare-coin) = "(.*)"', PAGE.read_text("utf-8"))
    assert announced is not None
    group, name, target = announced.groups()
    distribution = tmp_path / "your_package-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: your-package\nVersion: 1.0\n"
    )
    (distribution / "entry_points.txt").write_text(f"[{group}]\n{name} = {target}\n")
    monkeypatch.syspath_prepend(tmp_path)
    listed.cache_clear()
    try:
        kind = get_study("rare-coin")
    finally:
        listed.cache_clear()
    assert kind.__module__.startswith("your_package.") and kind.at("tiny").seeds == 1000
