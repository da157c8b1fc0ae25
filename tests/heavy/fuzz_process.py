"""Fuzzes readers by atheris, each in a fork of its own: libFuzzer ends with an exit.

It reads lines with the name of a target, a folder and seconds, and answers each with the exit code
of the fork. The folder gets ``log``, which libFuzzer writes,
and ``found.json``: how often and in which words something was found, and the first bytes for it.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
from pathlib import Path

import atheris

# the parts in Python: what decides, and the parsers that we chose. C code is not seen.
SEEN = ["rarefy", "json", "csv", "tomllib", "pickle", "tarfile", "zipfile", "PIL", "zarr"]
with atheris.instrument_imports(include=SEEN):
    from fuzz_targets import TARGETS
    from fuzzing import FOLDER, damaged, finding

MOST = 1 << 16
"""Bytes of a file that is tried; the seeds are far smaller."""


def fuzz(name: str, folder: Path, seconds: int) -> None:
    """Never comes back."""
    target = TARGETS[name]
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 2)
    found: dict[str, list[object]] = {}
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)

    def one_input(content: bytes) -> None:
        with tempfile.TemporaryDirectory(dir=FOLDER) as place:
            what = finding(target, content, Path(place))
        if what:
            # the same thing again, in other letters: only the first is kept
            kind = re.sub(r"\d+|'.*", "", what.replace(place, ""))[:80]
            found.setdefault(kind, [0, what, content.hex()])
            found[kind][0] += 1  # type: ignore[operator]
            (folder / "found.json").write_text(json.dumps(found, indent=1))

    def mutate(content: bytes, most: int, seed: int) -> bytes:
        draws = random.Random(seed)
        if draws.random() < 0.5:
            return atheris.Mutate(content, most)
        return damaged([content], draws.randrange)[:most]

    options = [f"-max_total_time={seconds}", f"-max_len={MOST}", "-print_final_stats=1"]
    limits = ["-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={folder}/"]
    given = [sys.argv[0], *options, *limits, str(corpus)]
    atheris.Setup(given, one_input, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    for line in sys.stdin:
        name, place, seconds = line.rstrip("\n").split("\t")
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            fuzz(name, Path(place), int(seconds))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
