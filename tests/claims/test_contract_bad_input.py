"""Studies refuse parameters that are unknown, of the wrong kind, against a rule or against another.

Which rules the fields have, and which numbers each of them refuses, stands in
``parameter_rules.json``; what was changed on purpose is written anew by
``PYTHONPATH=src:tests python tests/claims/test_contract_bad_input.py``.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from registered_studies import STUDIES, every_study

from rarefy.core.contracts import Study
from rarefy.core.errors import UsageError
from rarefy.core.parameters import Parameter, Rule, parameters_of

pytestmark = pytest.mark.usefixtures("eager")

COMMITTED = Path(__file__).with_name("parameter_rules.json")
KINDS: dict[type, tuple[Any, str]] = {
    bool: (bool, "must be true or false"),
    int: (int, "must be a whole number"),
    float: ((int, float), "must be a number"),
    str: (str, "must be a text"),
}
NUMBERS = (-math.inf, -1, -0.1, 0, 0.5, 1, 1.5, 2, 2.5, 7, 10**9, math.inf, math.nan)
OTHERS = ("no such word", "", None, True, b"1", [1], {})


def numbers(rule: Rule) -> list[float]:
    """The usual ones, and those around the bounds that the rule names."""
    bounds = [float(bound) for bound in re.findall(r"\d+(?:\.\d+)?", rule.allowed)]
    around = {bound + step for bound in bounds for step in (-1, -0.1, 0, 0.1, 1)}
    return [*NUMBERS, *sorted(around - set(NUMBERS))]


def complaint(parameter: Parameter, value: Any) -> str | None:
    """What is said of a value, by its kind or by the first rule that it breaks."""
    if parameter.kind in KINDS and not (value is None and parameter.optional):
        kinds, allowed = KINDS[parameter.kind]
        truth = isinstance(value, bool) and parameter.kind is not bool
        if truth or not isinstance(value, kinds):
            return allowed
    return next((rule.allowed for rule in parameter.rules if not rule.holds(value)), None)


def rules_of_studies() -> dict[str, dict[str, Any]]:
    """The rules by the studies that have them, and by the numbers that they refuse."""
    studies: dict[tuple[str, str], list[str]] = {}
    refused: dict[str, set[str]] = {}
    for name, kind in STUDIES.items():
        for parameter in parameters_of(kind).values():
            for rule in parameter.rules:
                text = f"{parameter.kind.__name__}, {rule.allowed}"
                studies.setdefault((parameter.name, text), []).append(name)
                if parameter.kind is not str:
                    wrong = " ".join(f"{one:g}" for one in numbers(rule) if not rule.holds(one))
                    refused.setdefault(f"{rule.allowed}, so not {wrong}", set()).add(parameter.name)
    rules: dict[str, dict[str, str]] = {}
    for (parameter_name, allowed), names in studies.items():
        key = "every study" if len(names) == len(STUDIES) else " ".join(names)
        rules.setdefault(key, {})[parameter_name] = allowed
    return {
        "rules": dict(sorted(rules.items())),
        "refused": {rule: " ".join(sorted(names)) for rule, names in sorted(refused.items())},
    }


def test_the_rules_of_the_fields_are_the_committed_ones() -> None:
    rules, committed = rules_of_studies(), json.loads(COMMITTED.read_text())
    assert rules["rules"] == committed["rules"] and rules["refused"] == committed["refused"]


def refusal(kind: type[Study], scale: str = "tiny", **wrong: Any) -> str:
    with pytest.raises(UsageError) as caught:
        kind.at(scale, **wrong)
    return str(caught.value)


@every_study
def test_a_value_against_a_kind_or_a_rule_is_named_with_what_is_allowed(kind: type[Study]) -> None:
    for name, parameter in parameters_of(kind).items():
        near = [number for rule in parameter.rules for number in numbers(rule)]
        complaints = [(value, complaint(parameter, value)) for value in (*OTHERS, *NUMBERS, *near)]
        assert {rule.allowed for rule in parameter.rules} <= {allowed for _, allowed in complaints}
        for value, allowed in complaints:
            row = ((value,),) if parameter.nested else (value,)
            if allowed:
                message = refusal(kind, **{name: row if parameter.many else value})
                assert message == f"{name}={value!r}: {allowed}"
        if name in kind.axes:
            assert refusal(kind, **{name: ()}) == f"{name}=(): needs at least one value"
        elif parameter.many:
            assert refusal(kind, **{name: 40}) == f"{name}=40: must be a list of values"


@every_study
def test_unknown_names_are_wrong_use(kind: type[Study]) -> None:
    assert refusal(kind, no_such_parameter=1).startswith(
        f"unknown parameter of {kind.name} 'no_such_parameter'"
    )
    assert refusal(kind, "gigantic").startswith("unknown scale 'gigantic'")


BOTH = "contrast-alignment contrast-dynamics"
PRUNING = "contrast-pruning contrast-pruning-map"
DOWNSTREAM = "contrast-similarity contrast-regression contrast-separability"
FIGURES = f"contrast-alignment {DOWNSTREAM}"
GRANULARITY = "granularity-ablation granularity-extreme granularity-labels"
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("benign-correlation", {"classes": 7, "d": 12}, "classes=7: must be at most d/2=6"),
    ("benign-features", {"classes": 21}, "classes=21: must be at most d/2=20"),
    ("benign-homogeneous", {"dimension": (40, 3)}, "at least 4, twice the number of classes"),
    ("benign-majority", {"majority": (3,)}, "majority=3: must be at least minority=6"),
    ("benign-majority", {"lengths": (1.0, 2.0)}, "lengths=(1.0, 2.0): must be 0 and then rise"),
    ("benign-majority", {"test_samples": 1004}, "must be a multiple of 1000, or at least 6 mo"),
    ("benign-mixing", {"test_samples": 1003}, "must be a multiple of 1000, or at least 6 mo"),
    ("benign-tail", {"lengths": (1.0, 2.0, 3.0)}, "must be 0 and then rise, three at least"),
    ("benign-tail", {"lengths": (0.0, 2.0)}, "must be 0 and then rise, three at least"),
    ("benign-tail", {"test_samples": 1500}, "test_samples=1500: must be a multiple of 1000"),
    ("benign-topk", {"initialisation": "gaussian", "form": "dual"}, "pruned: must be primal"),
    ("benign-training", {"wide_classes": 31}, "wide_classes=31: must be at most wide_d/2=30"),
    ("contrast-alignment", {"figure_read": 7}, "figure_read=7: must be one of reads"),
    (BOTH, {"weight_decay": -0.1}, "weight_decay=-0.1: must be at least 0 and below 1/lr"),
    (BOTH, {"weight_decay": 6.0}, "weight_decay=6.0: must be at least 0 and below 1/lr"),
    (f"{BOTH} {PRUNING}", {"d1": 8}, "d1=8: must be at least the number of features, 9"),
    (FIGURES, {"reads": (40, 20)}, "reads=(40, 20): rising steps between 0 and steps=40"),
    (f"{FIGURES} contrast-pruning", {"reads": (0, 41)}, "rising steps between 0 and steps=40"),
    (f"{FIGURES} contrast-pruning", {"reads": ()}, "reads=(): rising steps between 0 and steps=40"),
    ("contrast-cascade", {"levels": (0.5, 1.0)}, "at least two, each rarer than the one before"),
    ("contrast-cascade", {"levels": (1.0,)}, "levels=(1.0,): at least two"),
    ("contrast-cascade", {"alpha": (0.1, 0.2)}, "alpha=(0.1, 0.2): needs 0, the unpruned twin"),
    ("contrast-cascade", {"alpha": (0.0, 0.1)}, "needs 0, the unpruned twin, and figure_alpha=0.2"),
    ("contrast-cascade", {"neurons": 5}, "neurons=5: a neuron a feature: at least 6"),
    ("contrast-cascade", {"before": 45}, "before=45: must be in 0..steps-1=44"),
    ("contrast-cascade", {"reads": (5, 10)}, "reads=(5, 10): rising steps, the first of them 0"),
    ("contrast-cascade", {"reads": (0, 31)}, "reads=31: at most steps - before = 30"),
    ("contrast-convergence", {"d": (40,)}, "d1=30: must be at least the number of features, 40"),
    ("contrast-convergence", {"reads": (0.0, 1.01)}, "0, then rising exponents above 1.02"),
    ("contrast-convergence", {"reads": (1.25, 1.5)}, "reads=(1.25, 1.5): 0, then rising exponents"),
    ("contrast-dynamics", {"stage_1_steps": 999}, "stage_1_steps=999: must be in 1..steps=120"),
    ("contrast-heatmap", {"shown_001": 31}, "shown_001=31: must be in 1..neurons_001=30"),
    ("contrast-heatmap", {"figure_read": 20}, "figure_read=20: must be one of reads"),
    ("contrast-heatmap", {"figure_eps": 0.3}, "figure_eps=0.3: must be in eps_min"),
    ("contrast-heatmap", {"reads": (30, 10)}, "rising steps between 0 and steps=30"),
    ("contrast-init", {"d": (9, 21)}, "d=21: must be in 2..d1=20"),
    ("contrast-masking", {"mask": ("rare",)}, "needs none, which the others are compared with"),
    ("contrast-masking", {"alpha": (0.01,)}, "alpha=0.01: leaves out none of the 24 neurons"),
    ("contrast-masking", {"start": 40}, "start=40: pruning must start at a step in 0..39"),
    ("contrast-masking", {"reads": (10, 40)}, "reads=(10, 40): needs start=20 and a later step"),
    ("contrast-masking", {"reads": (10, 20)}, "reads=(10, 20): needs start=20 and a later step"),
    ("contrast-pruning", {"alpha": (0.0, 0.01)}, "alpha=0.01: leaves out none of the 36 neurons"),
    ("contrast-pruning", {"start": (0, 39), "reads": (0, 39)}, "the last must come after start=39"),
    ("contrast-pruning", {"reads": (0,)}, "reads=(0,): the last must come after start=0"),
    ("contrast-pruning", {"neurons": 8}, "neurons=8: a neuron a feature: at least d=9"),
    ("contrast-pruning", {"reads": (20, 20)}, "rising steps between 0 and steps=40"),
    ("contrast-pruning", {"reads": (-1, 20)}, "rising steps between 0 and steps=40"),
    (PRUNING, {"alpha": (0.1, 0.2)}, "alpha=(0.1, 0.2): needs 0 (not pruned) and a value above it"),
    (PRUNING, {"start": (0, 40)}, "start=40: pruning must start at a step in 0..39"),
    (PRUNING, {"start": (-1,)}, "start=-1: pruning must start at a step in 0..39"),
    (PRUNING, {"alpha": (0.0,)}, "alpha=(0.0,): needs 0 (not pruned) and a value above it"),
    ("contrast-pruning-map", {"alpha": (0.0, 0.02)}, "leaves out none of the 24 neurons"),
    (
        "contrast-pruning-rates",
        {"features": (9, 64)},
        "d1=40: must be at least the number of features, 64",
    ),
    ("contrast-pruning-rates", {"features": (9,)}, "needs two values: a slope is fitted"),
    ("contrast-pruning-rates", {"pruned": (2,)}, "needs two values: a slope is fitted"),
    (
        "contrast-pruning-rates",
        {"pruned": (1, 5)},
        "must be in 1..copies=4: the rare feature's own",
    ),
    ("contrast-regression", {"head_pairs": 24}, "must be more than the 24 neurons of the head"),
    ("contrast-regression", {"minority": 50, "head_pairs": 55}, "the 55 neurons of the head"),
    ("contrast-samples", {"samples": (8, 0)}, "must be at least batch=16, or 0 for fresh samples"),
    ("contrast-samples", {"samples": (0,)}, "needs a finite set, not fresh samples alone"),
    ("contrast-samples", {"training": ("plain",)}, "compares all: plain, pruned, branches, masked"),
    ("contrast-samples", {"figure_read": 16}, "figure_read=16: must come before the last of reads"),
    ("contrast-samples", {"alpha": 0.01}, "alpha=0.01: leaves out none of the 24 neurons"),
    ("contrast-sensitivity", {"d1": 8}, "d1=8: must be at least the number of features"),
    ("contrast-sensitivity", {"reads": (5,)}, "reads=(5,): at least two"),
    (DOWNSTREAM, {"figure_read": 7}, "figure_read=7: must be one of reads=(0, 20, 40)"),
    ("granularity-ablation", {"batch": 10}, "batch=10: must be a multiple of 2 k = 4"),
    ("granularity-ablation", {"arm": ("following",)}, "must be following-RATE, scheduled-RATE"),
    ("granularity-ablation", {"arm": ("tuned-1",)}, "arm='tuned-1': must be"),
    ("granularity-ablation", {"arm": ("following-fast",)}, "its rate must be paper or a number"),
    ("granularity-ablation", {"arm": ("linear-paper",)}, "arm='linear-paper': its rate must be"),
    ("granularity-ablation", {"arm": ("tuned", "following-0.1")}, "must have linear-1"),
    (
        "granularity-ablation",
        {"arm": ("tuned", "linear-1", "following-0.1")},
        "must have following-paper",
    ),
    ("granularity-ablation", {"main_rate": "0.7"}, "must have following-0.7"),
    ("granularity-ablation", {"tune_reads": (5, 10)}, "must begin at 0 and end at"),
    (GRANULARITY, {"subclasses": 8, "batch": 64}, "d=16: must be at least 2 + k_+ + k_- = 18"),
    (GRANULARITY, {"feature_patches": 7}, "its samples need 14 patches, there are 12"),
    (GRANULARITY, {"variation": ("no such",)}, "unknown variation 'no such'"),
    ("granularity-detectors", {"subclasses": (2, 8)}, "d=12: must be at least 2 + k_+ + k_- = 18"),
    ("granularity-detectors", {"feature_patches": 6}, "its samples need 12 patches, there are 10"),
    ("granularity-detectors", {"batch": 6}, "must be a multiple of 2 k = 4: equal subclasses"),
    ("granularity-detectors", {"main": 7}, "main=7: must be one of subclasses=(1, 2)"),
    ("granularity-detectors", {"reads": (0, 1)}, "reads=(0, 1): must rise from 0 to steps=20"),
    ("granularity-detectors", {"reads": (1, 0, 20)}, "must rise from 0 to steps=20"),
    ("granularity-detectors", {"reads": ()}, "reads=(): must rise from 0"),
    ("granularity-detectors", {"reads": (0, 1, 20, 50)}, "must rise from 0 to steps=20"),
    ("granularity-detectors", {"variation": ("patch counts fixed",)}, "must have 'as chosen'"),
    ("granularity-errors", {"subclasses": (2,)}, "subclasses=(2,): one for each of s_star=(1, 2)"),
    (
        "granularity-errors",
        {"subclasses": (3, 8), "batch": 48},
        "d=12: must be at least 2 + k_+ + k_- = 18",
    ),
    (
        "granularity-errors",
        {"patches": 1},
        "feature_patches=1: its samples need 4 patches, there are 1",
    ),
    ("granularity-errors", {"batch": 8}, "batch=8: must be a multiple of 2 k = 6"),
    ("granularity-errors", {"variation": ("patch counts fixed",)}, "must have 'as chosen'"),
    ("granularity-errors", {"reads": (0, 10)}, "reads=(0, 10): must lie in 0..steps=12"),
    ("granularity-extreme", {"batch": 12}, "batch=12: must hold the whole set, 16 samples"),
    ("granularity-extreme", {"per_side": (1, 2, 16)}, "per_side=16: at most 8, one label a sample"),
    ("granularity-extreme", {"per_side": (1, 2)}, "must have 8 (one label a sample)"),
    ("granularity-extreme", {"per_side": (1, 8)}, "per_side=(1, 8): must have 2 (fine)"),
    ("granularity-extreme", {"per_side": (2, 8)}, "per_side=(2, 8): must have 1 (coarse)"),
    ("granularity-extreme", {"per_side": (1, 2, 3, 8)}, "must divide k=2 or be a multiple of it"),
    ("granularity-extreme granularity-labels", {"batch": 18}, "must be a multiple of 2 k = 4"),
    ("granularity-extreme granularity-labels", {"main_noise": 0.5}, "must be one of patch_noise"),
    ("granularity-labels", {"wrong": (0.0,)}, "wrong=(0.0,): turn must be 0, 1, 2"),
    ("granularity-labels", {"turn": (1, 0)}, "turn must be 0, 1, 2, ... and name a place"),
    ("influence-covariance", {"data": ("mnits",)}, "data set 'mnits'; did you mean 'mnist'"),
    ("influence-gallery", {"data": ("digit",)}, "unknown data set 'digit'; did you mean 'digits'"),
    ("influence-removal", {"fraction": (0.1,)}, "must have 0, all samples, to compare with"),
    ("influence-removal", {"by": ("hihg",)}, "did you mean 'high'"),
    ("influence-removal", {"by": ("influence-low",)}, "by='influence-low': is called low here"),
    ("influence-removal", {"within": ("class", "row")}, "unknown within 'row'"),
    ("influence-scoreboard", {"data": ("digitz",)}, "data set 'digitz'; did you mean 'digits'"),
    ("influence-scoreboard", {"injection": ("flips",)}, "must be a kind and a share"),
    ("influence-scoreboard", {"injection": ("flops-0.1",)}, "unknown kind of injection 'flops'"),
    (
        "longtail-table",
        {"algorithm": ("simclr", "pruned")},
        "method='pruned': needs the share of weights to keep",
    ),
    ("longtail-table", {"orders": (4,)}, "orders=(4,): must name one for each of 2 seeds"),
    ("longtail-table", {"rho": (0.5,)}, "rho=0.5: must be a number, at least 1"),
    ("longtail-table", {"split": "as-is"}, "means nothing where images are taken as they are"),
    ("longtail-table", {"split": "tail.json"}, "means nothing where images are taken as they are"),
    ("longtail-table", {"protocols": ("svm",)}, "unknown protocol 'svm'"),
    ("longtail-table", {"epochs": 0}, "epochs=0: must be at least 1"),
    ("regimes-at-scale", {"question": ("hill 2",)}, "must be signal or feature with a share"),
    ("regimes-at-scale", {"question": ("signal",)}, "question='signal': must be signal or feature"),
    ("regimes-at-scale", {"question": ("signal 1",)}, "must be signal or feature"),
    ("regimes-at-scale", {"question": ("feature 0",)}, "must be signal or feature"),
    ("regimes-at-scale", {"question": ("side 6",)}, "or tail or side with L in [0, 5]"),
    ("regimes-at-scale", {"question": ("tail -1",)}, "or tail or side with L in [0, 5]"),
    ("regimes-at-scale", {"d": (4,), "classes": (2,)}, "must be above 4: two directions a class"),
    ("regimes-at-scale", {"precision": 9.0}, "must be wider than the precision, 9"),
    ("sparse-cifar100-noise", {"update": ("project+globl",)}, "update='project+globl': "),
    ("sparse-cifar100-noise", {"update": ("project+once",)}, "update='project': "),
    ("sparse-cifar100-noise", {"update": ("global",)}, "update='global': "),
    ("sparse-mnist", {"watched": 2}, "watched=2: is called evaluations now"),
    ("topk-baselines", {"arm": ("dense", "prune-3")}, "must be dense, revive-K, revive0-K"),
    ("topk-baselines", {"arm": ("dense", "revive")}, "arm='revive': must be dense, revive-K"),
    ("topk-baselines", {"arm": ("dense-3", "revive-3")}, "arm='dense-3': must be dense, revive-K"),
    ("topk-baselines", {"arm": ("dense", "revive-few")}, "must be dense, revive-K"),
    ("topk-baselines", {"arm": ("dense", "fixed-2.5")}, "K must be a whole number"),
    (
        "topk-baselines",
        {"arm": ("dense", "fixed-0")},
        "keep=0: coordinates kept of a filter must be in 1..d=40",
    ),
    ("topk-baselines", {"arm": ("dense", "random-41")}, "keep=41: coordinates kept of a filter"),
    ("topk-baselines", {"arm": ("dense", "revive-inf")}, "K must be a whole number"),
    ("topk-baselines", {"arm": ("dense", "revive-2", "decay-0")}, "weight decay must lie between"),
    ("topk-baselines", {"arm": ("dense", "revive-2", "decay-20")}, "between 0 and 1/lr=20"),
    ("topk-baselines", {"arm": ("dense", "revive-2", "decay-nan")}, "weight decay"),
    ("topk-baselines", {"arm": ("revive-2",)}, "must have dense, and a revive-K or fixed-K"),
    ("topk-baselines", {"arm": ("dense", "random-2")}, "have dense, and a revive-K or fixed-K"),
    ("topk-baselines", {"arm": ("dense", "revive-2", "revive-2")}, "is there twice"),
    ("topk-baselines", {"arm": ("dense", "revive-2", "revive-2.0")}, "is there twice"),
    ("topk-baselines", {"reads": (5, 20)}, "must lie in 0..steps=60 and have steps itself"),
    ("topk-baselines", {"reads": ()}, "reads=(): must lie"),
    ("topk-phase", {"keep": (0,)}, "keep=0: coordinates kept of a filter must be in 1..d=40"),
    ("topk-phase", {"keep": (201,)}, "keep=201: coordinates kept of a filter must be in 1..d=40"),
    ("topk-phase", {"classes": 200}, "must be below d=40: each class has a coordinate"),
    ("topk-regimes", {"samples": (2,)}, "must be at least the largest number of classes, 3"),
    ("topk-regimes", {"d": (3,)}, "d=3: must be above the number of classes, 3"),
    (
        "topk-regimes",
        {"d": (10**9,), "form": "primal"},
        "with --form primal at most 4.54545e+06: vectors are stored; use dual",
    ),
    ("topk-regimes", {"reads": (1, 30)}, "reads=(1, 30): must rise from 1 or more to steps=60"),
    ("topk-regimes", {"reads": (10, 1, 60)}, "must rise from 1 or more to steps=60"),
    ("topk-stages", {"factor": (1e-300,)}, "factor=1e-300: must leave filters a whole number"),
    ("topk-stages", {"factor": (0.01,)}, "factor=0.01: must leave filters a whole number"),
    ("topk-stages", {"factor": (0.3,)}, "factor=0.3: must leave filters a whole number"),
    ("topk-stages", {"factor": (0.25,)}, "factor=0.25: needs 2 classes and a sample of each"),
    ("topk-stages", {"d": 2}, "d=2.0: must be above the number of classes"),
]


@pytest.mark.parametrize(
    ("name", "wrong", "allowed"),
    [(name, wrong, allowed) for names, wrong, allowed in WRONG for name in names.split()],
)
def test_what_does_not_go_together_is_named_with_what_is_allowed(
    name: str, wrong: dict[str, Any], allowed: str
) -> None:
    message, starts = refusal(STUDIES[name], **wrong), [allowed, "unknown ", "range="]
    for key, value in {**STUDIES[name].at("tiny").parameters(), **wrong}.items():
        entries = value if isinstance(value, tuple) else ()
        starts += [f"{key}={named!r}: " for named in (value, *entries)]
    assert message.startswith(tuple(starts))
    assert allowed in message and "\n" not in message


if __name__ == "__main__":
    parts = [
        f'"{part}": {{\n'
        + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in lines.items())
        for part, lines in rules_of_studies().items()
    ]
    COMMITTED.write_text("{\n" + "\n},\n".join(parts) + "\n}\n}\n")
