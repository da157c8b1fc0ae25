"""What several test folders share. Being here also lets them import ``toy_study``."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from browser import NEEDED
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from object_store import memory, s3, s3_server

import rarefy

__all__ = ["memory", "s3", "s3_server"]  # fixtures

# The same examples every time, so that a change is judged by what it does (``make test-whole`` has
# more of them); ``make search`` looks for new ones.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=40)
hypothesis.settings.register_profile("whole", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", print_blob=True)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fixed")
hypothesis.settings.load_profile(PROFILE)
if PROFILE != "search":  # with numbers of the modules that happen to be imported, others every time
    providers._get_local_constants = Constants

# What is imported and collected stays to the end: to look for garbage in it costs seconds.
gc.disable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cases that ``mark.quick`` of their test does not name are slow, and so is a real browser."""
    named, there = set(), set()
    for item in items:
        if any(mark.kwargs.get("reason") == NEEDED for mark in item.iter_markers("skipif")):
            item.add_marker("slow")
        if isinstance(item, pytest.Function) and (mark := item.get_closest_marker("quick")):
            test = item.nodeid.partition("[")[0]
            named |= {(test, case) for case in mark.args}
            there.add((test, item.callspec.id))
            if item.callspec.id not in mark.args:
                item.add_marker("slow")
    if absent := not any("::" in word for word in config.args) and named - there:
        raise pytest.UsageError(f"mark.quick names cases that are not there: {sorted(absent)}")


def pytest_collection_finish() -> None:
    # made once, not at every command; no test changes them
    import typer.main

    from rarefy.data.images import catalog

    typer.main.get_command = cache(typer.main.get_command)
    catalog.load_digits = cache(catalog.load_digits)
    draws_are_quick()
    os.fsync = lambda handle: None  # no test pulls the plug; that it is called they ask
    gc.freeze()
    gc.enable()


def draws_are_quick() -> None:
    """Random numbers by C++ where a run would draw them by numpy: the same bits, which
    tests/test_compiled_kernels.py asks, in a tenth of the time."""
    from rarefy.core import normals
    from rarefy.core.compilation import built
    from rarefy.core.settings import compiler_present

    PLAIN["draws"] = normals._by_numpy
    if compiler_present() and (library := built(Path(normals.__file__).with_suffix(".cpp"))):
        normals._by_numpy = partial(normals._by_cpp, library)


@pytest.fixture(scope="module")
def drawn_by_numpy() -> Iterator[None]:
    """As a run without a compiler draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rarefy.core.normals._by_numpy", PLAIN["draws"])
        yield


# torch's compiler starts no further processes: each imports torch, for kernels of a second
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

# what is forked finds this imported, by a process that does nothing else
multiprocessing.set_forkserver_preload(["toy_training", "rarefy.sweep.runner", "torch._dynamo"])

# a shell that starts the suite in the background has it ignore Ctrl-C, and so do its processes
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
PLAIN: dict[str, Any] = {}
"""What stands for something quicker in most tests."""
Rarefy = Callable[..., subprocess.CompletedProcess[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", help="keep what heavy tests gave in this JSON file")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr != "heavy":  # no test cuts the power, but those measure
        os.fsync = lambda fd: None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """To the last bit or to a tolerance: how golden numbers were compared (``pinned.py``)."""
    ways: Counter[str] = Counter()
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            ways.update({way: n for way, n in report.user_properties if way.startswith("golden")})
    for way, number in (+ways).items():
        terminalreporter.write_line(f"{number} {way}")


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What is logged. (pytest's plugin for it asks all loggers of torch, six times per test.)"""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.root.addHandler(handler)
    yield lines
    logging.root.removeHandler(handler)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No compiling (fifteen seconds for one run), and one worker unless a test asks for more."""
    import torch  # (here: not in the process that only hands out tests)

    monkeypatch.setenv("RAREFY_COMPILE", "0")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def compiler_afresh() -> Iterator[None]:
    """Nothing is compiled before and after, and to compile anything twice is an error."""
    import torch

    torch._dynamo.reset()
    with torch._dynamo.config.patch(error_on_recompile=True):
        yield
    torch._dynamo.reset()


@pytest.fixture
def quickly_compiled() -> Iterator[None]:
    """A compiler that does only what small kernels need: no trials of vector units, no headers that
    others would share."""
    import torch._inductor.config as inductor

    with inductor.patch({"cpp.vec_isa_ok": False, "cpp_cache_precompile_headers": False}):
        yield


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few trees, where how well labels are checked is not asked, and how long a training takes is
    found out by a step of it instead of a second."""
    monkeypatch.setattr("rarefy.tools.influence.class_probabilities.GROWN", 5)
    monkeypatch.setattr("rarefy.tools.influence.class_probabilities.ROUNDS", 1)
    monkeypatch.setattr("rarefy.sweep.estimate.PROBE_SECONDS", 0.0)


@pytest.fixture
def forked_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of a run are forked; else it spawns each anew, and one test does."""
    server = multiprocessing.get_context("forkserver")
    monkeypatch.setattr(multiprocessing, "get_context", lambda method: server)


@pytest.fixture
def stops_every(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """``stops_every(9)``: whenever the clock was looked at nine times, the time is over. By seconds
    a slow machine would stop a training at every update."""
    from rarefy.core.contracts import Context
    from rarefy.core.errors import OutOfTime

    def call(looks: int) -> None:
        seen = count(1)

        def look(self: Context) -> None:
            if next(seen) % looks == 0:
                raise OutOfTime("the time given with --max-seconds is over")

        monkeypatch.setattr(Context, "check_time", look)

    return call


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None) -> Path:
    """An empty folder to work in; no test sees the sets of whoever runs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAREFY_DATA", str(tmp_path / "sets"))
    monkeypatch.setenv("RAREFY_COMPILE", "0")
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture(scope="session")
def toy_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the toy study is installed, as a package of someone else's is."""
    home = tmp_path_factory.mktemp("toy")
    shutil.copy(TESTS / "toy_study.py", home)
    info = home / "toy-0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 0.0\n")
    (info / "entry_points.txt").write_text(
        "[rarefy.studies]\ntoy = toy_study:Toy\nlost = no_such_module:Lost\n"
    )
    package = str(Path(rarefy.__file__).parents[1])
    path = os.pathsep.join([str(home), package])
    return {**os.environ, "PYTHONPATH": path, "RAREFY_COMPILE": "0", "COLUMNS": "80"}


@pytest.fixture
def command(toy_environment: dict[str, str], tmp_path: Path) -> Rarefy:
    """``command("run", "toy")`` runs the real entry point in an empty folder."""

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "rarefy", *arguments],
            cwd=tmp_path,
            env=toy_environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call
