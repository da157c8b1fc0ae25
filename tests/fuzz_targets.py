"""Every reader of rarefy as a fuzz target: of files, and of words that are typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzz_of_data import IMAGES, LEVELS, TABLES
from fuzz_of_kept import KEPT, MADE, SCORES
from fuzzing import Target
from toy_study import Toy

from rarefy.cli.frame import numbers
from rarefy.data.hierarchy.made import check_spec
from rarefy.pruning.selection import Granularity
from rarefy.studies.granularity.ablation.arms import Arm as LearnerArm
from rarefy.studies.influence.removal.training import Order
from rarefy.studies.topk.baselines.arms import Arm as KeepArm
from rarefy.sweep.parse import parse_settings
from rarefy.tools.influence.injections import Injection
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.simclr.method import parse_methods

FOUND = Path(__file__).parent / "fuzz_found"


def _words(name: str, parse: Callable[[str], Any], *seeds: str) -> Target:
    def read(content: bytes, folder: Path) -> object:
        return parse(content.decode("utf-8", "surrogateescape"))

    return Target(f"words, {name}", read, lambda: [seed.encode() for seed in seeds])


def _with_found(target: Target) -> Target:
    """What fuzzing once found (``fuzz_found/NAME*``) is tried again, whole and damaged."""
    found = [path.read_bytes() for path in sorted(FOUND.glob(target.name.replace(" ", "_") + "-*"))]
    return replace(target, seeds=lambda: [*target.seeds(), *found])


TYPED = [
    _words(
        "--set",
        lambda t: Toy(**parse_settings(Toy, t.split("\n"))),
        "drift=0,0.5,1:4:1",
        "steps=4\nrule=odd\nlr=1e-3",
    ),
    _words(
        "method", parse_methods, "simclr,pruned:0.3+layer,sdclr", "branches:0.1+harmonise:20+boost"
    ),
    _words("granularity", Granularity.parse, "2:4", "filter"),
    _words("update", lambda t: PruningSpec.parse(t, 0.5), "masked+global+once"),
    _words("removal", Order.parse, "distance-low", "high"),
    _words("injection", Injection.parse, "flips-0.1", "rare-modes-0.05"),
    _words("arm, TopK", lambda t: KeepArm.parse(t, 16, 0.1), "revive-8", "decay-0.01", "dense"),
    _words("arm, ablation", lambda t: LearnerArm.parse(t, 16), "following-0.1", "scheduled-paper"),
    _words("made level", check_spec, "kmeans-within:4", "random:10"),
    _words("numbers", lambda t: numbers("keep", t), "0.5,0.3"),
]

_FILES = (*IMAGES, *LEVELS, *TABLES, *SCORES, *KEPT, *MADE)
TARGETS = {target.name: _with_found(target) for target in (*_FILES, *TYPED)}

READERS = {
    "images": [target.name for target in IMAGES],
    "hierarchies": [target.name for target in LEVELS],
    "tables": ["CSV", "TSV in gzip", "Parquet", "Feather", *(target.name for target in SCORES)],
    "arrays": ["npy", "npz", "array in npz", "shared numbers"],
    "picks": ["picks", "clean's record", "record"],
    "splits": ["split", "list of files"],
    "scoring": ["feature rows", "feature note", "scoring state", "scoring note", "checkup part"],
    "checkpoints": ["network", "network's pickle", "checkpoint", "network, checked"],
    "stores": [name for name in TARGETS if name.startswith("store, ")],
    "results": ["results", "results' table"],
    "TOML": ["ledger, claims"],
    "ledgers": ["ledger, verdicts"],
    "words": [target.name for target in TYPED],
}
"""Targets by what they read: those of one reader share its time."""
READER = {name: reader for reader, names in READERS.items() for name in names}
