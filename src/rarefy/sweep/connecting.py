"""Which Dask cluster a run is given, and whether its workers can take part.

A cluster is an address (``tcp://host:8786``), a scheduler file (``scheduler.json``), ``local:N``
for N processes here, or, in Python, a ``distributed.Client`` or a cluster object of Dask's.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from rarefy.core.contracts import Experiment
from rarefy.core.errors import OutOfTime, RunError, SchedulerLost, UsageError, bad_value, unknown
from rarefy.core.processes import ctrl_c_waits
from rarefy.core.reading import read_json
from rarefy.core.settings import DEVICES
from rarefy.core.version import __version__
from rarefy.sweep.choices import Machine
from rarefy.sweep.cluster import Cluster, count, line
from rarefy.sweep.on_worker import Facts, call, facts

ANSWER_SECONDS = 10.0
"""For a scheduler to answer."""
LOOK_SECONDS = 0.5
"""Between two looks whether a worker has come."""
MOST_PROCESSES = 256


def check_cluster(cluster: Any, jobs: int | None = None, models: Path | None = None) -> None:
    """Refuse what names no cluster, before anything is done."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise bad_value(
            "cluster", str(cluster), "needs Dask; install it with: pip install 'rarefy[cluster]'"
        ) from None
    if jobs is not None and jobs > 1:
        raise bad_value("jobs", jobs, "is for this machine alone; leave it out with a cluster")
    if models is not None:
        raise bad_value("models", str(models), "networks are saved where no cluster is used")
    if isinstance(cluster, str | os.PathLike):
        _processes_or_address(str(cluster))
    elif not hasattr(cluster, "scheduler_address") and not hasattr(cluster, "scheduler_info"):
        kind = type(cluster).__name__
        raise bad_value("cluster", kind, "must be an address, a file, a Client or Dask's Cluster")


def _processes_or_address(text: str) -> int | str:
    kind, _, count = text.partition(":")
    if kind == "local":
        if count.isdecimal() and 1 <= int(count) <= MOST_PROCESSES:
            return int(count)
        raise bad_value(
            "cluster", text, f"must be local:N, for N processes here, N from 1 to {MOST_PROCESSES}"
        )
    if not text.endswith(".json") and not Path(text).is_file():
        return text
    try:
        address = read_json(Path(text))["address"]
    except OSError as error:
        raise bad_value(
            "cluster",
            text,
            f"cannot be read ({error.strerror}); dask scheduler --scheduler-file FILE writes one",
        ) from None
    except (ValueError, KeyError, TypeError):
        address = None
    if not isinstance(address, str):
        raise bad_value("cluster", text, "is no scheduler file: it names no address")
    return address


@contextlib.contextmanager
def connect(
    cluster: Any,
    study: Experiment,
    device: str,
    dtype: str,
    deadline: float | None,
    shown: bool,
) -> Iterator[Cluster]:
    """The cluster that is meant, once it has a worker and all its workers fit."""
    if device not in DEVICES:
        raise unknown("device", device, DEVICES)
    with _quiet(), _client(cluster) as client:
        address = client.scheduler.address
        try:
            workers = _wait_for_workers(client, address, deadline)
            asked = call(facts, study, dtype, "cpu" if device == "cpu" else "auto")
            found = client.run(pickle.loads, asked, on_error="return")
            _refuse_strangers(found)
            machine, note = _machine(found, workers, device)
            if shown:
                print(f"note: {note} at {address}{_dashboard(client)}", file=sys.stderr)
        except OSError as error:
            raise SchedulerLost(f"the scheduler at {address} was lost ({line(error)})") from None
        yield Cluster(client, address, machine)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask's own log says in many lines what we say in one."""
    from distributed.versions import VersionMismatchWarning

    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "asyncio")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VersionMismatchWarning)
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def _client(cluster: Any) -> Iterator[Any]:
    """A ``distributed.Client`` of the cluster that is meant; one started for it ends with it."""
    from distributed import Client, LocalCluster

    if isinstance(cluster, Client):
        if cluster.asynchronous:
            raise bad_value("cluster", cluster, "must be a client that is not asynchronous")
        yield cluster
        return
    named = isinstance(cluster, str | os.PathLike)
    target = _processes_or_address(str(cluster)) if named else cluster
    with contextlib.ExitStack() as stack:
        if isinstance(target, int):
            offered = {"GPU": 1} if torch.cuda.is_available() else {}
            with ctrl_c_waits():  # (theirs for as long as they live: this process ends them)
                target = LocalCluster(
                    n_workers=target,
                    threads_per_worker=1,
                    resources=offered,
                    memory_limit=0,  # (batches are cut to fit, and halved where they do not)
                    dashboard_address=":0",
                    silence_logs=logging.CRITICAL,
                )
            stack.enter_context(target)
        try:
            client = Client(target, timeout=ANSWER_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise bad_value(
                "cluster", str(cluster), f"no Dask scheduler answers there ({line(error)})"
            ) from None
        yield stack.enter_context(client)


def _wait_for_workers(
    client: Any, address: str, deadline: float | None
) -> dict[str, dict[str, Any]]:
    told = False
    while not (workers := client.scheduler_info()["workers"]):
        if not told:
            print(f"note: waiting for workers at {address}", file=sys.stderr)
            told = True
        if deadline is not None and time.monotonic() > deadline:
            raise OutOfTime(f"no worker came to {address} in the time given")
        time.sleep(LOOK_SECONDS)
    return dict(workers)


def _refuse_strangers(found: dict[str, Facts | BaseException]) -> None:
    """One line about the first worker that cannot take part."""
    for address, said in found.items():
        if isinstance(said, ImportError | AttributeError):
            raise UsageError(
                f"worker {address} cannot load the run ({line(said)}); it needs rarefy "
                f"{__version__} and the package of the study, as here"
            )
        if isinstance(said, BaseException):
            raise RunError(f"worker {address} did not say what it is ({line(said)})")
        if said["made"]["rarefy"] != __version__:
            raise UsageError(
                f"worker {address} has rarefy {said['made']['rarefy']}, here is {__version__}; "
                "install the same there"
            )


def _machine(
    found: dict[str, Any], workers: dict[str, dict[str, Any]], device: str
) -> tuple[Machine, str]:
    """What the workers are together, the tightest memory first, and in words."""
    kinds = {said["made"]["device"] for said in found.values()}
    kind = "cuda" if device == "cuda" or "cuda" in kinds else "cpu"
    if kind not in kinds:
        raise UsageError("device='cuda': no worker has a CUDA device; use 'cpu' or 'auto'")
    able: list[Facts] = []
    sharing: dict[str, int] = {}
    for address, said in found.items():
        offered = workers.get(address, {"nthreads": 1, "resources": {}})
        slots = offered["nthreads"] if kind == "cpu" else int(offered["resources"].get("GPU", 0))
        if said["made"]["device"] == kind and slots:
            able.append(said)
            sharing[said["memory"]] = sharing.get(said["memory"], 0) + slots
    if not able:
        raise UsageError(
            f"device={device!r}: no worker offers its GPU; start each with dask worker ... "
            "--nthreads 1 --resources GPU=1, or use 'cpu'"
        )
    machines = sorted({said["made"]["machine"] for said in able})
    _note_differences("torch", sorted({torch.__version__, *(one["made"]["torch"] for one in able)}))
    _note_differences("machine", machines)
    tight = min(able, key=lambda said: said["free"] / sharing[said["memory"]])
    made = {**tight["made"], "machine": ", ".join(machines), "workers": len(able)}
    compiles = all(said["compiles"] for said in able)
    machine = Machine(torch.device(kind), tight["free"], sharing[tight["memory"]], compiles, made)
    idle = len(found) - len(able)
    others = f" ({idle} that offer none stay idle)" if idle else ""
    return machine, f"{count(len(able))} on {kind}{others}"


def _note_differences(what: str, kinds: list[str]) -> None:
    if len(kinds) > 1:
        print(
            f"note: more than one {what} ({', '.join(kinds)}): last digits may depend on who "
            "computes a cell",
            file=sys.stderr,
        )


def _dashboard(client: Any) -> str:
    from importlib.metadata import version

    try:
        client.run_on_scheduler(version, "bokeh")
    except ImportError:
        return "; no dashboard, bokeh is not installed there"
    return f"; dashboard: {client.dashboard_link}"
