"""``rarefy explore`` through its real entry point, by HTTP."""

from __future__ import annotations

import base64
import gzip
import json
import re
import signal
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest
import xarray as xr
from explored import ask, save_pages, serving
from toy_study import Toy, only
from toy_training import ToyTraining

import rarefy
from rarefy import cli
from rarefy.cli.exploring import explore
from rarefy.report.explore.live import Live
from rarefy.report.explore.page import Explorer
from rarefy.report.explore.server import Server
from rarefy.report.explore.sources import ALL, Source, quartiles
from rarefy.studies.api import read_results

RESULTS = Path(__file__).parents[2] / "results"


def at(source: str, **stops: int) -> str:
    return urlencode(
        {"source": source, **{name.replace("_", ".", 1): n for name, n in stops.items()}}
    )


def test_it_answers_only_who_has_the_token_and_computes_what_a_run_does(
    toy_environment: dict[str, str], tmp_path: Path
) -> None:
    with serving(toy_environment, tmp_path, "--set", "drift=0,0.25,2") as address:
        page = urlsplit(address)
        assert ask(address)[0] == 200
        # no token, a wrong one, one that only begins like it, and a name that points here
        token = page.path.strip("/")
        other = token[:-1] + ("x" if token[-1] != "x" else "y")
        for wrong in (
            "/",
            "/data?source=quick",
            f"/{token[:-1]}/",
            f"/{other}/",
            f"/{token}",
        ):
            assert ask(address, wrong) == (403, b"this address is not for you\n")
            assert ask(address, wrong, "POST")[0] == 403
        assert ask(address, Host=f"evil.example:{page.port}")[0] == 403
        assert ask(address, "compute?source=quick", "POST", Host="127.0.0.1")[0] == 403
        assert ask(address, Host=f"localhost:{page.port}")[0] == 200
        # what is no address, and a connection that is reset, leave the terminal as it is
        with socket.create_connection(("127.0.0.1", page.port or 0)) as rude:
            rude.sendall(b"GET http://[x/ HTTP/1.0\r\n\r\n")
            assert b" 400 " in rude.recv(100)
        with socket.create_connection(("127.0.0.1", page.port or 0)) as rude:
            rude.sendall(b"GET ")
            rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        status, answer = ask(address, "save")
        assert status == 400 and b"no cell is computed yet" in answer
        assert ask(address, "../results")[0] == 404 and ask(address, "elsewhere")[0] == 404
        # what it is asked for is checked
        for wrong, about in (
            ("data?source=paper", "source='paper': must be one of quick"),
            (f"figure?{at('quick', a_drift=3)}", "drift='3': must be a whole number from -1 to 2"),
            (f"data?{at('quick', p_drift=0)}", "parameter='drift': has no slider"),
        ):
            status, answer = ask(address, wrong)
            assert status == 400 and about in json.loads(answer)["problem"]

        where = at("quick", a_drift=1, a_sigma=ALL)
        assert json.loads(ask(address, f"data?{where}")[1])["there"] == [0] * 6
        assert json.loads(ask(address, f"compute?{where}", "POST")[1]) == {"computed": 60}
        assert json.loads(ask(address, f"compute?{where}", "POST")[1]) == {"computed": 0}
        found = json.loads(ask(address, f"data?{where}")[1])
        assert found["there"] == [0, 0, 1, 1, 0, 0] and found["dims"]["drift"]["values"][2] == 2
        end = next(one for one in found["outputs"] if one["name"] == "end")
        run = rarefy.run(Toy, "quick", device="cpu", drift=(0.25,))["end"]
        np.testing.assert_allclose(end["mid"][2:4], run.median("seed").values[0], rtol=1e-3)
        assert end["mid"][:2] == [None, None]
        [figure] = json.loads(ask(address, f"figure?{where}")[1])
        curves = [trace["name"] for trace in figure["panels"][0]["figure"]["data"]]
        assert curves == ["drift 0.25"]
        # another value of a parameter has cells of its own
        longer = at("quick;steps=16", p_steps=3, a_drift=1, a_sigma=0)
        assert json.loads(ask(address, f"compute?{longer}", "POST")[1]) == {"computed": 30}
        assert b"quick size, computed here; steps=16" in ask(address, f"data?{longer}")[1]


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["tpy"], "unknown study 'tpy'; did you mean 'toy'?"),
        (["toy", "--port", "{busy}"], "--port={busy}: is in use; name another, or 0 for any"),
        (["toy", "--port", "65536"], "--port=65536: must be between 0 (any that is free)"),
        (["toy", "--set", "drift=a"], "drift='a': must be a number"),
        (["toy", "nowhere"], "no store at nowhere"),
        (["toy", "--save", "."], "--save="),
        (["toy", "elsewhere"], "no results of toy are in elsewhere; name no folder to compute"),
        (["toy-training"], "is the training of a whole network: it is not computed here."),
        (["toy-training", "--set", "height=1"], "--set is for what is computed."),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    only(monkeypatch, Toy, ToyTraining)
    monkeypatch.chdir(tmp_path)
    Path("elsewhere").mkdir()
    for suffix in ("json", "parquet"):
        Path(f"elsewhere/another-quick.{suffix}").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = str(taken.getsockname()[1])
        assert cli.main(["explore", *(one.format(busy=busy) for one in arguments)]) == 2
    said = capsys.readouterr()
    assert told.format(busy=busy) in said.err and said.err.count("\n") == 1 and not said.out


def test_a_computation_that_is_stopped_keeps_what_is_through(tmp_path: Path) -> None:
    live = Live(Toy, {"pause": 0.02, "seeds": 40}, tmp_path)
    source = live.source({})
    computing = threading.Thread(target=live.compute, args=(source,))
    computing.start()
    while live.done < live.total / 4 or not live.total:
        time.sleep(0.01)
    live.close()
    computing.join(60)
    assert 0 < len(live.missing(source)) < 240
    there = source.results["end"].stack(cell=("drift", "sigma", "seed")).dropna("cell")
    assert len(there) == 240 - len(live.missing(source))
    whole = rarefy.run(Toy, "quick", device="cpu", seeds=40)["end"]
    same = whole.stack(cell=("drift", "sigma", "seed")).sel(cell=there["cell"])
    np.testing.assert_allclose(there, same, rtol=1e-6)


def test_a_stop_reaches_those_that_wait(tmp_path: Path) -> None:
    live = Live(Toy, {}, tmp_path)
    source = live.source({})
    waiting = [threading.Thread(target=live.compute, args=(source,)) for _ in range(3)]
    with live._busy:  # as if a computation were under way
        for one in waiting:
            one.start()
        while live._turn < len(waiting):
            time.sleep(0.01)
        live.stop()
    for one in waiting:
        one.join(60)
    assert len(live.missing(source)) == 180
    live.close()
    assert live.compute(source) == 0


def test_a_browser_that_is_waited_for_gets_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = []

    def wait_for(address: str) -> bool:
        answers.append(ask(address)[0])
        signal.raise_signal(signal.SIGINT)
        return True

    only(monkeypatch, Toy)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", wait_for)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert cli.main(["explore", "toy", "--open"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert answers == [200]


def test_the_usual_port_may_be_left_out_of_the_host() -> None:
    source = Source("stored", "stored", Toy.at("tiny"), rarefy.run(Toy, "tiny", device="cpu"))
    with Server(Explorer(Toy, {"stored": source}, None)) as server:
        assert "localhost" not in server.hosts
        server.server_port = 80
        assert {"localhost", "127.0.0.1:80"} < server.hosts


def test_values_that_were_chosen_are_saved_beside_what_is_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    only(monkeypatch, Toy)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "toy", "--scale", "tiny"]) == 0
    arguments = ["runs/toy-tiny", "--set", "drift=0.77", "--save", "page.html"]
    assert cli.main(["explore", "toy", *arguments]) == 0
    packed = re.search(r'id="start">([^<]+)<', Path("page.html").read_text())
    assert packed is not None
    found = json.loads(gzip.decompress(base64.b64decode(packed[1])))["sources"]
    assert found["quick"]["dims"]["drift"]["values"] == [0.77] and all(found["quick"]["there"])
    assert "stored-tiny" in found


def test_help_is_folded_for_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["explore", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "<bool>" not in shown
    lines = [line.strip() for line in (explore.__doc__ or "").splitlines()]
    assert all(line in shown for line in lines if "Example" not in line)


def test_quartiles_leave_out_what_is_not_finite() -> None:
    values = np.random.default_rng(0).normal(size=(3, 7, 4))
    values[0, :2, 0], values[1, :, 1], values[2, :6, 2] = np.nan, np.nan, np.inf
    found = quartiles(values, 1)
    for place in np.ndindex(3, 4):
        finite = values[place[0], :, place[1]]
        finite = finite[np.isfinite(finite)]
        expected = np.quantile(finite, (0.25, 0.5, 0.75)) if finite.size else np.full(3, np.nan)
        np.testing.assert_allclose(found[:, *place], expected)


@pytest.mark.quick("granularity-errors-paper", "contrast-alignment-paper")
@pytest.mark.parametrize(
    "name",
    [
        "benign-correlation-paper",
        "contrast-alignment-paper",
        "granularity-errors-paper",
        "longtail-table-cifar10-rho100-500",
        "topk-phase-paper",
    ],
)
def test_any_study_can_be_explored(name: str) -> None:
    study, _, results = read_results(RESULTS / f"{name}.parquet")
    source = Source("stored", "stored", study, results)
    told = json.loads(json.dumps(source.numbers(), allow_nan=False))
    assert told["outputs"] and all(told["there"])
    for one in told["outputs"]:
        sizes = [len(told["dims"][dim]["labels"]) for dim in one["dims"]]
        assert len(one["mid"]) == np.prod(sizes)
    whole = source.pictures((ALL,) * len(source.sizes))
    assert whole and not any(one["problem"] for one in whole)
    held = [axis for axis, size in enumerate(source.sizes) if size > 1][-1]
    stops = tuple(0 if axis == held else ALL for axis in range(len(source.sizes)))
    pictures = json.loads(json.dumps(source.pictures(stops), allow_nan=False))
    assert pictures != whole and not any(one["problem"] for one in pictures)


def test_figures_are_drawn_to_the_scale_of_the_whole() -> None:
    study = Toy.at("tiny")
    source = Source("stored", "stored", study, rarefy.run(Toy, "tiny", device="cpu"))
    ranges = [
        source.pictures((place, ALL))[0]["panels"][0]["figure"]["layout"]["yaxis"]["range"]
        for place in range(3)
    ]
    assert ranges[0] == ranges[1] == ranges[2]


def test_a_study_that_cannot_draw_the_chosen_values_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(study: Toy, results: xr.Dataset) -> Any:
        return [][len(study.drift)]

    monkeypatch.setattr(Toy, "picture", refuse)
    source = Source("stored", "stored", Toy.at("tiny"), rarefy.run(Toy, "tiny", device="cpu"))
    [found] = source.pictures((0, ALL))
    assert found["problem"].startswith("The study's own figures need more than the chosen values")


def test_titles_are_only_text() -> None:
    class Named(Toy):
        title = "<script>alert(1)</script>"

    source = Source("stored", "<b>", Toy.at("tiny"), rarefy.run(Toy, "tiny", device="cpu"))
    page = Explorer(Named, {"stored": source}, None).page(served=False)
    assert "<script>alert" not in page and "<b>" not in page


def test_the_verb_saves_a_page_of_what_is_stored(tmp_path: Path) -> None:
    for page in save_pages(tmp_path):
        text = page.read_text("utf-8")
        assert "A random walk with drift" in text and "https://" not in text.replace("w3.org", "")
