"""Methods in words, and every way to say one wrongly."""

from __future__ import annotations

import pytest

from rarefy.core.errors import UsageError
from rarefy.train.simclr.method import CONTROLS, Method, parse_methods, temperature


def test_words_and_what_they_mean() -> None:
    assert Method.parse("simclr") == Method()
    assert Method.parse("pruned:0.7") == Method("pruned", 0.7, every_step=True)
    assert Method.parse("pruned:0.7+neuron+epoch") == Method("pruned", 0.7, "neuron")
    assert Method.parse("branches:0.1") == Method("branches", 0.1)
    assert Method.parse("branches:0.1+straight+step").straight
    assert Method.parse("branches:0.1+own-norms") == Method("branches", 0.1, own_norms=True)
    assert Method.parse("sdclr") == Method("branches", 0.1, own_norms=True, head_depth=3)
    assert Method.parse("sdclr:0.3").keep == 0.3
    assert Method.parse("simclr+one-sided").objective == "one-sided"
    assert Method.parse("simclr+schedule").schedule
    assert Method.parse("branches:0.1+random+frozen") == Method(
        "branches", 0.1, random=True, frozen=True
    )
    assert Method.parse("branches:0.1+both").both
    assert Method.parse("simclr+boost") == Method(boost=True)
    assert Method.parse("branches:0.1+harmonise") == Method("branches", 0.1, targets=100)
    both = Method.parse("pruned:0.5+harmonise:20+boost+layer+schedule")
    assert both.boost and both.targets == 20 and both.granularity == "layer" and both.schedule
    assert Method.parse("branches:0.1+schedule") == Method("branches", 0.1, schedule=True)
    # checkpoints go by the repr
    assert repr(Method.parse("simclr+boost")) != repr(Method.parse("simclr"))
    assert "boost" not in repr(Method.parse("simclr"))
    assert not Method.parse("simclr").masked
    assert Method.parse("pruned:0.5").masked and not Method.parse("pruned:1").masked


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("simclear", "did you mean 'simclr'?"),
        ("simclr:0.5", "simclr keeps all weights"),
        ("pruned", "needs the share of weights to keep, as pruned:0.3"),
        ("branches:many", "behind the colon stands a share"),
        ("pruned:0", "keeps a share above 0"),
        ("pruned:1.5", "keeps a share above 0"),
        ("pruned:nan", "keeps a share above 0"),
        ("simclr+neuron", "neuron is about masks, and simclr has none"),
        ("pruned:0.5+straight", "straight is about branches"),
        ("branches:0.5+neuron", "branches mask weights, not whole neurons"),
        ("pruned:0.5+fast", "after a + there can be layer, filter"),
        ("sdclr:1", "norms of their own are those of a masked branch; without masks: branches:1"),
        ("untrained+boost", "nothing is trained: untrained stands alone"),
        ("pixels+harmonise", "nothing is trained: pixels stands alone"),
        ("simclr+boost+boost", "has boost twice"),
        ("simclr+harmonise:4+harmonise", "has harmonise twice"),
        ("simclr+boost:0.5", "behind boost stands no number"),
        ("simclr+harmonise:1", "behind harmonise: stands the number of targets, as 20"),
        ("simclr+harmonise:", "behind harmonise: stands the number of targets, as 20"),
        ("simclr+harmonise:many", "behind harmonise: stands the number of targets, as 20"),
        ("simclr+boost+one-sided", "boost remembers the symmetric loss: not one-sided"),
        ("simclr+one-sided+boost", "boost remembers the symmetric loss: not one-sided"),
        ("simclr+harmonize", "noise, boost, harmonise"),
        ("branches:1+own-norms", "norms of their own are those of a masked branch"),
        *((f"pruned:0.5+{word}", f"{word} is about branches") for word in CONTROLS),
        *((f"simclr+{word}", f"{word} is about branches") for word in CONTROLS),
        *(
            (f"branches:1+{word}", f"{word} is about masks, and all weights are kept")
            for word in CONTROLS
        ),
        ("branches:0.5+frozen+step", "frozen masks are chosen once, not at every step or epoch"),
        ("branches:0.5+epoch+frozen", "frozen masks are chosen once, not at every step or epoch"),
        ("branches:0.5+noise+dropout", "takes the place of masks: one of random, frozen, dropout"),
        ("branches:0.5+random+dropout", "dropout takes the place of masks: one of random, frozen"),
        ("branches:0.5+noise+frozen", "noise takes the place of masks: one of random, frozen"),
        ("branches:0.5+own-norms+both", "both views see one network: no norms of their own"),
        ("sdclr+both", "both views see one network: no norms of their own"),
    ],
)
def test_what_is_no_method(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        Method.parse(text)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("word", ["dropout", "noise"])
def test_a_disturbance_is_no_mask(word: str) -> None:
    found = Method.parse(f"branches:0.1+{word}")
    assert (found.disturbance, found.keep, found.masked) == (word, 0.1, False)
    assert Method.parse(f"sdclr+{word}").own_norms


def test_checkpoints_of_methods_without_controls_are_still_found() -> None:
    """They go by the repr, which knows methods with controls by their words alone."""
    assert repr(Method.parse("sdclr")) == (
        "Method(kind='branches', keep=0.1, granularity='global', every_step=False, "
        "objective='nt-xent', schedule=False, straight=False, own_norms=True, head_depth=3, "
        "words='sdclr')"
    )
    controls = {repr(Method.parse(f"branches:0.1+{word}")) for word in CONTROLS}
    assert len(controls | {repr(Method.parse("branches:0.1"))}) == len(CONTROLS) + 1


def test_several_at_once() -> None:
    assert parse_methods("simclr, branches:0.1") == ("simclr", "branches:0.1")
    with pytest.raises(UsageError, match="same one twice"):
        parse_methods("simclr,simclr")
    with pytest.raises(UsageError, match="name at least one"):
        parse_methods(" , ")
    with pytest.raises(UsageError, match="needs the share"):
        parse_methods("simclr,pruned")


def test_the_temperature_goes_down_and_comes_back() -> None:
    plain, waving = Method.parse("simclr"), Method.parse("simclr+schedule")
    assert temperature(plain, 0.2, 17.0, 100) == 0.2
    long = [temperature(waving, 0.2, epoch, 2000) for epoch in (0, 50, 100, 200, 400)]
    # tau = 0.1 + 0.45 (1 + cos(pi epoch / 200))
    assert long == pytest.approx([1.0, 0.55 + 0.45 * 0.5**0.5, 0.55, 0.1, 1.0])
    branches = Method.parse("branches:0.1+schedule")
    assert temperature(branches, 0.2, 100, 2000) == pytest.approx(0.55)
    short = [temperature(waving, 0.2, epoch, 50) for epoch in (0, 25, 50)]
    assert short == pytest.approx([1.0, 0.1, 1.0])
