"""Tables of S9 and S10: ours beside the published ones."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.estimates import mean_interval
from rarefy.studies.sparse.pairs import number, said
from rarefy.studies.sparse.published import published
from rarefy.studies.sparse.readings import PLACES, placed, readings
from rarefy.tools.sparse_experiment import SparseTraining


def tables(experiment: SparseTraining, results: xr.Dataset) -> list[Table]:
    paper, data = published(experiment), experiment.data
    rows: list[list[object]] = []
    for words, part in readings(results):
        for place, where in PLACES.items():
            paired = placed(part, place)
            for level, theirs in enumerate(paired.levels.tolist()):
                dense = mean_interval(paired.dense[:, level])
                for keep in paired.thinned:
                    gain = mean_interval(paired.difference(keep)[:, level])
                    rows.append(
                        [
                            f"{words}, {where}" if words else where,
                            f"{theirs:g}",
                            f"{keep:g}",
                            number(dense.mean),
                            number(paper.at(data, theirs, 1.0)),
                            said(gain),
                            number(paper.difference(data, theirs, keep), "+.2f"),
                            gain.n,
                        ]
                    )
    caption = (
        f"Accuracy on {data} in per cent; differences from the dense network of the same seed in "
        "points, with their 95 % interval over n seeds (a star: 0 is outside; one in twenty is by "
        f"chance). Published: {paper.name}, for {paper.data}, one training a cell as far as the "
        "paper says."
    )
    columns = (
        *("noise", "std", "keep", "dense", "published dense"),
        *("less dense", "published difference", "n"),
    )
    return [Table("beside", "Ours beside the published", caption, columns, rows)] if rows else []
