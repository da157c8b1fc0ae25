"""The five papers, by the keys that claims and studies use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """``short``: what a line of a table has room for."""

    short: str
    authors: str
    title: str

    def __str__(self) -> str:
        return f"{self.authors}: {self.title}" if self.authors else self.title


PAPERS = {
    "000": Paper(
        "Liao et al.",
        "Liao, Zhou, Zhang, Wang, Zhang",
        "Theoretical Analysis of Contrastive Learning under Imbalanced Data: From Training "
        "Dynamics to a Pruning Solution",
    ),
    "001": Paper(
        "Liao et al. (features)",
        "Liao, Zhang, Zhou, Zhang",
        "On the Training Dynamics of Contrastive Learning with Imbalanced Feature Distributions: "
        "A Theoretical Study of Feature Learning",
    ),
    "002": Paper(
        "the TopK paper",
        "",
        "A theory of TopK pruning during training in two-layer ReLU CNNs, on the signal-noise "
        "data model",
    ),
    "003": Paper(
        "Xu & Chen", "Xu, Chen", "Rethinking Benign Overfitting in Two-Layer Neural Networks"
    ),
    "004": Paper(
        "Hong et al.",
        "Hong, Cui, Fuxman, Chan, Luo",
        "Why Fine-grained Labels in Pretraining Benefit Generalization?",
    ),
}


def paper_names(keys: Iterable[str]) -> str:
    """Papers as a person calls them; a key that is not known stays as it is."""
    return ", ".join(PAPERS[key].short if key in PAPERS else key for key in keys)
