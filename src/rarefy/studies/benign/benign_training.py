"""How training goes and what the filters hold at its end (003 Lemmas 1-7, App. B and C.1)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Output, Verdict
from rarefy.core.errors import bad_value
from rarefy.core.picture import Picture, Table
from rarefy.core.precision import matrix_products
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.studies._apart import simulate_apart
from rarefy.studies.benign._benign import ClassNoiseStudy
from rarefy.studies.benign._experiment import Experiment
from rarefy.studies.benign._training_cases import CASES, ENDS, Case, class_sizes
from rarefy.studies.benign._training_measures import (
    OUTPUTS,
    SPREAD,
    TIMES,
    curves,
    stage_1_measures,
    stage_2_measures,
)
from rarefy.studies.benign._training_neurons import (
    BINS,
    INDICES,
    KINDS,
    PARTS,
    QUANTILES,
    SPECIAL_EDGES,
    decision_measures,
    end_measures,
)
from rarefy.studies.benign._training_pictures import training_pictures
from rarefy.studies.benign._training_run import watched
from rarefy.studies.benign._training_tables import training_tables
from rarefy.studies.benign._training_verdicts import training_verdicts
from rarefy.theory.benign import first_loss_drop


@dataclass(frozen=True, kw_only=True)
class BenignTraining(ClassNoiseStudy):
    """Two stages of training, then ranks, active filters, memory and decisions."""

    name: ClassVar[str] = "benign-training"
    title: ClassVar[str] = "How the loss falls, and what filters memorise on the way"
    paper_says: ClassVar[str] = (
        "In stage 1 the loss of each sample falls geometrically, at a rate of order eta |S_y| "
        "|u_y|^2/(m n) (003 Lemma 1); from T_0 on the mean training loss falls like 1/t, bounded "
        "by |W(T_0) - W*|_F^2/(eta t) + eps/2 (Lemma 2). At the end W_j A_j has rank 0.9 m at "
        "least and singular values between bounds (Lemma 3), a tenth of the filters or more are "
        "active on fresh noise (Lemma 4), a class's filters have memorised their own class's "
        "noise (Lemma 5), to an amount given by |A_y^T A_j|_F and b(S_j) (Lemma 6, (8)), and the "
        "residuals of all samples are within a constant of each other (Lemma 7). As printed (20 "
        "steps at rate 0.05) training hardly begins, so that the lemmas are also looked at after "
        "training until the loss is small, and where there are more filters than samples: rates "
        "and sizes of these settings are our choice."
    )
    claims: ClassVar[tuple[str, ...]] = ("B1", "B2", "B10")
    axes: ClassVar[tuple[str, ...]] = ("case", "gamma", "strength")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (about 5e14 operations)"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "gamma": (1.0, 10.0),
            "strength": (1.0, 6.0),
            "classes": 3,
            "d": 40,
            "filters": 8,
            "size": 6,
            "slow_steps": 60,
            "long_steps": 120,
            "trained_steps": 40,
            "trained_lr": 5.0,
            "wide_d": 60,
            "wide_filters": 40,
            "wide_size": 2,
            "test_samples": 60,
        },
        "quick": {
            "seeds": 3,
            "gamma": (1.0, 10.0),
            "strength": (0.01, 2.0, 4.0, 8.0),
            "d": 240,
            "filters": 24,
            "size": 20,
            "slow_steps": 200,
            "long_steps": 800,
            "trained_steps": 300,
            "trained_lr": 12.0,
            "wide_d": 1000,
            "wide_filters": 80,
            "wide_size": 3,
            "test_samples": 1000,
        },
        "paper": {"seeds": 2, "gamma": (1.0, 10.0), "strength": (0.01, 1.0, 2.0, 4.0)},
    }

    case: tuple[str, ...] = tuple(CASES)
    """how it is trained: one of the named settings"""
    gamma: tuple[float, ...] = (1.0, 10.0, 100.0)
    """noise correlation ratio Gamma of all pairs of classes"""
    strength: tuple[float, ...] = (0.01, 1.0, 2.0, 4.0, 8.0)
    """feature norm |u|"""
    size: int = 100
    """training samples a class (|S|)"""
    slow_steps: int = 300
    """steps of the settings that look at stage 1"""
    long_steps: int = 3000
    """steps of the setting that looks at stage 2"""
    small_sigma_0: float = 0.001
    """std of the initial weights in the setting with a small start (PyTorch's: 1/sqrt(3 d))"""
    wide_classes: int = 2
    """classes of the setting with more filters than samples"""
    wide_d: int = 5000
    """its coordinates of a patch"""
    wide_filters: int = 200
    """its filters a class"""
    wide_size: int = 5
    """its training samples a class"""
    precision: str = "float32"
    """matrix products on a GPU; single losses are compared step by step, which tf32 would blur"""
    test_samples: int = 2000
    seeds: int = 5

    def check(self) -> None:
        for name in self.case:
            if name not in CASES:
                raise bad_value("case", name, f"must be one of {', '.join(CASES)}")
        for name in ("size", "slow_steps", "long_steps", "wide_size", "wide_filters"):
            if getattr(self, name) < 1:
                raise bad_value(name, getattr(self, name), "must be at least 1")
        if not 0 < self.small_sigma_0 < math.inf:
            raise bad_value("small_sigma_0", self.small_sigma_0, "must be positive and finite")
        if not 2 <= self.wide_classes <= self.wide_d // 2:
            allowed = f"must be at least 2 and at most wide_d/2={self.wide_d // 2}"
            raise bad_value("wide_classes", self.wide_classes, allowed)
        for value in self.strength:
            if not 0 < value < math.inf:
                raise bad_value("strength", value, "must be positive and finite: W* needs features")
        for value in self.gamma:
            if not 1 <= value < math.inf:
                raise bad_value("gamma", value, "must be finite and at least 1")
        super().check()  # last: it looks at the cases

    def outputs(self) -> tuple[Output, ...]:
        return OUTPUTS

    def coordinates(self) -> dict[str, np.ndarray]:
        edges = np.array(SPECIAL_EDGES)
        return {
            "class": np.arange(self.classes),
            "spread": np.array(SPREAD),
            "time": np.arange(TIMES),
            "when": np.array(["before", "after"]),
            "index": np.linspace(0, 1, INDICES).round(4),
            "bin": ((np.arange(BINS) + 0.5) / BINS).round(4),
            "quantile": np.array(QUANTILES),
            "kind": np.array(KINDS),
            "part": np.array(PARTS),
            "special": (edges[1:] + edges[:-1]) / 2,
        }

    # -------------------------------------------------------------------------------- simulation

    def parts(self) -> tuple[BenignTraining, ...]:
        return tuple(self.at_case(CASES[name]) for name in self.case)

    def at_case(self, case: Case) -> BenignTraining:
        """This study with the sizes of one case."""
        study = dataclasses.replace(self, filters=max(1, round(self.filters * case.filters)))
        if case.wide:
            study = dataclasses.replace(
                self,
                classes=self.wide_classes,
                d=self.wide_d,
                filters=self.wide_filters,
                size=self.wide_size,
                initialisation="gaussian",
            )
        if case.start == "small":
            return dataclasses.replace(study, initialisation="gaussian", sigma_0=self.small_sigma_0)
        if case.start == "large":
            return dataclasses.replace(study, initialisation="gaussian", sigma_0=large_std(study))
        return study

    def steps_of(self, case: Case) -> int:
        if case.training == "slow":
            return self.slow_steps
        return self.long_steps if case.training == "long" else self.training(case.training).steps

    def cost(self) -> Cost:
        most = max(self.steps_of(CASES[name]) for name in self.case)
        sizes = []
        for name in self.case:
            case = CASES[name]
            study = self.at_case(case)
            n = study.classes * study.size
            each = study.cost_of(n, 1).bytes_per_cell
            # odds of every step are kept, and looked at several at a time
            sizes.append(each + 8 * 8 * n * (self.steps_of(case) + 1))
        return Cost(bytes_per_cell=max(sizes), steps_per_cell=most)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        # every case has shapes of its own: compiling for each takes longer than it saves
        context = dataclasses.replace(context, compiled=False)

        # cells of one seed share their draws, and so one rotation
        def of_seed(seed: int, those: Cells) -> dict[str, np.ndarray]:
            return simulate_apart(those, "case", lambda name, part: self._run(name, part, context))

        with matrix_products(self.precision, context.device):
            return simulate_apart(cells, "seed", of_seed)

    def _run(self, name: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        case = CASES[name]
        study = self.at_case(case)
        sizes = torch.tensor([class_sizes(case, study.classes, study.size)])
        gamma = cells.column("gamma", context).double().cpu()
        noise = spectrum_for(gamma, study.d, study.classes, self.base)
        experiment = study.setup(
            cells,
            context,
            spectrum=noise,
            strength=cells.column("strength", context),
            sizes=sizes.to(context.device),
        )
        lr = study.rates(case, experiment)
        steps = self.steps_of(case)
        seen = watched(
            experiment,
            context,
            lr,
            steps,
            stop_loss=self.stop_loss if case.stops else 0.0,
            epsilon=self.stop_loss or 0.01,
            coefficients=name in ENDS,
            work=self.cost().steps_per_cell / steps,
        )
        found = {"lr": lr, "nonfinite_step": seen.nonfinite_step, **curves(seen)}
        if case.is_stage_1 or case.training == "printed":
            found |= stage_1_measures(study, experiment, seen, lr)
        if case.training == "long":
            found |= stage_2_measures(seen, lr, self.stop_loss or 0.01)
        if name in ENDS:
            found |= end_measures(study, experiment, seen)
            found |= decision_measures(study, experiment, seen)
        return self._filled(found, len(cells))

    def rates(self, case: Case, experiment: Experiment) -> Tensor:
        """Learning rates, (run,)."""
        samples = experiment.samples
        like = samples.strength[:, 0]
        if case.drop == 0:
            return torch.full_like(like, case.rate * self.training(case.training).lr)
        trace = experiment.spectrum.trace().mean(dim=1)
        drop = first_loss_drop(
            len(samples) / self.classes,
            like.double().cpu().numpy(),
            trace.double().cpu().numpy(),
            len(samples),
            self.classes,
            1.0,
            self.filters,
            self.scale,
        )
        rate = case.rate * case.drop * math.log(self.classes) / drop
        return torch.as_tensor(rate).to(like).expand(len(like)).contiguous()

    def _filled(self, found: dict[str, Tensor], runs: int) -> dict[str, np.ndarray]:
        """All outputs; NaN where a case does not measure one."""
        length = {name: len(values) for name, values in self.coordinates().items()}
        complete = {"nonfinite_step": found["nonfinite_step"].cpu().numpy()}
        for output in self.outputs():
            shape = (runs, *(length[dim] for dim in output.dims))
            value = found.get(output.name)
            full = np.full(shape, np.nan)
            if value is not None:
                full[...] = value.cpu().numpy()
            complete[output.name] = full
        return complete

    # ----------------------------------------------------------------------------------- reading

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return training_verdicts(self, results, scale)

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return training_pictures(self, results)

    def tables(self, results: xr.Dataset) -> list[Table]:
        return training_tables(self, results)


def large_std(study: BenignTraining) -> float:
    """The smallest sigma_0 that (118) allows, its Omega read as 1 and delta as 0.1."""
    n = study.classes * study.size
    return math.log(study.trained_steps) * math.sqrt(math.log(n / 0.1) / (n * study.filters))
