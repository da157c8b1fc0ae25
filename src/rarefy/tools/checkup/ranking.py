"""What to do first: a page of plain rules.

Each rule looks at what the parts found, and gives nothing or one thing to do with its evidence and
its command. Things are sorted by how much they spoil:

3   what makes every other number wrong: files that cannot be read, test images that are also
    training images, the same content under two labels
2   what costs rare classes: labels in doubt, a network that learns no more than the largest class,
    classes that are never answered or far behind, too few test images to tell
1   what may be worth trying: pruning, features without labels, finer labels, a look at odd samples

Within a level by the share of the samples (or of the accuracy) that is concerned.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rarefy.core.text import as_argument
from rarefy.data.images.listing import counted
from rarefy.tools.checkup.sections import DONE, Section
from rarefy.tools.influence.label_check import KNOWN

FIRST = 3
READ = ("data check", "influence", "train", "pretrain", "granularity")
OPTIONS = {
    "label": ("influence",),
    "size": READ,
    "test_share": READ,
    "skip_bad": READ,
    "hierarchy": ("granularity",),
}
"""Of reading data, and the verbs that have them."""
SPOILS, COSTS, TRY = 3, 2, 1
GAP = 10.0
"""Points of recall between head and tail from which the tail is behind."""
CLEAR = 0.25
"""Silhouette from which two groups inside a class are more than chance (Kaufman, Rousseeuw)."""


@dataclass(frozen=True)
class ToDo:
    """``level`` and ``share`` sort; ``command`` does it or looks closer."""

    what: str
    evidence: str
    command: str
    level: int
    share: float


Numbers = Mapping[str, Any]
Commands = Callable[..., str]
"""A verb and further options to what a person would type."""
Rule = Callable[[Mapping[str, Numbers], Commands], ToDo | None]


def commands_for(data: str, **options: object) -> Commands:
    """Commands about ``data`` with the options it was read with, as far as a verb has them."""

    def command(verb: str, *further: str) -> str:
        known = [name for name, verbs in OPTIONS.items() if verb in verbs and options.get(name)]
        words = [_spelled(name, options[name]) for name in known]
        return " ".join(["rarefy", verb, as_argument(data), *words, *further])

    return command


def _spelled(name: str, value: object) -> str:
    option = f"--{name.replace('_', '-')}"
    return option if value is True else f"{option} {shlex.quote(str(value))}"


def things_to_do(sections: Sequence[Section], commands: Commands) -> list[ToDo]:
    """All that the rules find, what spoils most first."""
    numbers = {one.part: one.numbers for one in sections if one.status == DONE}
    found = [rule(numbers, commands) for rule in RULES]
    return sorted(filter(None, found), key=lambda one: (-one.level, -one.share))


def _broken(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("set", {})
    if not told.get("broken"):
        return None
    what = f"mend or remove {counted(told['broken'], 'file')} that cannot be read"
    share = told["broken"] / (told["broken"] + told["samples"])
    return ToDo(what, f"first: {told['first_broken']}", commands("data check"), SPOILS, share)


def _leaked(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("set", {})
    if not told.get("shared"):
        return None
    return ToDo(
        "take training images out of the test part",
        f"{told['shared']:,} of {told['test']:,} test images are also training images, pixel for "
        "pixel: accuracies are too high",
        commands("data check"),
        SPOILS,
        told["shared"] / told["test"],
    )


def _contradicting(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("samples", {})
    if not told.get("conflicts"):
        return None
    return ToDo(
        "decide which label copies have",
        f"{told['conflicts']:,} samples have the same content as others under another label",
        commands("influence", "--open"),
        SPOILS,
        told["conflicts"] / told["samples"],
    )


def _labels(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("samples", {})
    if not told.get("issues"):
        return None
    known = told["label_accuracy"]
    if known is not None and known < KNOWN:
        if not told.get("pixels", True):  # (there is nothing to embed)
            return None
        return ToDo(
            "check labels with an embedding",
            f"by these features classifiers name {100 * known:.0f} % of the labels: most of their "
            f"{told['issues']:,} doubts are mistakes of their own",
            commands("influence", "--embed module:callable", "--open"),
            TRY,
            0.02,
        )
    return ToDo(
        f"look at {counted(told['issues'], 'label')} in doubt, then write the cleaned set",
        f"{100 * told['issues'] / told['samples']:.1f} % of the samples; most of class "
        f"{told['issue_class']!r} ({told['issue_class_count']:,} of {told['issue_class_size']:,})",
        commands("influence", "--open"),
        COSTS,
        told["issues"] / told["samples"],
    )


def _learns_nothing(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("learning", {})
    if not told.get("no_better_than"):
        return None
    return ToDo(
        "do not trust a plain accuracy on this set",
        f"a quick network is no better than {told['no_better_than']}: balanced accuracy "
        f"{told['balanced']:.1f} %",
        commands("train", "--keep auto"),
        COSTS,
        1.0,
    )


def _behind(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("learning", {})
    head, tail = told.get("head"), told.get("tail")
    if told.get("no_better_than") or head is None or tail is None or not head - tail > GAP:
        return None
    return ToDo(
        f"collect more of {told['worst_class']!r}",
        f"a quick network finds {tail:.0f} % of the rare classes' images and {head:.0f} % of the "
        f"common ones'; {told['worst_class']!r} {told['worst_recall']:.0f} % "
        f"({told['worst_train']:,} training images)",
        commands("train"),
        COSTS,
        (head - tail) / 100,
    )


def _untold(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("learning", {})
    if not told.get("untold"):
        return None
    return ToDo(
        f"give rare classes more test images, about {told['enough']} each",
        f"{told['untold']} classes have too few to tell how well they are known, "
        f"{told['untold_class']!r} {told['untold_images']}",
        commands("data check"),
        COSTS,
        told["untold"] / told["classes"] / 10,  # (nothing is wrong yet, it is only not known)
    )


def _copies(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("set", {})
    if not told.get("copies") or told["copies"] < 0.01 * told["samples"]:
        return None
    return ToDo(
        "thin out exact copies",
        f"{told['copies']:,} of {told['samples']:,} training samples repeat another one",
        commands("influence", "--open"),
        TRY,
        told["copies"] / told["samples"],
    )


def _pruning(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("learning", {})
    if told.get("decision") != "use":
        return None
    return ToDo(
        "prune while training",
        told["sentence"],
        commands("train", "--keep auto"),
        TRY,
        told["gain"] / 100,
    )


def _features(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("features", {})
    gain = told.get("tail_gain")
    if gain is None or not gain > 0:
        return None
    return ToDo(
        "pre-train without labels before you train",
        f"features learnt without labels know {gain:.1f} points more of the rare classes than "
        f"pixels do (n = {told['n']}, too few to be sure)",
        commands("pretrain", "--save backbones"),
        TRY,
        gain / 100,
    )


def _finer(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("finer", {})
    if told.get("levels"):
        evidence = f"it has levels: {', '.join(told['levels'])}"
        what = "try finer labels in pre-training"
        return ToDo(what, evidence, commands("granularity"), TRY, 0.01)
    if not told.get("silhouette", 0.0) > CLEAR:
        return None
    return ToDo(
        f"look whether {told['clear_class']!r} is two classes",
        f"its samples fall into two clear groups (silhouette {told['silhouette']:.2f})",
        commands("influence", "--open"),
        TRY,
        0.01,
    )


def _odd(of: Mapping[str, Numbers], commands: Commands) -> ToDo | None:
    told = of.get("samples", {})
    if not told.get("rare"):
        return None
    return ToDo(
        "look at what is rare but right, and keep it",
        f"{counted(told['rare'], 'sample')} far out in the class, with the label of the neighbours",
        commands("influence", "--open"),
        TRY,
        0.0,
    )


RULES: tuple[Rule, ...] = (
    *(_broken, _leaked, _contradicting, _labels, _learns_nothing, _behind, _untold),
    *(_copies, _pruning, _features, _finer, _odd),
)
