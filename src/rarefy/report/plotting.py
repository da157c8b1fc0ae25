"""``rarefy.plot``: the figures of a study from its results, for notebooks and print."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import xarray as xr

from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.core.place import Place
from rarefy.report.static import as_png, draw_picture
from rarefy.studies.api import Results, load, study_behind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rarefy.core.contracts import Study


def plot(
    results: xr.Dataset | Results | Place | str,
    picture: str | int = 0,
    study: type[Study] | str | None = None,
) -> Figure:
    """Draw a figure of a study, as the report has it.

    Arguments:
        results: what ``rarefy.run`` or ``rarefy.load`` gave, or the path or address of results or
            of a store.
        picture: which of the study's figures: its name, or its place; the first if not given.
        study: name or class, where the results do not say it (a study of yours that is not
            registered).

    Returns:
        A ``matplotlib.figure.Figure``, which a notebook shows; ``figure.savefig("a.pdf")`` writes
        it.

    Example:
        >>> results = rarefy.run("contrast-init", scale="tiny")
        >>> figure = rarefy.plot(results)
        >>> figure.savefig("contrast-init.png")
    """
    found = results if isinstance(results, xr.Dataset | Results) else load(results)
    if isinstance(found, Results):
        raise UsageError(f"results: {found!r} are several; name one file")
    if study is None and "study" not in found.attrs:
        raise bad_value("results", list(found.data_vars), "are no results of a study; give study=")
    chosen = study_behind(found.attrs["study"] if study is None else study, found)
    pictures = chosen.picture(found)
    names = [one.name for one in pictures]
    if isinstance(picture, str):
        if picture not in names:
            raise unknown(f"picture of {chosen.name}", picture, names)
        picture = names.index(picture)
    if not isinstance(picture, int) or not 0 <= picture < len(pictures):
        what = f"{chosen.name} has {len(pictures)}: {', '.join(names) or 'none'}"
        raise bad_value("picture", picture, what)
    figure = draw_picture(pictures[picture])
    # notebooks know figures of pyplot alone, which keeps all that were ever drawn
    figure._repr_png_ = partial(as_png, figure)  # type: ignore[attr-defined]
    return figure
