"""The contracts between rooms: what an experiment and a study are, and a batch of cells."""

from __future__ import annotations

import dataclasses
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch

from rarefy.core.errors import OutOfTime, bad_value, unknown
from rarefy.core.parameters import Count, check_parameters, check_size
from rarefy.core.picture import Picture, Table
from rarefy.core.rng import Draws, key
from rarefy.core.verdict import OUTCOMES, Verdict
from rarefy.core.writing import OutputFolder

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["OUTCOMES", "Cells", "Context", "Cost", "Experiment", "Output", "Study", "Verdict"]


@dataclass(frozen=True)
class Output:
    """One measured quantity: its dimensions (besides ``run``), what it means, its unit."""

    name: str
    dims: tuple[str, ...] = ()
    meaning: str = ""
    unit: str = ""


NONFINITE_STEP = Output(
    "nonfinite_step", (), "step at which the run stopped being finite; -1: it stayed finite"
)
"""Every store has it: the runner fills in -1 where a simulation does not return it."""


@dataclass(frozen=True)
class Cost:
    """What one cell takes: memory while it runs, and work in run-steps (the progress unit)."""

    bytes_per_cell: int
    steps_per_cell: int


@dataclass(frozen=True)
class Cells:
    """A batch of cells of one shape: for each axis (and ``seed``) one value per run, and the key
    from which the run draws its random numbers."""

    values: Mapping[str, np.ndarray]
    keys: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: np.ndarray) -> Cells:
        """The cells at some rows of this batch."""
        values = {name: np.asarray(column)[rows] for name, column in self.values.items()}
        return Cells(values, self.keys[rows])

    def column(self, name: str, context: Context) -> torch.Tensor:
        """The values of one axis as a tensor of shape (run,)."""
        return torch.as_tensor(
            np.asarray(self.values[name], dtype=np.float64), dtype=context.dtype
        ).to(context.device)

    def draws(self, context: Context) -> Draws:
        return Draws(self.keys, context.device, context.dtype, context.compiled)


def _no_progress(amount: float) -> None:
    return None


def _say_nothing(text: str) -> None:
    return None


@dataclass(frozen=True)
class Context:
    """Where and how a batch runs. ``advance`` is told how many run-steps were just done, ``say`` a
    few words for the progress bar. ``models``: a folder for trained networks, if wanted."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    dtype: torch.dtype = torch.float32
    compiled: bool = False
    advance: Callable[[float], None] = _no_progress
    say: Callable[[str], None] = _say_nothing
    deadline: float | None = None
    stop: threading.Event | None = None
    scratch: Path | None = None
    models: OutputFolder | None = None

    def check_time(self) -> None:
        """Raise ``OutOfTime`` once the deadline (``time.monotonic`` seconds) has passed, or another
        batch of the same execution has ended it."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfTime("the time given with --max-seconds is over")
        if self.stop is not None and self.stop.is_set():
            raise OutOfTime("stopped")


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """Something that is run over a grid: parameters (the dataclass fields, defaults as in the
    paper, each with its rules, ``core.parameters``), axes, outputs, cost and a simulation.

    Fields named in ``axes`` hold tuples; their product times ``seeds`` is the grid, and all of it
    runs on the run axis. A batch never mixes two shapes.

    Attributes:
        name, title, version: what it is; ``version`` is raised when the same parameters would give
            other results.
        axes, random_axes: parameters that hold several values, and those along which cells draw
            afresh.
        scales: ``tiny``, ``quick``, ``paper``: the parameters that differ from the defaults.

    Example:
        >>> from rarefy.studies import get_study
        >>> experiment = get_study("contrast-init").at("tiny", seeds=5)
        >>> [output.name for output in experiment.outputs()][:2]
        ['ordinary', 'ordinary_most']
    """

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[int] = 1
    """Raise it when the same parameters would give other results."""
    axes: ClassVar[tuple[str, ...]]
    random_axes: ClassVar[tuple[str, ...]] = ()
    """Axes along which cells draw afresh; along the others they share draws seed by seed."""
    scales: ClassVar[Mapping[str, Mapping[str, Any]]]
    """``tiny``, ``quick``, ``paper`` and any further: the parameters that differ from defaults."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """Former names of parameters and axes, as older stores and results have them, and their names
    today (``sweep.renames``)."""
    one_at_a_time: ClassVar[bool] = False
    """A cell is a whole training of a real network: it has the device for itself, unless several
    processes are asked for."""
    compile_from: ClassVar[int] = 20_000
    """Runs times steps from which compiling saves more than it takes, on a CPU:
    ``WORTH_BUILDING`` where nothing but C++ files is compiled."""
    batch_on_cpu: ClassVar[int | None] = None
    """Cells of a batch on a CPU, if more than usual are faster."""

    seeds: Count = 100
    """repeats of each grid point"""

    @classmethod
    def at(cls, scale: str = "paper", **parameters: Any) -> Self:
        """The experiment at a named scale, with some parameters set by hand."""
        if scale not in cls.scales:
            raise unknown("scale", scale, cls.scales)
        known = {f.name for f in dataclasses.fields(cls)}
        for name in parameters:
            if name in cls.renamed:
                raise bad_value(name, parameters[name], f"is called {cls.renamed[name]} now")
            if name not in known:
                raise unknown(f"parameter of {cls.name}", name, known)
        settled = {**cls.scales[scale], **parameters}
        for name in cls.axes:
            if name in settled and not isinstance(settled[name], tuple):
                value = settled[name]
                listed = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
                settled[name] = tuple(value) if listed else (value,)
        experiment = cls(**settled)
        check_parameters(experiment)
        experiment.check()
        for name, value in settled.items():
            check_size(name, value)
        return experiment

    def parameters(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def cell_key(self, values: Mapping[str, Any]) -> int:
        """The key of a cell: the experiment, its seed and its coordinates on the random axes."""
        return key(self.name, values["seed"], *(values[name] for name in self.random_axes))

    def check(self) -> None:  # noqa: B027 (most have nothing to add)
        """Raise ``UsageError`` for parameter values that do not go together; each by itself has
        been checked against the rules on its field."""

    def inputs(self) -> dict[str, str]:
        """What it reads from outside (a data set), each as a text that changes with its content; a
        store is not gone on with when one of them has changed. Raises where one is missing."""
        return {}

    def network_names(self) -> list[str]:
        """Of the files of trained networks that a run can save; none where nothing is saved."""
        return []

    @property
    def setting(self) -> str:
        """A short text that tells two settings of one scale apart in the ledger."""
        return "default"

    @abstractmethod
    def outputs(self) -> tuple[Output, ...]: ...

    @abstractmethod
    def coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the outputs' own dimensions (``step``, ``feature`` ...)."""

    @abstractmethod
    def cost(self) -> Cost: ...

    @abstractmethod
    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        """Run a batch; every output as an array with leading axis ``run``."""


@dataclass(frozen=True, kw_only=True)
class Study(Experiment):
    """An experiment with claims and charts: one figure or theorem family of a paper.

    What the first block says is read from the source without importing it: plain texts only.
    ``CONTRIBUTING.md`` has a worked example of three short files.

    Attributes:
        papers, shows, claims: keys of the papers, figures and theorems, ids of the claims.
        needs: what it takes to run it.
        paper_says: one paragraph for the report.

    Example:
        >>> from rarefy.studies import get_study
        >>> study = get_study("contrast-init").at("tiny", seeds=5)
        >>> study.axes, study.seeds, study.claims
        (('d', 'ratio'), 5, ('C9',))
    """

    papers: ClassVar[tuple[str, ...]]
    """Their keys in ``core.papers``."""
    shows: ClassVar[str]
    """The figures and theorems: "Fig. 3; Theorem 1"."""
    claims: ClassVar[tuple[str, ...]]
    needs: ClassVar[str] = "nothing but a CPU"
    headline: ClassVar[bool] = False
    """The demo runs it, one per laboratory."""
    paper_says: ClassVar[str]
    """One paragraph for the report, in our words, with paper and equation numbers."""

    @abstractmethod
    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        """Judge the claims. ``results`` has the axes, ``seed`` and the outputs' dimensions."""

    @abstractmethod
    def picture(self, results: xr.Dataset) -> list[Picture]: ...

    def tables(self, results: xr.Dataset) -> list[Table]:
        """Further tables for the report; none unless a study has some."""
        return []
