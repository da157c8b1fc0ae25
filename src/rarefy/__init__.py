"""rarefy: how networks learn or lose rare features, and how thinning them changes that.

``rarefy.run("contrast-alignment", scale="quick")`` runs a study and gives an ``xarray.Dataset``;
``rarefy.judge(study, dataset, scale)`` gives its verdicts, ``rarefy.claims("Xu Chen figure 3")``
the answers to what the papers claim. ``rarefy.Pruner(model, optimizer,
keep=0.3)`` prunes any PyTorch model while it trains, ``rarefy.train(data, keep=0.3)`` compares
dense and pruned networks on images. ``rarefy.influence(X, y)`` says which samples of a labelled
set are atypical and which labels may be wrong, ``rarefy.LabelCheck().fit(X, y)`` the latter alone
(``rarefy.stream_influence`` the former alone, of data that do not fit into memory);
``rarefy.clean(data, picks, out)`` writes the set anew as decided. ``rarefy.checkup(data)`` calls
all tools once. ``rarefy.pretrain(images, network, "branches:0.1")`` learns features without labels,
``rarefy.probe(train, test)`` judges them, ``rarefy.pretrain_images(data, methods)`` compares
methods, head and tail, ``rarefy.features(file)`` is what a saved network makes of images.
``rarefy.granularity(data)`` says how fine the labels of pre-training should be.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rarefy.core.version import __version__

if TYPE_CHECKING:
    from rarefy.core.contracts import Experiment, Study, Verdict
    from rarefy.ledger.api import claims
    from rarefy.pruning.models.pruner import Pruner
    from rarefy.studies.api import judge, run
    from rarefy.tools.checkup.api import checkup
    from rarefy.tools.clean.cleaning import clean
    from rarefy.tools.granularity.api import granularity
    from rarefy.tools.influence.estimators import InfluenceScorer, LabelCheck
    from rarefy.tools.influence.scoring import influence
    from rarefy.tools.influence.streaming import stream_influence
    from rarefy.tools.longtail.api import pretrain, probe
    from rarefy.tools.longtail.features_file import features
    from rarefy.tools.longtail.pretrain_images import pretrain_images
    from rarefy.tools.train_images import train

__all__ = [
    "Experiment",
    "InfluenceScorer",
    "LabelCheck",
    "Pruner",
    "Study",
    "Verdict",
    "__version__",
    "checkup",
    "claims",
    "clean",
    "features",
    "granularity",
    "influence",
    "judge",
    "pretrain",
    "pretrain_images",
    "probe",
    "run",
    "stream_influence",
    "train",
]

# Names are fetched on first use: importing torch takes seconds, and ``rarefy --help`` has none.
_HOMES = {
    "checkup": "rarefy.tools.checkup.api",
    "claims": "rarefy.ledger.api",
    "run": "rarefy.studies.api",
    "judge": "rarefy.studies.api",
    "clean": "rarefy.tools.clean.cleaning",
    "features": "rarefy.tools.longtail.features_file",
    "granularity": "rarefy.tools.granularity.api",
    "influence": "rarefy.tools.influence.scoring",
    "InfluenceScorer": "rarefy.tools.influence.estimators",
    "LabelCheck": "rarefy.tools.influence.estimators",
    "pretrain": "rarefy.tools.longtail.api",
    "pretrain_images": "rarefy.tools.longtail.pretrain_images",
    "probe": "rarefy.tools.longtail.api",
    "stream_influence": "rarefy.tools.influence.streaming",
    "Pruner": "rarefy.pruning.models.pruner",
    "Experiment": "rarefy.core.contracts",
    "Study": "rarefy.core.contracts",
    "Verdict": "rarefy.core.contracts",
}


class CallableRoom(ModuleType):
    """``rarefy.train`` is the verb and, by the same name, the room ``rarefy/train/``: the room can
    be called."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return import_module("rarefy.tools.train_images").train(*arguments, **options)

    @property
    def __signature__(self) -> Any:
        import inspect

        return inspect.signature(import_module("rarefy.tools.train_images").train)


def __getattr__(name: str) -> Any:
    if name == "train":
        return import_module("rarefy.train")
    if name not in _HOMES:
        raise AttributeError(f"module 'rarefy' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
