"""Parts of the laboratory, to put together by hand: ``rarefy.lab``.

A data model gives batches, a learner their loss, ``descend`` trains many runs at once, measures
look at what was learnt. Every tensor has the leading axis ``run``.

Random numbers     Draws
Data models        SparseCoding, dictionary, frequencies (Liao et al.); SignalNoise (the TopK paper)
Learners           Contrastive, initial_weights, BiasSchedule; PatchClassifier, initial_filters
Training           descend, Sgd
Pruning            NeuronPruning (whole neurons), TopKPruning (coordinates of filters)
Measures           squared_cosines
"""

from rarefy.core.rng import Draws
from rarefy.data.signal_noise import SignalNoise
from rarefy.data.sparse_coding import SparseCoding, dictionary, frequencies
from rarefy.measure.alignment import squared_cosines
from rarefy.nets.patch_cnn import initial_filters
from rarefy.train.bias_schedule import BiasSchedule
from rarefy.train.contrastive import Contrastive, initial_weights
from rarefy.train.descent import descend
from rarefy.train.neuron_pruning import NeuronPruning
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier
from rarefy.train.topk_pruning import TopKPruning

__all__ = [
    "BiasSchedule",
    "Contrastive",
    "Draws",
    "NeuronPruning",
    "PatchClassifier",
    "Sgd",
    "SignalNoise",
    "SparseCoding",
    "TopKPruning",
    "descend",
    "dictionary",
    "frequencies",
    "initial_filters",
    "initial_weights",
    "squared_cosines",
]
