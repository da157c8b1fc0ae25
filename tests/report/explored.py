"""What tests of ``rarefy explore`` share: a page that is served, and pages that are saved."""

from __future__ import annotations

import http.client
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from forked_program import ForkedProgram
from toy_study import Toy, only

from rarefy import cli


@contextmanager
def serving(environment: dict[str, str], folder: Path, *arguments: str) -> Iterator[str]:
    """The address of a served page; Ctrl-C must end it, in order."""
    program = ForkedProgram(("explore", "toy", *arguments), folder, environment)
    try:
        yield program.says(r"(?m)^http://127\.0\.0\.1:\S+$")
        program.signal(signal.SIGINT)
        code, said = program.end()
        assert code == 0 and "Traceback" not in said, said
    finally:
        program.process.kill()


def ask(address: str, what: str = "", method: str = "GET", **headers: str) -> tuple[int, bytes]:
    """The answer to ``what``, an address below that of the page or, with a slash, of the server."""
    page = urlsplit(address)
    connection = http.client.HTTPConnection(page.hostname or "", page.port, timeout=60)
    try:
        connection.request(method, what if what[:1] == "/" else page.path + what, headers=headers)
        answer = connection.getresponse()
        assert answer.getheader("Referrer-Policy") == "no-referrer"
        return answer.status, answer.read()
    finally:
        connection.close()


def save_pages(folder: Path) -> list[Path]:
    """One of results and one of a store."""
    with pytest.MonkeyPatch.context() as patch:
        only(patch, Toy)
        patch.chdir(folder)
        assert cli.main(["run", "toy", "--scale", "tiny", "--results", "results"]) == 0
        assert cli.main(["explore", "toy", "--save", "page.html"]) == 0
        assert cli.main(["explore", "toy", "runs/toy-tiny", "--save", "store.html"]) == 0
    return [folder / "page.html", folder / "store.html"]
