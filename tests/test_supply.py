"""What is installed is listed with its hashes and licences, and what we ship is the same bytes."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from lists import HERE, LISTS, OF_TORCH, pins
from pages import ROOT, licences

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
TEXTS = {name: (HERE / f"{name}.txt").read_text("utf-8") for name in LISTS}


def asked(*extras: str) -> dict[str, Requirement]:
    """What pyproject.toml names itself, builders included, by name of package."""
    lines = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    todo = list(extras)
    while todo:
        for line in EXTRAS[todo.pop()]:
            own = Requirement(line)
            todo += own.extras if own.name == "rarefy" else []
            lines += [line] if own.name != "rarefy" else []
    return {canonicalize_name(one.name): one for one in map(Requirement, lines)}


# Lists and hashes


def test_every_listed_package_has_hashes_and_nothing_else_is_in_a_list() -> None:
    line = r"[\w.-]+==[^\s\\]+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    for name, text in TEXTS.items():
        body = "".join(re.findall(r"^[^#].*\n", text, re.MULTILINE))
        assert re.fullmatch(f"({line})+", body), name


def test_lists_and_constraints_have_the_same_versions_and_only_builds_of_torch_have_no_hash() -> (
    None
):
    old = (ROOT / "constraints.txt").read_text("utf-8")
    assert pins(old, TEXTS) == old, "make lock makes the lists anew"
    builds = [line for line in old.splitlines() if OF_TORCH.match(line)]
    assert [build.partition("==")[0] for build in builds] == ["torch", "torchvision"]


@pytest.mark.parametrize("name", LISTS)
def test_a_list_has_what_its_extra_names_and_within_its_bounds(name: str) -> None:
    extras = {"run": [], "optional": list(EXTRAS)}.get(name, [name])
    lists = list(LISTS)[: list(LISTS).index(name) + 1]
    listed = {package: at for each in lists for package, at in licences.listed(each).items()}
    for package, wanted in asked(*extras).items():
        if package not in ("torch", "torchvision"):
            assert package in listed, f"{package} is in none of {lists}: make lock"
            assert wanted.specifier.contains(listed[package])


def test_running_needs_nothing_of_developing() -> None:
    run = licences.listed("run")
    assert not {"pytest", "mypy", "ruff", "mkdocs", "dask", "uv"} & set(run)
    assert not any(set(licences.listed(name)) & set(run) for name in LISTS if name != "run")


@pytest.mark.parametrize(
    "target, lists", [("demo", "run"), ("lint", "run dev"), ("audit", "run dev heavy")]
)
def test_make_installs_by_hash_then_torch_by_its_pin_then_this_folder(
    tmp_path: Path, target: str, lists: str
) -> None:
    dry = ["make", "--dry-run", f"VENV={tmp_path / 'none'}", "PIP_FLAGS=", target]
    ran = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=True)
    installs = [line.split("--disable-pip-version-check")[1].split()
                for line in ran.stdout.splitlines() if "pip install" in line]  # fmt: skip
    files = [word for name in lists.split() for word in ("-r", f"requirements/{name}.txt")]
    assert installs == [
        ["--require-hashes", "--no-deps", *files],
        ["-c", "constraints.txt", "torch"],
        ["--no-deps", "--no-build-isolation", "-e", "."],
    ]


# Licences

ROW = re.compile(r"^\| ([\w.-]+) \| ([\d][^ ]*) \| (.+) \|$", re.MULTILINE)


def rows() -> dict[str, tuple[str, str]]:
    page = (ROOT / "docs" / "licences.md").read_text("utf-8")
    return {package: (version, said) for package, version, said in ROW.findall(page)}


def test_page_of_licences_has_every_package_with_its_version() -> None:
    wanted = {**licences.builds()}
    for name in LISTS:
        wanted |= licences.listed(name)
    assert {package: version for package, (version, _) in rows().items()} == wanted, "make lock"


def test_no_licence_is_outside_those_allowed() -> None:
    allowed = licences.PERMISSIVE | licences.BY_FILE
    for package, (_, said) in rows().items():
        assert licences.parts(said) <= allowed, f"{package}: {said}"


def test_page_of_licences_says_what_installed_packages_say() -> None:
    installed = {
        canonicalize_name(one.metadata["Name"]): one.version for one in metadata.distributions()
    }
    compared = 0
    for package, (version, said) in rows().items():
        if installed.get(package) == version:
            assert licences.licence(package) == said
            compared += 1
    # another environment than make's may have other versions, but not of everything
    assert compared > 30


def test_a_licence_is_read_from_expression_field_or_classifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(licences, "FURTHER", tmp_path)
    cases = {
        "License-Expression: GPL-3.0-only AND MIT\nLicense: MIT": "GPL-3.0-only AND MIT",
        "License: BSD 3-Clause": "BSD-3-Clause",
        "License: Copyright\nClassifier: License :: OSI Approved :: MIT License": "MIT",
        "License: Ask us": "Ask us",
        "Summary: silent": "unknown",
    }
    for number, (text, said) in enumerate(cases.items()):
        folder = tmp_path / f"made_up_{number}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: made-up-{number}\nVersion: 1\n{text}\n"
        )
        assert licences.licence(f"made-up-{number}") == said
    assert licences.parts("GPL-3.0-only AND MIT") == {"GPL-3.0-only", "MIT"}
    with pytest.raises(SystemExit, match="made-up-9 is not installed here; make lock"):
        licences.licence("made-up-9")


# Lowest and latest versions


def test_lowest_and_latest_versions_were_tested_and_lower_bounds_are_true() -> None:
    kept = json.loads((HERE / "versions.json").read_text("utf-8"))
    wanted = asked("dev")
    for name in ("lowest", "latest"):
        run = kept[name]
        assert run["failed"] == [] and run["passed"] > 500
        cells = (name, run["date"][:10], run["python"], run["passed"], run["skipped"])
        assert f"| {' | '.join(map(str, cells))} |" in (ROOT / "docs" / "supply.md").read_text(
            "utf-8"
        )
        assert set(wanted) - {"torch"} <= set(kept[name]["versions"]), "make test-versions"
    for package, requirement in wanted.items():
        if package == "torch":
            continue
        (bound,) = [one.version for one in requirement.specifier if one.operator == ">="]
        tested = kept["lowest"]["versions"][package]
        assert Version(tested) == Version(bound), f"{package}>={bound}, but {tested} was tested"


# The wheel and the source archive

SHIPPED = {".py", ".cpp", ".h", ".toml", ".json", ".j2", ".js", ".css", ".typed"}


def built(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bytes]:
    from flit_core import buildapi

    monkeypatch.chdir(folder)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    (folder / "dist").mkdir()
    names = (buildapi.build_wheel("dist"), buildapi.build_sdist("dist"))
    return tuple((folder / "dist" / name).read_bytes() for name in names)  # type: ignore[return-value]


@pytest.mark.slow
def test_wheel_and_source_archive_are_the_same_bytes_wherever_and_whenever_they_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "elsewhere"):
        # copy: new times
        shutil.copytree(ROOT / "src", tmp_path / name / "src", copy_function=shutil.copy)
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / file, tmp_path / name)
    for path in (tmp_path / "elsewhere").rglob("*.py"):
        path.chmod(0o600)
    other = tmp_path / "elsewhere" / "src" / "rarefy" / "__pycache__"
    other.mkdir(exist_ok=True)
    (other / "left_over.cpython-311.pyc").write_bytes(b"0")
    first = built(tmp_path / "here", monkeypatch)
    assert first == built(tmp_path / "elsewhere", monkeypatch)

    package = ROOT / "src" / "rarefy"
    files = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {Path(file).suffix for file in files} == SHIPPED
    wheel = set(zipfile.ZipFile(io.BytesIO(first[0])).namelist())
    about = {name for name in wheel if name.startswith("rarefy-")}
    assert wheel - about == files
    assert {Path(name).name for name in about} == {
        "LICENSE",
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
    }
    sources = set(tarfile.open(fileobj=io.BytesIO(first[1])).getnames())
    top = f"rarefy-{PROJECT['project']['version']}"
    beside = {f"{top}/{name}" for name in ("LICENSE", "README.md", "PKG-INFO", "pyproject.toml")}
    assert sources == {f"{top}/src/{file}" for file in files} | beside
