"""What is left out: scores, masks and update rules as pure functions on tensors, and ``Pruner``.

When masks are chosen    constant, periodic, one_shot, gradual, for ``Pruner(schedule=...)``
A moving support         SET, RigL, for ``Pruner(regrow=..., update="masked")``
Of a pruned model        remove_zero_filters, reestimate (BatchNorm), to_two_four (GPU kernels)
"""

from rarefy.pruning.finishing.batchnorm import reestimate
from rarefy.pruning.finishing.removal import remove_zero_filters
from rarefy.pruning.finishing.semi_structured import to_two_four
from rarefy.pruning.regrowth import SET, RigL
from rarefy.pruning.schedules import constant, gradual, one_shot, periodic

__all__ = [
    "SET",
    "RigL",
    "constant",
    "gradual",
    "one_shot",
    "periodic",
    "reestimate",
    "remove_zero_filters",
    "to_two_four",
]
