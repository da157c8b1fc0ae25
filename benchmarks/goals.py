"""Run every benchmark of a CPU that the table of docs/speed.md has a row of, and print that table.

    python benchmarks/goals.py [--show]

Takes about half an hour on two cores that do nothing else; ``--show`` only prints what is kept.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = (
    *("bench_commands.py --long", "bench_contrast_cpu.py", "bench_topk_cpu.py"),
    *("bench_dual_cpu.py", "bench_multi_view_cpu.py", "bench_influence_cpu.py"),
    "bench_load.py --only gallery",
)


def main() -> None:
    for script in SCRIPTS if "--show" not in sys.argv else ():
        print(f"== {script}", flush=True)
        name, *options = script.split()
        subprocess.run([sys.executable, str(HERE / name), *options], check=True)
    sys.path.insert(0, str(HERE.parent / "docs"))
    from pages.goals import goals

    for job, before, goal, now, met in goals():
        missed = "" if met == "yes" else ": missed"
        print(f"{job}\n    before {before}, goal {goal}, now {now}{missed}")


if __name__ == "__main__":
    main()
