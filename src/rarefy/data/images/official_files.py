"""The official files of the known sets: addresses, sizes and checksums.

The checksums are those that torchvision and Keras check; only what rarefy fetches is held to them.
"""

from __future__ import annotations

from rarefy.data.images.cifar import CIFAR10, CIFAR100
from rarefy.data.images.download import RemoteFile
from rarefy.data.images.mnist import FILES, RAW

MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist"
CIFAR_URL = "https://www.cs.toronto.edu/~kriz"

MNIST_FILES = tuple(
    RemoteFile(f"{MNIST_URL}/{name}.gz", f"{RAW.as_posix()}/{name}.gz", size, sha256)
    for name, size, sha256 in zip(
        FILES,
        (9_912_422, 28_881, 1_648_877, 4_542),
        (
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
        strict=True,
    )
)
CIFAR10_FILES = (
    RemoteFile(
        f"{CIFAR_URL}/{CIFAR10.archive}",
        CIFAR10.archive,
        170_498_071,
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    ),
)
CIFAR100_FILES = (
    RemoteFile(
        f"{CIFAR_URL}/{CIFAR100.archive}",
        CIFAR100.archive,
        169_001_437,
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    ),
)
