"""What ``rarefy influence`` does with samples: scores them, goes on where it stopped, writes table
and page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rarefy.core.errors import UsageError
from rarefy.core.writing import RECORDS, OutputFolder, remove_output

if TYPE_CHECKING:
    from rarefy.tools.influence.scored_samples import ScoredSamples
    from rarefy.tools.influence.scoring import ScoreSettings
    from rarefy.tools.samples.samples import Samples

TABLE, CSV, CSV_FACTS, GALLERY = "scores.parquet", "scores.csv", "scores.csv.json", "gallery.html"
REMOVED = (CSV, CSV_FACTS, GALLERY)
"""What is not written anew would be of other scores than the table beside it."""
UNFINISHED = f"{RECORDS}/unfinished"
"""In the folder that is written: what an interrupted command goes on from."""
WORTH_SAYING = 5.0
"""Seconds from which a forecast is told before the work."""


def score(
    samples: Samples,
    embed: str | None,
    standardize: bool,
    settings: ScoreSettings,
    target: Path,
    deadline: float | None,
) -> ScoredSamples:
    from rarefy.core.progress import Progress
    from rarefy.core.settings import resolve_device
    from rarefy.tools.influence.forecasting import forecast
    from rarefy.tools.influence.scoring import score_samples
    from rarefy.tools.samples.features import embed as embedded
    from rarefy.tools.samples.standardizing import standardized

    state = target / UNFINISHED
    if embed is not None:
        samples = embedded(
            samples,
            embed,
            device=str(resolve_device(settings.device)),
            folder=state / "features",
            progress=True,
            deadline=deadline,
        )
        samples = standardized(samples, True) if standardize else samples
    words = forecast(samples, settings, WORTH_SAYING)
    if words:
        typer.echo(f"forecast: {words}", err=True)
    try:
        with Progress(f"influence of {samples.name}", 1.0) as progress:
            return score_samples(
                samples,
                settings,
                state=state / "scores",
                progress=progress.advance,
                deadline=deadline,
            )
    except UsageError as error:
        if str(error).startswith("state="):
            raise UsageError(f"{error}; --overwrite begins anew") from None
        raise


def write(
    scored: ScoredSamples,
    target: OutputFolder,
    csv: bool,
    gallery: bool,
    map_: str,
    origin: dict[str, Any],
) -> dict[str, Path]:
    """Table and page; what was unfinished has no use any more."""
    from rarefy.tools.influence.writing import write_table

    found = {"table": write_table(scored.table, target.path / TABLE, target.write)}
    if csv:
        found["csv"] = write_table(scored.table, target.path / CSV, target.write)
    if gallery:
        from rarefy.report.gallery import write_gallery
        from rarefy.tools.influence.mapping import SampleMap

        samples = scored.samples
        write_gallery(
            target.path / GALLERY,
            scored.table,
            title=f"Atypical samples of {samples.name}",
            classes=scored.table.attrs["classes"],
            thumbnail=samples.images,
            positions=None if map_ == "none" else SampleMap(samples, scored.device),
            neighbours=scored.typical_neighbours,
            facts=scored.facts(),
            columns=scored.columns,
            origin=origin,
            write=target.write,
        )
        found["gallery"] = target.path / GALLERY
    for older in (*(() if csv else (CSV, CSV_FACTS)), *(() if gallery else (GALLERY,))):
        # last: a command that is killed has lost nothing
        remove_output(target.path / older)
    return found
