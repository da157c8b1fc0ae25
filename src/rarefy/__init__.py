"""rarefy: how networks learn or lose rare features, and how thinning them changes that.

Studies of the papers
    list_studies   what there is
    run            a study over its grid: an xarray.Dataset
    judge          its verdicts
    plot           its figures, by matplotlib
    load           results and stores, from files or an address
    claims         what the papers claim, and the answer to each
    Study, Experiment, Verdict, Results     what these are made of, and give

A labelled set of one's own
    checkup        all tools once: what to do first
    influence      which samples are atypical, which labels may be wrong
    stream_influence                        the former, of data that do not fit into memory
    LabelCheck, InfluenceScorer             the same as estimators of scikit-learn
    clean          the set anew, as decided

Images of one's own
    train          networks, dense and pruned beside each other
    pretrain       features without labels, by one method
    pretrain_images                         methods beside each other, head and tail
    probe          how good features are
    features       what a saved network makes of images
    granularity    how fine labels should be
    TrainRun, PretrainRun, PretrainedBackbone, GranularityRun, Checkup, Cleaned, StreamedScores
                   what these give

Pruning while training
    Pruner         any PyTorch model, two lines on top of a training loop
    pruning        schedules, regrowth, and what is done with a pruned model

Parts of the laboratory
    lab            data models, learners, a trainer of many runs at once, measures

Errors
    RarefyError    every error that is raised on purpose; one line each
    UsageError, RunError, OutOfTime         wrong use, a failure on the way, time was over
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rarefy.core.version import __version__ as __version__

if TYPE_CHECKING:
    from rarefy import lab as lab
    from rarefy import pruning as pruning
    from rarefy.core.contracts import Experiment as Experiment
    from rarefy.core.contracts import Study as Study
    from rarefy.core.errors import OutOfTime as OutOfTime
    from rarefy.core.errors import RarefyError as RarefyError
    from rarefy.core.errors import RunError as RunError
    from rarefy.core.errors import UsageError as UsageError
    from rarefy.core.verdict import Verdict as Verdict
    from rarefy.ledger.api import claims as claims
    from rarefy.pruning.models.pruner import Pruner as Pruner
    from rarefy.report.plotting import plot as plot
    from rarefy.studies.api import Results as Results
    from rarefy.studies.api import judge as judge
    from rarefy.studies.api import list_studies as list_studies
    from rarefy.studies.api import load as load
    from rarefy.studies.api import run as run
    from rarefy.tools.checkup.api import Checkup as Checkup
    from rarefy.tools.checkup.api import checkup as checkup
    from rarefy.tools.clean.cleaning import Cleaned as Cleaned
    from rarefy.tools.clean.cleaning import clean as clean
    from rarefy.tools.granularity.api import GranularityRun as GranularityRun
    from rarefy.tools.granularity.api import granularity as granularity
    from rarefy.tools.influence.estimators import InfluenceScorer as InfluenceScorer
    from rarefy.tools.influence.estimators import LabelCheck as LabelCheck
    from rarefy.tools.influence.scoring import influence as influence
    from rarefy.tools.influence.streaming import StreamedScores as StreamedScores
    from rarefy.tools.influence.streaming import stream_influence as stream_influence
    from rarefy.tools.longtail.api import PretrainedBackbone as PretrainedBackbone
    from rarefy.tools.longtail.api import pretrain as pretrain
    from rarefy.tools.longtail.api import probe as probe
    from rarefy.tools.longtail.features_file import features as features
    from rarefy.tools.longtail.pretrain_images import pretrain_images as pretrain_images
    from rarefy.tools.longtail.pretrain_run import PretrainRun as PretrainRun
    from rarefy.tools.train_images import train as train
    from rarefy.tools.train_run import TrainRun as TrainRun

SURFACE = {
    "Studies of the papers": {
        "list_studies": "rarefy.studies.api",
        "run": "rarefy.studies.api",
        "judge": "rarefy.studies.api",
        "plot": "rarefy.report.plotting",
        "load": "rarefy.studies.api",
        "Results": "rarefy.studies.api",
        "claims": "rarefy.ledger.api",
        "Study": "rarefy.core.contracts",
        "Experiment": "rarefy.core.contracts",
        "Verdict": "rarefy.core.verdict",
    },
    "A labelled set of one's own": {
        "checkup": "rarefy.tools.checkup.api",
        "Checkup": "rarefy.tools.checkup.api",
        "influence": "rarefy.tools.influence.scoring",
        "stream_influence": "rarefy.tools.influence.streaming",
        "StreamedScores": "rarefy.tools.influence.streaming",
        "LabelCheck": "rarefy.tools.influence.estimators",
        "InfluenceScorer": "rarefy.tools.influence.estimators",
        "clean": "rarefy.tools.clean.cleaning",
        "Cleaned": "rarefy.tools.clean.cleaning",
    },
    "Images of one's own": {
        "train": "rarefy.tools.train_images",
        "TrainRun": "rarefy.tools.train_run",
        "pretrain": "rarefy.tools.longtail.api",
        "PretrainedBackbone": "rarefy.tools.longtail.api",
        "pretrain_images": "rarefy.tools.longtail.pretrain_images",
        "PretrainRun": "rarefy.tools.longtail.pretrain_run",
        "probe": "rarefy.tools.longtail.api",
        "features": "rarefy.tools.longtail.features_file",
        "granularity": "rarefy.tools.granularity.api",
        "GranularityRun": "rarefy.tools.granularity.api",
    },
    "Pruning while training": {"Pruner": "rarefy.pruning.models.pruner", "pruning": "rarefy"},
    "Parts of the laboratory": {"lab": "rarefy"},
    "Errors": dict.fromkeys(
        ("RarefyError", "UsageError", "RunError", "OutOfTime"), "rarefy.core.errors"
    ),
}
"""Where the names live, by heading. They are fetched on first use: importing torch takes seconds,
and ``rarefy --help`` has none. A module is fetched from the package that it stands in."""

_HOMES = {name: home for names in SURFACE.values() for name, home in names.items()}
__all__ = ["__version__", *_HOMES]


class CallableRoom(ModuleType):
    """``rarefy.train`` is the verb and, by the same name, the room ``rarefy/train/``: the room can
    be called."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return import_module("rarefy.tools.train_images").train(*arguments, **options)

    @property
    def __signature__(self) -> Any:
        import inspect

        return inspect.signature(import_module("rarefy.tools.train_images").train)


if not TYPE_CHECKING:  # (a name that is not there is for a type checker to say)

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'rarefy' has no attribute {name!r}")
        if name == "train" or _HOMES[name] == __name__:
            return import_module(f"rarefy.{name}")
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
