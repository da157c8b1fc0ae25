"""Every benchmark runs, with about one update of whatever it times. Without a GPU those
for one run on a CPU: all but the Triton kernel, CUDA graphs and the search for waiting."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(BENCHMARKS.glob("bench_*.py"))


@pytest.mark.quick(
    "bench_clusters_cpu",
    "bench_commands",
    "bench_contrast_gpu",
    "bench_label_check",
    "bench_training_gpu",
)
@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
@pytest.mark.usefixtures("eager", "quick")
def test_a_benchmark_runs(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), "--tiny", "--out", str(tmp_path)])
    monkeypatch.syspath_prepend(BENCHMARKS)
    # (some switch it on)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", torch.backends.cudnn.benchmark)
    with torch.compiler.set_stance("force_eager"):  # (what compiles has tests of its own)
        runpy.run_path(str(script), run_name="__main__")
    records = [json.loads(path.read_text("utf-8")) for path in tmp_path.glob("*.json")]
    assert records and all("torch" in record["provenance"] for record in records)
