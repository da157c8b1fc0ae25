"""What Theorem 3.1 says of converged networks, over temperature and number of features (000)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.convergence import charts
from rarefy.studies.contrastive.convergence import claims as judged
from rarefy.studies.contrastive.convergence.experiment import ConvergenceExperiment


class ContrastConvergence(ConvergenceExperiment, Study):
    """Loss and weights in the window of Theorem 3.1, with the bias and everything scaled with d."""

    name: ClassVar[str] = "contrast-convergence"
    title: ClassVar[str] = "At convergence: loss and weights over temperature and size"
    papers: ClassVar[tuple[str, ...]] = ("000", "001")
    shows: ClassVar[str] = "Theorem 3.1 (11)-(13); (89)"
    claims: ClassVar[tuple[str, ...]] = ("C5", "C6", "C15")
    needs: ClassVar[str] = "a CPU; a GPU at scales paper, late and wide"
    paper_says: ClassVar[str] = (
        "Theorem 3.1 is about tau = polylog(d), m = d^C_m and steps from T3 = d^1.01/eta to T4 = "
        "d^1.99/eta. There the mean loss is o(1) (11); a neuron's weight on a feature of its set "
        "N_i lies between (eps_j/eps_max) tau/Xi_2 and (eps_j/eps_max) tau (13); and the squared "
        "weights of the neurons in M_j sum to the order of (eps_j/eps_max)^2 tau log^3 d (89)."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
