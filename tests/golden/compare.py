"""Every field of every verdict, and every picture and table as data, made from committed results.

A refactoring must not change them: ``python tests/golden/compare.py`` says what differs from the
golden files, all of them or those named; ``--write`` makes them anew, for a change that is meant
to change what is judged or shown.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE.parent.parent / "results"
DIGITS = 9
"""Of every number that is kept."""
RELATIVE = 1e-5
"""Another BLAS or SciPy: numbers may differ by so much, to which results are rounded anyway."""


def golden_of(path: Path) -> dict[str, Any]:
    """What a file of results is judged to say and show."""
    from rarefy.studies.api import judge, read_results

    study, scale, dataset = read_results(path)
    found = {
        "verdicts": judge(study, dataset, scale),
        "pictures": study.picture(dataset),
        "tables": study.tables(dataset),
    }
    return {name: plain(value) for name, value in found.items()}


def plain(value: Any) -> Any:
    """Dataclasses, arrays and numbers as JSON can hold them."""
    if dataclasses.is_dataclass(value):
        fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return {"": type(value).__name__, **{name: plain(one) for name, one in fields.items()}}
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, list | tuple | range):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"a golden file cannot hold {type(value).__name__}")


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """Every place at which two golden contents differ, one line per place."""
    numbers = (int, float)
    if isinstance(before, numbers) and isinstance(after, numbers):
        if not math.isclose(before, after, rel_tol=RELATIVE, abs_tol=1e-12):
            yield f"{where}: {before!r} became {after!r}"
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from differences(before.get(name), after.get(name), f"{where}.{name}")
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{where}: {len(before)} entries became {len(after)}"
        for place, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from differences(one, other, f"{where}[{place}]")
    elif before != after:
        yield f"{where}: {before!r} became {after!r}"


def golden_file(path: Path) -> Path:
    return HERE / f"{path.stem}.json.gz"


def changes(path: Path) -> list[str]:
    """How what is made of results now differs from the golden file."""
    target = golden_file(path)
    if not target.exists():
        return ["there is no golden file: compare.py --write makes one"]
    return list(differences(json.loads(gzip.decompress(target.read_bytes())), golden_of(path)))


def write(path: Path) -> list[str]:
    text = json.dumps(golden_of(path), separators=(",", ":"))
    golden_file(path).write_bytes(gzip.compress(text.encode(), mtime=0))
    return []


def _timed(path: Path, writing: bool) -> tuple[str, list[str], float]:
    began = time.process_time()
    found = write(path) if writing else changes(path)
    return path.stem, found, time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of names, such as benign; all if none")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    paths = [
        path
        for path in sorted(RESULTS.glob("*.parquet"))
        if not chosen.names or any(path.name.startswith(name) for name in chosen.names)
    ]
    differ = 0
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for name, found, seconds in pool.map(_timed, paths, [chosen.write] * len(paths)):
            said = f"{len(found)} differences" if found else "as it was"
            print(f"{name}: {said} ({seconds:.1f} s)", flush=True)
            for line in found[:10]:
                print(f"    {line[:300]}")
            differ += bool(found)
    print(f"{len(paths)} results, {differ} differ")
    return int(differ > 0 or not paths)


if __name__ == "__main__":
    sys.exit(main())
