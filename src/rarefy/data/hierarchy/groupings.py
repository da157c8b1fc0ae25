"""Groups above the labels of known sets. A set is known by its labels, under whatever name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rarefy.data.hierarchy.attaching import Annotations
from rarefy.data.hierarchy.levels import CLASS
from rarefy.data.images.image_set import ImageData

Groups = Mapping[str, str]
"""Labels, separated by spaces, by group."""

MAMMALS = (
    "aquatic_mammals large_carnivores large_omnivores_and_herbivores medium_mammals people "
    "small_mammals"
)
OTHER_ANIMALS = "fish insects non-insect_invertebrates reptiles"
PLANTS = "flowers fruit_and_vegetables trees"
INDOOR = "food_containers household_electrical_devices household_furniture"
OUTDOOR = "large_man-made_outdoor_things large_natural_outdoor_scenes"
VEHICLES = "vehicles_1 vehicles_2"

KNOWN: tuple[tuple[str, Mapping[str, Groups]], ...] = (
    (
        "coarse",  # CIFAR-100
        {
            "group": {
                "mammals": MAMMALS,
                "other animals": OTHER_ANIMALS,
                "plants": PLANTS,
                "indoor things": INDOOR,
                "outdoor scenes and structures": OUTDOOR,
                "vehicles": VEHICLES,
            },
            "living": {
                "living": f"{MAMMALS} {OTHER_ANIMALS} {PLANTS}",
                "not living": f"{INDOOR} {OUTDOOR} {VEHICLES}",
            },
        },
    ),
    (
        CLASS,  # CIFAR-10
        {
            "living": {
                "animals": "bird cat deer dog frog horse",
                "vehicles": "airplane automobile ship truck",
            }
        },
    ),
    (CLASS, {"parity": {"even": "0 2 4 6 8", "odd": "1 3 5 7 9"}}),  # digits, MNIST
)


def known_groupings(data: ImageData) -> Iterator[Annotations]:
    """What is known about a set with exactly these labels."""
    here = {CLASS: data.classes, **{name: names for name, (_, names) in data.train.levels.items()}}
    for base, levels in KNOWN:
        labels = {
            level: {label: group for group, some in groups.items() for label in some.split()}
            for level, groups in levels.items()
        }
        if all({*some} == {*here.get(base, ())} for some in labels.values()):
            yield Annotations(data.source, labels, base)
