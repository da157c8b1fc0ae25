"""Write pages of the documentation, each by its name.

    python docs/make.py claims            docs/claims.md, docs/claims/ and the table of
                                          docs/index.md, from the ledger and results/
    python docs/make.py faults            docs/faults.md, from the tests that carry the mark
    python docs/make.py heavy             docs/heavy.md, from tests/heavy/last.json
    python docs/make.py licences          docs/licences.md, from requirements/ and what is installed
    python docs/make.py load              docs/load.md, from benchmarks/results and tests/heavy
    python docs/make.py longtail-table    docs/longtail-table.md and its pictures, from results/
    python docs/make.py overtraining      docs/overtraining.md and its pictures, from results/
    python docs/make.py reference         docs/reference.md, from the docstrings of public names
    python docs/make.py regret            docs/keep.md, from results/ and their history
    python docs/make.py scoreboard        docs/scoreboard.md, from results/
    python docs/make.py speed             docs/speed.md and its picture, from benchmarks/results
    python docs/make.py pictures          pictures of the README and of pages, from results/
    python docs/make.py site              site/: all of docs/, and a page per study from results/

All but the last are kept in the repository. The site draws the figures of results that changed, and
is refused with a dead link in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pages import (
    DOCS,
    ROOT,
    claims,
    faults,
    heavy,
    licences,
    load,
    longtail,
    pictures,
    reference,
    regret,
    scoreboard,
    site,
    speed,
)

FILES: dict[str, Callable[[Path], Mapping[str, str | bytes]]] = {
    "claims": claims.files,
    "faults": lambda results: {"faults.md": faults.page()},
    "heavy": lambda results: {"heavy.md": heavy.page()},
    "licences": lambda results: {"licences.md": licences.page()},
    "load": lambda results: {"load.md": load.page()},
    "longtail-table": longtail.files,
    "overtraining": longtail.overtraining.files,
    "reference": lambda results: {"reference.md": reference.page()},
    "regret": regret.files,
    "scoreboard": lambda results: {"scoreboard.md": scoreboard.page(*scoreboard.newest(results))},
    "speed": speed.files,
    "pictures": pictures.files,
}
"""Contents by name of file, made of a folder of results."""


def main(arguments: Sequence[str] | None = None) -> None:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("pages", nargs="+", choices=[*FILES, "site"], metavar="PAGE")
    reader.add_argument("--results", type=Path, default=ROOT / "results")
    reader.add_argument("--out", type=Path, default=DOCS, help="folder for all but the site")
    given = reader.parse_args(arguments)
    for name in given.pages:
        if name == "site":
            site.make(given.results)
            continue
        for file, content in FILES[name](given.results).items():
            path = given.out / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            print(path)


if __name__ == "__main__":
    main()
