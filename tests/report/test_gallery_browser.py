"""The gallery's script, where a machine has node or a browser to run it."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from toy_scores import Page, digit, scores

from rarefy.report.gallery import write_gallery
from rarefy.report.gallery.choice import STOPS

TEMPLATES = Path(__file__).parents[2] / "src/rarefy/report/templates"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_script_is_valid(tmp_path: Path) -> None:
    parts = ("gallery", "gallery_picks", "gallery_panel", "gallery_start")
    whole = tmp_path / "whole.js"
    whole.write_text("\n".join((TEMPLATES / f"{part}.js").read_text() for part in parts))
    done = subprocess.run(["node", "--check", str(whole)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


PROBE = """<script>
window.addEventListener("load", function () { setTimeout(function () {
  const seen = {};
  const cells = document.querySelectorAll("#c0 .cell");
  seen.first = Number(cells[0].dataset.r);
  cells[0].querySelector(".open").click();
  seen.panel = document.getElementById("panel").textContent;
  function press(key) {
    const how = { key: key, bubbles: true, cancelable: true };
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", how));
  }
  function places(cell) { return Number(cell.dataset.r); }
  cells[0].querySelector(".open").focus();
  press(" "); press("ArrowRight"); press(" ");
  seen.focused = Number(document.activeElement.closest(".cell").dataset.r);
  seen.second = Number(cells[1].dataset.r);
  seen.count = document.getElementById("count").textContent;
  seen.csv = exported("csv"); seen.json = JSON.parse(exported("json")); seen.text = exported("txt");
  press("Escape"); seen.closed = document.getElementById("panel").hidden;
  const measure = document.getElementById("measure");
  measure.value = "mahalanobis"; measure.dispatchEvent(new Event("change"));
  const strips = Array.from(document.querySelectorAll("#c0 .strip"));
  seen.sorted = strips.map(function (strip) { return Array.from(strip.children, places); });
  document.querySelector("[data-show=percentiles]").click();
  seen.stops = known.stops.map(function (stop) { return atStop(0, stop); });
  const views = Array.from(document.querySelectorAll(".view:not([hidden])"));
  seen.views = views.map(function (view) { return view.dataset.view; });
  const kept = picks.size; loadPicks(); seen.kept = [kept, picks.size];
  document.body.append(make("pre", { id: "probe", text: JSON.stringify(seen) }));
}, 300); });
</script></body>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_the_page_works_in_a_browser(tmp_path: Path) -> None:
    table = scores({"a": 200, 'quote " comma , </script>': 40})
    path = tmp_path / "g.html"
    write_gallery(path, table, title="t", classes=tuple(table["label"].unique()), thumbnail=digit)
    page = Page.read(path)
    probed = tmp_path / "probed.html"
    probed.write_text(path.read_text().replace("</body>", PROBE))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=4000"]
    try:
        done = subprocess.run(
            [*command, f"file://{probed}"], capture_output=True, text=True, timeout=60
        )
    except subprocess.TimeoutExpired:
        pytest.skip("the browser did not start in time")
    found = re.findall(r'<pre id="probe">(.*?)</pre>', done.stdout, re.S)
    assert found, done.stderr[-2000:]
    seen = json.loads(html.unescape(found[0]))
    index = page.numbers["index"]
    mine = table[table["label"] == page.numbers["classes"]["0"]]
    by_score = mine.sort_values("influence", ascending=False)
    top = [by_score.iloc[0], by_score.iloc[1]]
    assert [index[seen["first"]], index[seen["second"]]] == [row["index"] for row in top]
    assert seen["focused"] == seen["second"], "the arrow moved on"
    for name in ("influence", "distance", "mahalanobis", "own", "shared", "norm"):
        assert f"{float(f'{top[0][name]:.4g}'):g}" in seen["panel"], name
    assert top[0]["id"] in seen["panel"]
    assert f"No sample of class {top[0]['label']} scores higher." in seen["panel"]
    assert seen["count"] == "2"
    assert seen["closed"]
    assert seen["kept"] == [2, 2], "the browser keeps them"
    picked = pd.DataFrame(top).sort_values("index")
    assert [row["id"] for row in seen["json"]] == picked["id"].tolist()
    assert seen["text"].split() == picked["id"].tolist()
    (tmp_path / "picks.csv").write_bytes(seen["csv"].encode())
    exported = pd.read_csv(tmp_path / "picks.csv", dtype={"id": str})
    assert exported["id"].tolist() == picked["id"].tolist()
    assert exported["label"].tolist() == picked["label"].tolist()
    assert exported["influence"].tolist() == [float(f"{v:.4g}") for v in picked["influence"]]
    by_other = mine.sort_values("mahalanobis", ascending=False)["index"].tolist()
    assert [index[place] for place in seen["sorted"][0]] == by_other[:12]
    assert [index[place] for place in seen["sorted"][1]] == by_other[::-1][:12]
    for stop, places in zip(STOPS, seen["stops"], strict=True):
        gaps = (mine["percentile"] - stop).abs()
        shown = sorted(gaps[gaps.index[mine["index"].isin([index[p] for p in places])]])
        assert np.allclose(shown, sorted(gaps)[:4], atol=0.06)
    assert seen["views"] == ["percentiles"]
