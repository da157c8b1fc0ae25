"""The command line through its real entry point: every verb, every kind of error."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from toy_study import Toy, only

from rarefy import cli

Rarefy = Callable[..., subprocess.CompletedProcess[str]]


# Verbs


def test_a_study_of_another_package_runs(command: Rarefy, tmp_path: Path) -> None:
    ran = command(
        "run", "toy", "--scale", "tiny", "--set", "sigma=0:0.2:0.1", "--results", "res", "--all"
    )
    assert ran.returncode == 0, ran.stderr
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert re.search(r"✓ T1 +4 +", ran.stdout)
    assert "18 cells in runs/toy-tiny" in ran.stdout
    assert "toy: start\ntoy: finished at 100%" in ran.stderr
    # a broken package of someone else's is one line, not the end
    assert re.search("(?m)^study 'lost' cannot be loaded: .*no_such_module.*\n", ran.stderr)
    assert (tmp_path / "res" / "toy-tiny.parquet").exists()


@pytest.mark.parametrize(
    ("study", "axis"),
    [
        ("benign-features", "strength=0.01"),
        ("benign-homogeneous", "strength=0.5"),
        ("benign-tail", "gamma=5"),
        ("benign-training", "strength=6"),
    ],
)
def test_one_value_of_an_axis_is_run_judged_and_reported(
    study: str, axis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", study, "--scale", "tiny", "--set", axis, "--device", "cpu"]) == 0
    assert cli.main(["report", f"runs/{study}-tiny", "--out", "page.html"]) == 0
    assert "could not be" not in (tmp_path / "page.html").read_text("utf-8")


def test_a_store_and_results_are_reported(only_toy: Path) -> None:
    assert cli.main(["run", "toy", "--scale", "tiny", "--results", "res"]) == 0
    assert cli.main(["report", "runs/toy-tiny", "res", "--out", "page.html"]) == 0
    assert "A random walk with drift" in (only_toy / "page.html").read_text("utf-8")


def test_what_only_tells_imports_nothing_heavy_and_what_does_says_so_first() -> None:
    code = (
        "import sys; from rarefy import cli; "
        "assert cli.main(['studies']) == cli.main(['claims']) == 0; "
        "print(*{'torch', 'xarray', 'pandas', 'matplotlib', 'sklearn'} & set(sys.modules), "
        "file=sys.stderr); sys.argv[1:] = ['studies', 'topk-phase', '--device', 'nowhere']; "
        "sys.exit(cli.main())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 2
    heavy, loading, wrong = ran.stderr.splitlines()
    assert heavy == "" and loading.startswith("note: loading torch")
    assert wrong.startswith("error: unknown device 'nowhere'")


def test_a_reader_that_leaves_early_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rarefy", "studies"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    assert "Pipe" not in said


def test_the_table_of_studies_fits_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    only(monkeypatch, Toy)
    assert cli.main(["studies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(re.search(r"toy +A random walk with drift", line) for line in lines)
    assert any("the law of large numbers" in line for line in lines)
    assert cli.main(["studies", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["title"] == "A random walk with drift" and entry["claims"] == ["T1"]


def test_listing_imports_no_study(toy_environment: dict[str, str]) -> None:
    """Or it would take seconds: torch alone takes two."""
    code = (
        "import sys; from rarefy.cli import main; code = main(['studies']); "
        "sys.exit(code or any(name in sys.modules for name in ('torch', 'xarray', 'numpy')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    for name in ("contrast-alignment", "topk-phase", "benign-mixing", "train-images"):
        assert re.search(rf"^ *{name}  ", ran.stdout, re.MULTILINE)


def test_everything_about_one_study(
    only_toy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["studies", "toy", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["scales"]["tiny"]["cells"] == 12 and told["scales"]["tiny"]["time"] > 0
    # to try its cells takes a process and seconds: what was found is told again
    tried = {scale: about["time"] for scale, about in told["scales"].items()}
    monkeypatch.setattr("rarefy.sweep.estimate.estimates", lambda at, device: tried.items())
    assert cli.main(["studies", "toy"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert re.search(r"^ *tiny +12 +48 +\S+ s *$", said, re.MULTILINE)
    assert re.search(r"^ *drift +0\.0, 0\.5, 1\.0", said, re.MULTILINE)
    assert re.search(r"sigma .* must be at least 0", said)
    assert told["parameters"]["pause"]["meaning"].startswith("Seconds a batch sleeps")
    assert told["parameters"]["sigma"]["axis"] and not told["parameters"]["lr"]["axis"]
    assert cli.main(["studies", "tyo"]) == 2
    assert "did you mean 'toy'" in capsys.readouterr().err


def test_run_as_json(only_toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "toy", "--scale", "tiny", "--set", "nan_at_seed=1"]
    assert cli.main([*words, "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["finished"] and described["cells_done"] == 12
    assert described["verdicts"][0]["claim"] == "T1"
    assert described["provenance"]["device"] == "cpu"
    assert cli.main(words) == 0
    assert "12 cells in runs/toy-tiny; 6 of them stopped being finite" in capsys.readouterr().out


def test_results_of_other_parameters_are_not_replaced(
    only_toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files are named by study and scale."""
    words = ["run", "toy", "--scale", "tiny", "--results", "res"]
    assert cli.main([*words, "--set", "sigma=0:0.2:0.1"]) == 0
    kept = (only_toy / "res" / "toy-tiny.parquet").read_bytes()
    capsys.readouterr()
    assert cli.main([*words, "--out", "other"]) == 2
    assert "name another folder" in capsys.readouterr().err
    assert not (only_toy / "other").exists()
    assert (only_toy / "res" / "toy-tiny.parquet").read_bytes() == kept


def test_results_that_are_there_are_not_run_again(
    only_toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "toy", "--scale", "tiny", "--results", "res"]
    assert cli.main([*words, "--seeds", "3"]) == 0
    kept = Path("res/toy-tiny.json").read_bytes()
    elsewhere = [*words, "--out", "elsewhere"]
    for seeds in ("3", "2"):
        capsys.readouterr()
        assert cli.main([*elsewhere, "--seeds", seeds]) == 0
        shown = capsys.readouterr()
        said = "note: results res/toy-tiny.parquet are there already (--overwrite runs it again)\n"
        assert shown.out == "" and shown.err == said
    assert cli.main([*elsewhere, "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["finished"] and described["cells"] == 18 and described["verdicts"]
    assert not Path("elsewhere").exists() and Path("res/toy-tiny.json").read_bytes() == kept
    # fewer seeds do not replace more, not even when asked to run again; more do
    assert cli.main([*elsewhere, "--overwrite"]) == 2
    assert "has 3 seeds, these would be fewer" in capsys.readouterr().err
    assert cli.main([*words, "--seeds", "4"]) == 0
    assert json.loads(Path("res/toy-tiny.json").read_text())["spec"]["parameters"]["seeds"] == 4
    assert cli.main([*words, "--seeds", "4", "--overwrite"]) == 0
    # a full store alone does not count, nor does half a pair
    Path("res/toy-tiny.parquet").unlink()
    assert cli.main([*words, "--seeds", "4"]) == 0 and Path("res/toy-tiny.parquet").exists()


def test_demo_runs_the_headlines_and_writes_the_page(
    only_toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "toy", "--scale", "tiny", "--results", "results"]) == 0
    for name in ("toy-odd", "other-tiny"):  # broken; and of a study that the demo does not run
        (only_toy / "results" / f"{name}.json").write_text("{}")
        (only_toy / "results" / f"{name}.parquet").write_bytes(b"")
    assert cli.main(["demo", "--max-seconds", "0.000001"]) == 3
    assert not (only_toy / "report.html").exists()
    capsys.readouterr()
    assert cli.main(["demo"]) == 0
    shown = capsys.readouterr()
    assert "A random walk with drift" in shown.out and "report: report.html" in shown.out
    assert "laboratories" in shown.out and len((shown.out + shown.err).splitlines()) <= 30
    assert "toy-odd.parquet is left out" in shown.err and "other-tiny" not in shown.err
    assert "A random walk with drift" in (only_toy / "report.html").read_text("utf-8")


# Errors: one line, the right exit code, nothing written


def test_a_file_is_no_place_for_a_store(only_toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (only_toy / "file").write_text("mine")
    assert cli.main(["run", "toy", "--out", "file"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and re.fullmatch(r"error: .*\n", shown.err)
    assert "out='file' is a file" in shown.err
    assert {path.name for path in only_toy.iterdir()} == {"ledger", "file"}
    assert (only_toy / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "tou"], "unknown study 'tou'; did you mean 'toy'?"),
        (["run", "toy", "--scale", "tny"], "unknown scale 'tny'; did you mean"),
        (["run", "toy", "--set", "sigm=1"], "unknown parameter of toy 'sigm'"),
        (["run", "toy", "--set", "sigma=-1"], "sigma=-1.0: must be at least 0"),
        (["run", "toy", "--set", "gigabytes=1e6"], "a single cell of toy needs 1000 TB"),
        (["run", "toy", "--set", "steps=many"], "steps='many': must be a whole number"),
        (["run", "toy", "--set", "lr=1,2"], "takes one value; those with many are drift, sigma"),
        (["run", "toy", "--seeds", "0"], "seeds=0: must be at least 1"),
        (["run", "toy", "--seeds", "3", "--set", "seeds=3"], "seeds is given twice"),
        (
            ["run", "toy", "--form", "dual"],
            "form='dual': toy has only the primal form (pruning acts",
        ),
        (["run", "toy", "--form", "gram"], "form='gram': must be one of auto, primal, dual"),
        (["run", "toy", "--device", "tpu"], "unknown device 'tpu'; did you mean 'cpu'?"),
        (["run", "toy", "--dtype", "half"], "unknown dtype 'half'"),
        (["run", "toy", "--max-seconds", "0"], "--max-seconds=0.0: must be more than 0"),
        (["verify", "nowhere"], "no store at nowhere"),
        (["verify"], "no committed results here"),
        (["report", "nowhere"], "no store at nowhere"),
        (["report", "ledger"], "is a folder that is not a rarefy store"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    words: list[str], said: str, only_toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and re.fullmatch(r"error: .*\n", shown.err) and said in shown.err
    assert [path.name for path in only_toy.iterdir()] == ["ledger"]


def test_a_study_that_breaks_is_one_line_and_exit_code_1(
    only_toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "toy", "--scale", "tiny", "--set", "break_at_seed=0"]
    assert cli.main(words) == 1
    assert "error: ZeroDivisionError: the toy was told to break" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        cli.main(["--debug", *words])


def test_a_foreign_spec_and_overwrite(only_toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "toy", "--scale", "tiny"]
    assert cli.main(words) == 0
    capsys.readouterr()
    assert cli.main([*words, "--set", "lr=0.5"]) == 2
    assert capsys.readouterr().err == (
        "error: store runs/toy-tiny was made with lr=1.0, not 0.5; "
        "use --overwrite or another --out\n"
    )
    assert cli.main([*words, "--set", "lr=0.5", "--overwrite"]) == 0
    assert cli.main([*words, "--set", "lr=0.5", "--seeds", "3"]) == 0
    assert "18 cells" in capsys.readouterr().out


def test_unfinished_has_an_exit_code_of_its_own_and_is_not_reported(
    only_toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "toy", "--scale", "tiny", "--max-seconds", "0.000001", "--overwrite"]
    assert cli.main(["--debug", *words, "--json"]) == 3  # no error, and no traceback
    shown = capsys.readouterr()
    assert not json.loads(shown.out)["finished"]
    assert shown.err.splitlines()[-1].startswith("note: time is over: 0 of 12 cells")
    assert cli.main(words) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "note: time is over: 0 of 12 cells are stored in runs/toy-tiny" in shown.err
    # going on must not start by replacing the store
    assert shown.err.endswith("go on with: rarefy run toy --scale tiny --max-seconds 0.000001\n")
    assert cli.main(["report", "runs/toy-tiny"]) == 2
    assert "has 0 of 12 cells" in capsys.readouterr().err
