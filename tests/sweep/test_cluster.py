"""A run on a cluster is the run at home: the same bits, the same end, the same messages."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from dask_processes import DaskProcesses, dask_processes
from toy_study import Toy, only
from toy_training import ToyKeeping, ToySumming, ToyTraining

import rarefy
from rarefy import cli
from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, RunError, SchedulerLost, UsageError
from rarefy.sweep import cluster, connecting, on_worker
from rarefy.sweep.grid import grid_of
from rarefy.sweep.runner import Execution, execute

pytestmark = pytest.mark.usefixtures("eager")
PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text("utf-8")


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    with dask_processes(tmp_path_factory.mktemp("dask")) as started:
        yield started


def run(study: Any, out: Path, **options: Any) -> Execution:
    return execute(study, "tiny", **{"device": "cpu", "out": out, **options})


@pytest.mark.slow
def test_two_workers_and_two_local_processes_give_the_bits_of_a_run_at_home(
    processes: DaskProcesses, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also where sums depend on the number of threads, and batches are small."""
    toy = Toy.at("tiny", seeds=20)
    summing = ToySumming.at("tiny", height=(1.0,))
    for study in (toy, summing):
        home = run(study, tmp_path / f"{study.name}-home")
        away = run(study, tmp_path / f"{study.name}-away", cluster=str(processes.file))
        assert home.finished and away.finished and home.dataset.equals(away.dataset)
    assert (away.dataset["threads"] == 1).all()
    made = json.loads(away.dataset.attrs["provenance"])
    assert made["workers"] == 2 and made["torch"] == torch.__version__
    capfd.readouterr()
    local = run(toy, tmp_path / "local", cluster="local:2", progress=True)
    assert local.dataset.equals(run(toy, tmp_path / "toy-home").dataset)
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 3 and "finished at 100%" in said[2]
    assert re.fullmatch(r"note: 2 workers on cpu at tcp://127.0.0.1:\d+; .*dashboard.*", said[0])


def test_a_client_that_is_there_is_used_and_left_open(
    processes: DaskProcesses, tmp_path: Path
) -> None:
    from distributed import Client

    with Client(scheduler_file=str(processes.file), set_as_default=False) as client:
        found = rarefy.run(Toy, "tiny", device="cpu", cluster=client)
        assert found.equals(rarefy.run(Toy, "tiny", device="cpu"))
        assert client.status == "running" and not client.futures


def test_the_verb_runs_on_a_cluster(
    processes: DaskProcesses,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The toy lies in the path of the workers."""
    only(monkeypatch, Toy)
    assert cli.main(["run", "toy", "--scale", "tiny", "--cluster", str(processes.file)]) == 0
    shown = capsys.readouterr()
    assert "note: 2 workers on cpu at tcp://127.0.0.1:" in shown.err
    assert "12 cells in runs/toy-tiny" in shown.out


@pytest.mark.slow
def test_few_batches_are_under_way_at_any_moment(
    processes: DaskProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    send, say = cluster._UnderWay._send, []

    def watched(self: Any, *batch: Any) -> None:
        send(self, *batch)
        counts.append(len(self.sent))

    monkeypatch.setattr(cluster._UnderWay, "_send", watched)
    monkeypatch.setattr("rarefy.core.progress.Progress.say", lambda self, text: say.append(text))
    study = Toy.at("tiny", seeds=4)
    done = run(study, tmp_path / "store", cluster=processes.file, batch=1, progress=True)
    assert done.finished and len(counts) == 24 and max(counts) <= 2 * cluster.AHEAD
    assert len(say) == 24 and re.fullmatch(r"2 workers, [\d.e+]+ cells/s", say[-1])


def test_an_error_of_the_study_is_told_at_once_and_what_is_through_is_stored(
    processes: DaskProcesses, tmp_path: Path
) -> None:
    (tmp_path / "2-2.order").write_text("raise")
    study = ToyTraining.at("tiny", folder=str(tmp_path))
    with pytest.raises(ZeroDivisionError, match="the toy was told to break"):
        run(study, tmp_path / "store", cluster=processes.file)
    assert len(list(tmp_path.glob("2-2.*.begun"))) == 1
    (tmp_path / "2-2.order").write_text("fail")
    with pytest.raises(RunError, match=r"^on worker tcp://.*: the toy has lost its disk: 5 of 6 "):
        run(study, tmp_path / "store", cluster=processes.file)


def test_a_passing_error_is_tried_again(processes: DaskProcesses, tmp_path: Path) -> None:
    (tmp_path / "0-1.order").write_text("stumble")
    study = ToyTraining.at("tiny", folder=str(tmp_path))
    assert run(study, tmp_path / "store", cluster=processes.file).finished
    assert not (tmp_path / "0-1.order").exists()  # it was obeyed, once


@pytest.mark.slow
def test_time_that_is_over_ends_the_work_of_the_workers(
    processes: DaskProcesses, tmp_path: Path
) -> None:
    for name in ("2-1", "2-2"):
        (tmp_path / f"{name}.order").write_text("wait")
    study = ToyTraining.at("tiny", folder=str(tmp_path))
    options: dict[str, Any] = {"cluster": processes.file, "go_on": "rarefy run toy"}
    ended = run(study, tmp_path / "store", max_seconds=3, **options)
    assert not ended.finished
    assert "time is over: 4 of 6 cells are stored" in ended.note
    for order in tmp_path.glob("*.order"):
        order.unlink()
    assert run(study, tmp_path / "store", max_seconds=60, **options).finished


def test_trainings_use_the_checkpoints_of_the_parent_where_they_see_them(
    processes: DaskProcesses,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And their arithmetic is that of a run at home: denormal numbers become 0."""
    study = ToyKeeping.at("tiny")
    seen = run(study, tmp_path / "seen", cluster=processes.file).dataset
    assert (seen["kept"] == 1).all() and (seen["denormal"] == 0).all()
    assert not capsys.readouterr().err
    touch = Path.touch

    def nowhere(path: Path, *options: Any) -> None:
        if path.name != "seen-by-workers":
            touch(path, *options)

    monkeypatch.setattr(Path, "touch", nowhere)  # as on another file system
    away = run(study, tmp_path / "away", cluster=processes.file).dataset
    assert (away["kept"] == 0).all()
    said = "note: workers do not see the folder of the store: a training that is interrupted "
    assert capsys.readouterr().err == f"{said}starts over\n"


class Future:
    """As Dask's, with an end that is given."""

    key = "toy-1"

    def __init__(self, status: str, error: Exception | None = None) -> None:
        self.status, self.exception = status, lambda: error
        self.cancelled = lambda: status == "cancelled"


def test_what_becomes_of_a_batch_that_gave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import KilledWorker

    machine: Any = None
    home = cluster.Cluster(None, "tcp://here", machine)
    under_way = cluster._UnderWay(home, order(), grid_of(Toy.at("tiny")), Context())
    sent: list[int] = []
    monkeypatch.setattr(under_way, "_send", lambda runs, tries: sent.append(tries))
    runs, killed = np.arange(2), KilledWorker("toy-1", "worker", 3)
    for tries in range(cluster.RETRIES):
        assert under_way._outputs(Future("error", killed), runs, tries) is None
    assert under_way._outputs(Future("lost"), runs, 2) is None  # (no fault of its own)
    assert under_way._outputs(Future("error", OutOfTime("stopped")), runs, 0) is None
    assert sent == [1, 2, 2, 1]
    with pytest.raises(RunError, match="^a batch was lost with its worker 12 times .*--lifetime"):
        under_way._outputs(Future("error", killed), runs, cluster.RETRIES)
    with pytest.raises(RunError, match=r"^a worker cannot load the run \(ModuleNotFoundError: toy"):
        under_way._outputs(Future("error", ModuleNotFoundError("toy")), runs, 0)
    with pytest.raises(PermissionError):
        under_way._outputs(Future("error", PermissionError("toy")), runs, cluster.RETRIES)
    with pytest.raises(SchedulerLost, match="^the scheduler at tcp://here was lost"):
        under_way._outputs(Future("cancelled"), runs, 0)


# ------------------------------------------------------------------------------------ wrong input


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def test_what_does_not_go_with_a_cluster_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rarefy import cli

    study = ToyTraining.at("tiny")
    with pytest.raises(UsageError, match="^jobs=2: is for this machine alone"):
        run(study, Path("store"), cluster="local:2", jobs=2)
    with pytest.raises(UsageError, match="^models='nets': networks are saved where no cluster is"):
        run(study, Path("store"), cluster="local:2", models=Path("nets"))
    with pytest.raises(UsageError, match="unknown device 'tpu'"):
        run(study, Path("store"), cluster="local:2", device="tpu")
    assert cli.main(["run", "contrast-alignment", "--cluster", "local:2", "--jobs", "1"]) == 2
    said = "error: --jobs is for this machine alone; leave it out with --cluster\n"
    assert capsys.readouterr().err == said
    assert cli.main(["run", "contrast-alignment", "--cluster", "local:0"]) == 2
    assert capsys.readouterr().err.startswith("error: --cluster='local:0': must be local:N")
    monkeypatch.setattr("rarefy.sweep.runner.connect", interrupted)
    assert cli.main(["run", "contrast-alignment", "--cluster", "local:2"]) == 130
    assert capsys.readouterr().err == "error: stopped\n"
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"needs Dask; .*: pip install 'rarefy\[cluster\]'$"):
        run(study, Path("store"), cluster="local:2")
    assert not Path("store").exists() and not Path("runs").exists()


def test_workers_of_another_version_are_refused(
    processes: DaskProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "__version__", "9.9")
    said = "^worker tcp://.* has rarefy .*, here is 9.9; install the same there$"
    with pytest.raises(UsageError, match=said):
        run(Toy.at("tiny"), tmp_path / "store", cluster=processes.file)
    with pytest.raises(UsageError, match=r"^worker a cannot load the run \(ModuleNotFoundError: x"):
        connecting._refuse_strangers({"a": ModuleNotFoundError("x")})
    with pytest.raises(RunError, match="^worker a did not say what it is"):
        connecting._refuse_strangers({"a": ZeroDivisionError("x")})
    assert not (tmp_path / "store").exists()


def order(**changes: Any) -> on_worker.Order:
    given: dict[str, Any] = {"run": str(changes), "study": ToyTraining.at("tiny"), "threads": 1}
    given |= {"context": Context(), "inputs": {}, "data": None, "token": None}
    return on_worker.Order(**{**given, **changes})


def test_a_worker_that_came_later_is_looked_at_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RunError, match="^rarefy .* is there, the run is of 9.9$"):
        on_worker._check(order(rarefy="9.9"))
    with pytest.raises(RunError, match="^no CUDA device is there, though the worker offers GPU=1$"):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        on_worker._check(order(context=Context(device=torch.device("cuda"))))
    with pytest.raises(RunError, match="^kernels cannot be compiled there"):
        on_worker._check(order(context=Context(compiled=True)))
    (tmp_path / "content").write_text("digits (xyz)")
    reading = ToyTraining.at("tiny", folder=str(tmp_path))
    with pytest.raises(RunError, match=r"^data is digits \(xyz\) there, not digits \(abc\)$"):
        on_worker._check(order(study=reading, inputs={"data": "digits (abc)"}))
    monkeypatch.setenv("RAREFY_DATA", "elsewhere")
    on_worker._check(order(study=reading, inputs={"data": "digits (xyz)"}, data=str(tmp_path)))
    on_worker._check(order(data="nowhere"))
    assert on_worker.os.environ["RAREFY_DATA"] == str(tmp_path)


def test_batches_of_one_process_share_its_threads_and_a_training_has_it_alone() -> None:
    room = on_worker._Room()
    before = torch.get_num_threads()
    with room.enter(2, False):
        assert torch.get_num_threads() == 2
        with room.enter(2, False):
            assert room.inside == 2
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before and room.inside == 0
    with room.enter(None, False), room.enter(None, False):
        assert torch.get_num_threads() == before
    for first, second in (
        ((1, False), (2, False)),
        ((1, False), (1, True)),
        ((1, True), (1, False)),
    ):
        with room.enter(*first):
            assert not room.may_enter(*second)


# --------------------------------------------------------------------------------- the docs' words


def test_the_job_of_dask_jobqueue_is_as_the_page_prints_it() -> None:
    import dask
    import dask_jobqueue  # noqa: F401  (it has settings of its own)

    blocks = re.findall(r"^```(?:python)?\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    made = next(block for block in blocks if "SLURMCluster" in block)
    printed = next(block for block in blocks if "dask_worker" in block)
    names: dict[str, Any] = {}
    options = {"dashboard_address": ":0", "host": "127.0.0.1"}
    with dask.config.set({"jobqueue.slurm.scheduler-options": options}):
        exec(made.partition("slurm.scale")[0], names)
    with names["slurm"] as slurm:
        script = re.sub(
            r"^\S+ -m (\S+) tcp://\S+", r"python -m \1 ADDRESS", slurm.job_script(), flags=re.M
        )
    assert script.split("\n") == printed.split("\n")


def test_the_options_of_dask_on_the_page_exist() -> None:
    from distributed.cli import dask_scheduler, dask_worker

    verbs = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
    named = re.findall(r"\bdask (scheduler|worker)\b([^`\n]*)", PAGE)
    assert {verb for verb, _ in named} == set(verbs)
    for verb, words in named:
        known = {name for option in verbs[verb].params for name in option.opts}
        assert set(re.findall(r"--[a-z-]+", words)) <= known, words
