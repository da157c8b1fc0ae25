"""The neuron sets before training, counted and computed exactly (000 Lemma B.2, 001 Lemma C.1)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.init import charts
from rarefy.studies.contrastive.init import claims as judged
from rarefy.studies.contrastive.init.experiment import InitExperiment


class ContrastInit(InitExperiment, Study):
    """Ordinary and lucky neurons of random networks, against their exact laws and the bounds."""

    name: ClassVar[str] = "contrast-init"
    title: ClassVar[str] = "Before training: imbalance leaves hardly any lucky neurons"
    papers: ClassVar[tuple[str, ...]] = ("000", "001")
    shows: ClassVar[str] = "000 Lemma B.2; 001 Lemma C.1"
    claims: ClassVar[tuple[str, ...]] = ("C9",)
    paper_says: ClassVar[str] = (
        "At initialisation every neuron has a squared norm close to sigma_0^2 d_1, of which about "
        "sigma_0^2 d lies in the feature space (29)-(30). With m = d^C_m neurons, each feature j "
        "has at most of order Xi_2 = d^(C_m - r^2) ordinary neurons M_j and at least of order "
        "Xi_1 = d^(C_m - 1/r^2) lucky ones M*_j, r = eps_min/eps_max (31)-(32). A neuron is "
        "ordinary for at most of order d^(1-r^2) features (000 Lemma B.2 d) or O(1) of them (001 "
        "Lemma C.1 f), and two features share O(log d) neurons (001, 23)."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
