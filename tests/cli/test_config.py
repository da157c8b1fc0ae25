"""``--config``: what a file may hold, what wins, what is written beside an output, what stays."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from rarefy import cli
from rarefy.cli.config import KINDS, TYPED_ONLY, _kinds, _parameters, _toml, options_file
from rarefy.cli.folding import FoldedVerb

RUN = ("run", "toy", "--scale", "tiny")
DEEP = f"{{{'a.' * 90}a = [\n"
FILE = Path("runs/toy-tiny.toml")
COMMANDS: dict[str, Any] = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
CONFIGURED = [verb for verb, one in COMMANDS.items() if isinstance(one, FoldedVerb)]


def test_every_long_verb_takes_a_file() -> None:
    wanted = "train pretrain probe influence granularity checkup clean run report".split()
    assert set(wanted) <= set(CONFIGURED)


@pytest.mark.parametrize("verb", CONFIGURED)
def test_every_option_has_a_key_of_its_own_and_a_kind(verb: str) -> None:
    command = COMMANDS[verb]
    keys, kinds = _parameters(command), _kinds(command)
    assert len(keys) == len([one for one in command.params if one.name not in TYPED_ONLY])
    assert all(kinds[one.name] in KINDS for one in keys.values())


def test_a_run_writes_its_options_and_takes_them_back(
    only_toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*RUN, "--set", "sigma=0:0.2:0.1", "--set", "lr=0.2", "--seeds", "2"]) == 0
    capsys.readouterr()
    text = FILE.read_text("utf-8")
    written = tomllib.loads(text)
    assert written["command"] == "run" and written["study"] == "toy" and written["seeds"] == 2
    assert written["set"] == ["sigma=0:0.2:0.1", "lr=0.2"] and written["json"] is False
    # all options are there, those that were not given behind a #; none that replaces anything
    keys = set(_parameters(COMMANDS["run"]))
    assert set(re.findall(r"^(?:# )?([\w-]+) =", text, re.MULTILINE)) == {*keys, "command"}
    assert "overwrite" not in keys
    assert "rarefy run --config runs/toy-tiny.toml" in text
    assert "Paths are as seen from the folder" in text

    # the same again: nothing is run, and the file stays what it is
    assert cli.main(["run", "--config", str(FILE), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 18
    # what is typed wins, and the file says what made the store
    assert cli.main(["run", "--config", str(FILE), "--seeds", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 27
    assert tomllib.loads(FILE.read_text("utf-8"))["seeds"] == 3


def test_an_unfinished_call_goes_on_with_its_file(
    only_toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = ("--set", "pause=0.1", "--max-seconds", "0.05")
    assert cli.main([*RUN, *slow]) == 3
    assert cli.main(["run", "--config", str(FILE), "--max-seconds", "60"]) == 0
    assert "12 cells in runs/toy-tiny" in capsys.readouterr().out


def test_a_persons_file_stays(only_toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*RUN, "--seeds", "2"]) == 0
    edited = FILE.read_text("utf-8").replace("seeds = 2", "seeds = 3  # mine")
    FILE.write_text(edited, "utf-8")
    capsys.readouterr()
    # the file of --config is the one beside the output: it says what holds, nothing to tell
    assert cli.main(["run", "--config", str(FILE)]) == 0
    assert "note" not in capsys.readouterr().err and FILE.read_text("utf-8") == edited
    # another call: it stays, and a line says that it does not fit
    assert cli.main([*RUN, "--seeds", "4"]) == 0
    assert f"note: {FILE} is not as rarefy wrote it and stays" in capsys.readouterr().err
    assert FILE.read_text("utf-8") == edited
    assert cli.main(["run", "--config", str(FILE), "--seeds", "2", "--overwrite"]) == 0
    assert FILE.read_text("utf-8") == edited  # (it is what is read)
    assert cli.main([*RUN, "--seeds", "4", "--overwrite"]) == 0
    assert tomllib.loads(FILE.read_text("utf-8"))["seeds"] == 4

    # nothing that rarefy did not write is replaced, whatever is typed
    FILE.with_name("other.toml").write_text("[package]\n", "utf-8")
    assert cli.main([*RUN, "--out", "runs/other", "--overwrite"]) == 0
    assert FILE.with_name("other.toml").read_text("utf-8") == "[package]\n"
    # a refused call changes nothing
    assert cli.main([*RUN, "--seeds", "4", "--set", "lr=0.9"]) == 2
    assert tomllib.loads(FILE.read_text("utf-8")).get("set") is None


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('epohcs = "3"', 'o.toml: epohcs = "3": rarefy train has no such option; did you mean'),
        ("epochs = '3'", 'o.toml: epochs = "3": must be a whole number'),
        ("epochs = 3.5", "o.toml: epochs = 3.5: must be a whole number"),
        ("epochs = true", "o.toml: epochs = true: must be a whole number"),
        ("keep = 0.3", "o.toml: keep = 0.3: must be a text in quotes"),
        ("flip = 'yes'", 'o.toml: flip = "yes": must be true or false'),
        ("lr = 'fast'", 'o.toml: lr = "fast": must be a number'),
        ("save = []", "o.toml: save = []: must be a path in quotes"),
        ("epochs = 1979-05-27", 'o.toml: epochs = "1979-05-27": must be a whole number'),
        ("rho = '20'", 'o.toml: rho = "20": an option of rarefy pretrain, not of rarefy train'),
        ("max_seconds = 3", "rarefy train has no such option; did you mean max-seconds?"),
        ("overwrite = true", "o.toml: overwrite = true: --overwrite is typed, not taken from a f"),
        ("config = 'p.toml'", "--config is typed, not taken from a file"),
        ("command = 'probe'", 'o.toml: command = "probe": this file is for rarefy probe, and rare'),
        ("zzz = 1", "o.toml: zzz = 1: rarefy train has no such option (known: data, keep, "),
        ("[training]\nlr = 1", 'o.toml: training = {"lr": 1}: rarefy train has no such option'),
        ("save = ''", "o.toml: save='': is empty"),
        ("lr = nan", "o.toml: lr=nan: is not a number"),
        (f"seeds = {2**70}", "o.toml: seeds='11805916207174113034...': is too large"),
        ("keep = '0.3'\n\nlr = = 3", "--config='o.toml': is not TOML: Invalid value (at line 3"),
        ("lr = 1\nlr = 2", "is not TOML: Cannot overwrite a value (at line 2"),
        ("[" * 100_000, "--config='o.toml': is not TOML: "),
        (f"a = [{DEEP * 90}{']}' * 90}]", "is nested too deeply"),
        (b"keep = '0.3'\nnetwork = '\xff'", "is no text in UTF-8 (at line 2)"),
        ("#" * 1_100_000, "--config='o.toml': is no file of options: more than a megabyte"),
        ("update = 'zero'", "--update='zero': must be one of dense, masked, project (from o.toml)"),
        (
            "device = 'tpu'",
            "did you mean 'cpu'? (known: auto, cpu, cuda) (from o.toml)",
        ),
        ("keep = '0.3'", "Missing argument 'DATA'"),
        ('out = "a\\u0000b"', "o.toml: out='a\\x00b': has a zero byte or a line end in it"),
        ('data = "a\\nb"', "o.toml: data='a\\nb': has a zero byte or a line end in it"),
        ("a" * 100_000 + " = 1", "a ... a"),
        (f"a{'.a' * 3000} = 1", "--config='o.toml': has more than 100 dots in a line"),
        (f"['\"'.{'a.' * 3000}a]", "--config='o.toml': has more than 100 dots in a line"),
        (f"""'' "\\"" = {{{'"a" . ' * 3000}a = 1}}""", "has more than 100 dots in a line"),
        (f"keep = '{'.' * 500}'  # {'.' * 500}", "must be numbers, separated by commas"),
        ("seeds = " + "9" * 5000, "thousands of digits"),
        ("seeds = 0x" + "f" * 50_000, "thousands of digits"),
        ("a = [0x" + "f" * 50_000 + "]", "thousands of digits"),
        ("keep = '0.3'".encode("utf-16"), "is no text in UTF-8 (at line 1)"),
        (b"\xef\xbb\xbfepochs = 'x'\r\n", 'o.toml: epochs = "x": must be a whole number'),
    ],
)
def test_wrong_files_are_one_line(
    content: str | bytes, line: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = content if isinstance(content, bytes) else content.encode()
    (here / "o.toml").write_bytes(text)
    data = [] if "Missing" in line else ["digits"]
    assert cli.main(["train", *data, "--config", "o.toml"]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(r"error: .{,600}\n", said) and line.lower() in said.lower()
    assert sorted(path.name for path in here.iterdir()) == ["o.toml"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.toml", "cannot be read: No such file or directory"),
        (".", "must be a file, not a folder or a pipe"),
        ("pipe", "must be a file, not a folder or a pipe"),
        ("/dev/zero", "must be a file, not a folder or a pipe"),
        ("x" * 260, "cannot be read: File name too long"),
    ],
)
def test_what_is_no_file_is_one_line(
    name: str, why: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(here / "pipe")
    assert cli.main(["train", "digits", "--config", name]) == 2
    assert capsys.readouterr().err == f"error: --config={name!r}: {why}\n"


def test_names_with_marks_of_terminals_stay_in_the_comment(only_toy: Path) -> None:
    assert cli.main([*RUN, "--seeds", "1", "--out", "a\x1b\x7fb"]) == 0
    assert cli.main(["run", "--config", "a\x1b\x7fb.toml"]) == 0


@pytest.mark.parametrize(
    "call", [["--out", "o\nseeds = 9 #"], ["--set", "lr=1\r"], ["--out", "a\0"]]
)
def test_no_value_has_a_line_end(
    call: list[str], only_toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(only_toy.iterdir())
    assert cli.main([*RUN, *call]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(r"error: --\w+=.*: has a zero byte or a line end in it\n", said)
    assert sorted(only_toy.iterdir()) == before


def test_a_typed_value_is_not_blamed_on_the_file(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "o.toml").write_text("data = 'digits'\nupdate = 'dense'\n")
    assert cli.main(["train", "--config", "o.toml", "--update", "zero"]) == 2
    assert "o.toml" not in capsys.readouterr().err


@pytest.mark.parametrize("text", ['a "b" \\ c', "Käse\U0001f9c0", "x\x7f\x00\x1b\n\ty", "#no = 1"])
def test_texts_survive(text: str) -> None:
    assert tomllib.loads(f"x = {_toml([text, text])}") == {"x": [text, text]}
    assert tomllib.loads(f"x = {_toml(1e-05)}\ny = {_toml(True)}") == {"x": 1e-05, "y": True}


def test_beside_files_folders_and_the_working_folder() -> None:
    assert options_file(Path("a/page.html")) == Path("a/page.html.toml")
    assert options_file(Path("runs/x")) == Path("runs/x.toml")
    assert options_file(Path(".")) == Path("run.toml")


@pytest.mark.slow
def test_other_verbs_write_theirs(only_toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ("--no-check-labels", "--neighbours", "0", "--map", "none", "--device", "cpu")
    assert cli.main(["influence", "digits", "--split", "test", *quick, "--out", "odd"]) == 0
    assert cli.main(["influence", "--config", "odd.toml"]) == 0
    assert cli.main([*RUN, "--seeds", "1"]) == 0
    assert cli.main(["report", "runs/toy-tiny", "--out", "page.html"]) == 0
    assert tomllib.loads(Path("page.html.toml").read_text())["folders"] == ["runs/toy-tiny"]
    assert cli.main(["report", "--config", "page.html.toml"]) == 0
