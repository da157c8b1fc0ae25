"""Figures of committed results, drawn panel by panel: a phone shows one below the other."""

from __future__ import annotations

import hashlib
import html
import io
import multiprocessing
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from PIL import Image

from pages import ROOT
from pages.margins import small_png
from pages.markdown import named, plain
from rarefy.core.picture import Picture
from rarefy.report.panel_data import colour_limits
from rarefy.report.static import draw_panel
from rarefy.studies.api import read_results

TEXT = "figures.md"
"""Beside the images of a folder: the Markdown that shows them."""


def figures(results: Sequence[Path], kept: Path) -> dict[str, Path]:
    """A folder of figures per file of results, by its stem. Those in ``kept`` that are of the same
    results and code stay as they are; the others are drawn by a process per core."""
    code = _code()
    wanted = {path.stem: kept / f"{path.stem}-{_key(path, code)}" for path in results}
    for old in set(kept.glob("*")) - set(wanted.values()):
        shutil.rmtree(old, ignore_errors=True)
    missing = [path for path in results if not (wanted[path.stem] / TEXT).exists()]
    if missing:
        # the largest first, so that no process is left alone with one
        missing.sort(key=lambda path: -path.stat().st_size)
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as pool:
            folders = [wanted[path.stem] for path in missing]
            for path, _ in zip(missing, pool.map(draw, missing, folders), strict=True):
                print(f"figures of {path.stem}", flush=True)
    return wanted


def draw(path: Path, folder: Path) -> None:
    """All figures of one file of results into a folder; their Markdown last."""
    study, _, results = read_results(path)
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_picture(picture, path.stem, folder) for picture in study.picture(results)]
    (folder / TEXT).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _picture(picture: Picture, stem: str, folder: Path) -> str:
    limits, shown = colour_limits(picture), []
    for number, panel in enumerate(picture.panels, 1):
        image = small_png(draw_panel(panel, limits.get(getattr(panel, "colour_label", ""))))
        name = f"{picture.name}-{number}.png"
        (folder / name).write_bytes(image)
        width, height = Image.open(io.BytesIO(image)).size
        title = html.escape(named(panel.title))
        shown.append(
            f'<figure><figcaption>{title}</figcaption><img src="{stem}/{name}" width="{width}" '
            f'height="{height}" loading="lazy" alt="{title or html.escape(named(picture.title))}">'
            "</figure>"
        )
    panels = "\n".join(['<div class="panels">', *shown, "</div>"])
    return f"**{plain(picture.title)}**\n\n{panels}\n\n{plain(picture.caption)}"


def _key(path: Path, code: bytes) -> str:
    files = (path, path.with_suffix(".json"))
    content = b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)
    return hashlib.sha256(code + content).hexdigest()[:12]


def _code() -> bytes:
    """Of everything that a figure may depend on."""
    pages = Path(__file__).parent.rglob("*.py")
    files = [*sorted((ROOT / "src").rglob("*.py")), *sorted(pages), ROOT / "constraints.txt"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()
