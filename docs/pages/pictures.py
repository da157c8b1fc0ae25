"""Pictures of the README and of pages, from committed results."""

from __future__ import annotations

from pathlib import Path

from rarefy.report.static import as_png, draw_picture
from rarefy.studies.api import read_results

SHOWN = {
    "headline.png": ("contrast-heatmap", "map-000", "paper"),
    "topk.png": ("topk-phase", "map", "paper"),
    "scale.png": ("regimes-at-scale", "boundaries", "paper"),
    "granularity.png": ("granularity-errors", "training", "paper"),
    "removal-mnist.png": ("influence-removal", "removed", "paper"),
    "removal-cifar10.png": ("influence-removal", "removed", "cifar10"),
    "longtail-gains.png": ("longtail-table", "gains", "cifar10-rho100-500"),
    "longtail-masked-units.png": ("longtail-table", "masked-units", "cifar10-rho100-500"),
}
"""Pictures of the README and of pages: file, study, picture and the scale of its results."""


def files(folder: Path) -> dict[str, bytes]:
    """Contents by name of file, of the results in a folder."""
    found = {}
    for name, (study_name, wanted, scale) in SHOWN.items():
        study, _, results = read_results(folder / f"{study_name}-{scale}.parquet")
        (picture,) = (one for one in study.picture(results) if one.name == wanted)
        found[f"images/{name}"] = as_png(draw_picture(picture))
    return found
