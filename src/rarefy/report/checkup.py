"""The page of ``rarefy checkup``: the three things to do first, then what each part found, in one
offline file."""

from __future__ import annotations

from pathlib import Path

from rarefy import __version__
from rarefy.core.writing import write_output
from rarefy.report.gallery.pictures import Pictures
from rarefy.report.templating import template
from rarefy.tools.checkup.api import Checkup
from rarefy.tools.checkup.sections import Rows


def write_checkup(
    path: Path | str, found: Checkup, overwrite: bool = False, of: str = "checkup"
) -> Path:
    """Write the page of a ``Checkup``; ``of``: what it is recorded as."""
    pictures = Pictures(found.samples.images)

    def shown(table: Rows) -> list[str]:
        pictured = found.samples.images is not None
        return [pictures.address(row) for row in table.samples] if pictured else []

    page = template("checkup.html.j2").render(found=found, shown=shown, version=__version__)
    write_output(Path(path), page, of, overwrite)
    return Path(path)
