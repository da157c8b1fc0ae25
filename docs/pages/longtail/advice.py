"""What the rows of 000 Table 2 say, in words: verdicts, advice, the published numbers beside."""

from __future__ import annotations

import numpy as np

from pages.longtail.rows import (
    BASELINE,
    EPOCHS,
    JUDGE,
    LARGEST,
    NOT_RUN,
    ROWS,
    SET_NAMES,
    STUDY,
    Found,
    by_length,
    orders,
    sets_of,
    way_of,
)
from rarefy.measure.statistics import judge_trend, spearman_trend
from rarefy.studies.longtail.published import TABLE_2
from rarefy.studies.longtail.tables import shown
from rarefy.studies.longtail.words import protocol_words, spoken
from rarefy.tools.longtail.readings import FEWEST
from rarefy.train.simclr.method import Method

NAMES = {"pruned": "Algorithm 1 (one masked branch)", "branches": "Two branches (SDCLR)"}
CHANCE = 0.05
"""Of recommending something that does nothing, over all rows together."""


def verdict_of(found: dict[str, Found], kind: str) -> str:
    """One reading of the method, in words."""
    said = []
    for one in found.values():
        for method in one.methods(kind)[:1] if one.is_row else ():
            gain = one.gain(method)
            word = "open"
            if gain.n > 1:
                word = "helps" if gain.low > 0 else "hurts" if gain.high < 0 else "open"
            words = f"{word}, {shown(gain, True)} points" if gain.n else "stopped, not finite"
            said.append(f"{one.name}, {one.epochs} epochs: {words}")
    return f"- **{NAMES[kind]}**: {'; '.join(said) or NOT_RUN}."


def advice(found: dict[str, Found]) -> str:
    """What a user should choose today: a method that helps in some row, and hurts in none after as
    long a training."""
    judged = {
        kind: {
            one: method
            for one in found.values()
            if one.is_row
            for method in one.methods(kind)[:1]
            if one.gain(method).n >= FEWEST
        }
        for kind in ("branches", "pruned")
    }
    count = sum(map(len, judged.values()))
    if not count:
        return (
            f"No row of the table has {FEWEST} orders of the classes yet, so nothing is "
            "recommended on its account: start with `simclr`, and put `branches:0.1` beside it "
            "with `rarefy pretrain DATA --method simclr,branches:0.1 --seeds 4`, which tells on "
            "your own data whether it pays."
        )
    level = 1 - CHANCE / count  # with many rows some interval lies above 0 by luck (Bonferroni)
    for rows in judged.values():
        helps = {one: way for one, way in rows.items() if one.gain(way, level=level).low > 0}
        hurts = {one: way for one, way in rows.items() if one.gain(way).high < 0}
        # (worse after a shorter training is a condition, not an objection)
        if helps and max([0, *(one.epochs for one in hurts)]) < min(one.epochs for one in helps):
            return _recommended(found, helps, hurts, len(rows))
    return (
        "Plain `simclr`: no pruned method does better than luck in some row without doing worse in "
        "another. Put `branches:0.1` beside it on your own data before you believe either."
    )


def _recommended(
    found: dict[str, Found], helps: dict[Found, str], hurts: dict[Found, str], count: int
) -> str:
    """A method with its conditions: where it gains, and what speaks against it."""
    methods = list(dict.fromkeys(helps.values()))
    names = " or ".join(f"`{method}` ({spoken(method)})" for method in methods)
    where, worse = (
        ", ".join(f"`{one.scale}` {one.gain(way).mean:+.2f}" for one, way in these.items())
        for these in (helps, hurts)
    )
    lines = [
        f"{names} where a linear probe will follow and training is long: over SimCLR with as many "
        f"epochs it gains more than luck in {len(helps)} of {count} rows ({where} points) and "
        "loses more than luck in "
        + (f"{len(hurts)} ({worse}). " if worse else "none. ")
        + "Else `simclr`. Put both side by side on your own data: "
        f"`rarefy pretrain DATA --method simclr,{methods[0]} --seeds 4 --epochs "
        f"{min(one.epochs for one in helps)}`."
    ]
    for method in methods:
        for data in sets_of(found):
            gains = {at: one.gain(method) for at, one in by_length(found, data, method).items()}
            told = [
                f"{at} epochs {shown(gain, True)} ({orders(gain.n)})" for at, gain in gains.items()
            ]
            if len(told) > 1:
                lines.append(f"By length, on {SET_NAMES[data]}: {'; '.join(told)}.")
    for one, method in helps.items():
        lines.append(_by_others(one, method))
        gap = one.gain(method, "delta_20")
        if gap.low > 0:
            lines.append(
                "By the linear probe it is no cure for the tail: the gap between head and tail "
                f"(Delta_20) grows (`{one.scale}` {shown(gap, True)})."
            )
    return "\n- ".join(line for line in lines if line).replace("\n", "\n\n", 1)


def _by_others(one: Found, method: str) -> str:
    """What the other ways to judge say of a row."""
    said: dict[str, list[str]] = {"a gain": [], "no certain difference": [], "a loss": []}
    for protocol in one.protocols:
        gain = one.gain(method, protocol=protocol)
        if protocol != JUDGE and gain.n > 1:
            word = "a gain" if gain.low > 0 else "a loss" if gain.high < 0 else None
            parts = {name: one.gain(method, name, protocol) for name in ("many", "medium", "few")}
            sure = [
                f"{name} {shown(part, True)}"
                for name, part in parts.items()
                if part.low > 0 or part.high < 0
            ]
            words = f" ({'; '.join(sure)})" if sure else ""
            said[word or "no certain difference"].append(
                f"{protocol_words(protocol)} {shown(gain, True)}{words}"
            )
    heard = [f"{word} by {', '.join(these)}" for word, these in said.items() if these]
    return f"Other judges of `{one.scale}`: {'; '.join(heard)}." if heard else ""


def against_published(found: dict[str, Found]) -> str:
    """Which side a gain that differs from the published one comes from, at every length."""
    said = []
    for row in TABLE_2:
        names = {f"{row.data}-rho{row.rho:g}-{epochs}" for epochs in EPOCHS}
        if row.rho == LARGEST:
            names |= {f"{row.data}-branches-{epochs}" for epochs in EPOCHS}
        here = [one for scale, one in found.items() if scale in names]
        for one in sorted(here, key=lambda one: one.epochs):
            # (two branches without masks are no published method)
            masked = [name for name in one.methods("branches") if Method.parse(name).masked]
            for method in masked[:1]:
                plain, pruned = one.both(method)
                if not np.isfinite(plain):
                    continue
                count = orders(one.gain(method).n)
                said.append(
                    f"- {one.name}, {one.epochs} epochs ({count}): {plain:.2f} → {pruned:.2f} "
                    f"here, {row.plain:.2f} → {row.pruned:.2f} published: SimCLR is "
                    f"{_off(plain - row.plain)} the published baseline, two branches "
                    f"{_off(pruned - row.pruned)} the published method."
                )
    return "\n".join(said) or "Not run yet."


def _off(points: float) -> str:
    return f"{abs(points):.2f} points {'above' if points > 0 else 'below'}"


def growth(found: dict[str, Found]) -> str:
    """P8 over the rows that were run: does the gain grow with rho?"""
    said = []
    for data in ("cifar10", "cifar100"):
        for epochs in EPOCHS:
            here = {
                one.rho: one
                for one in found.values()
                if one.is_row and one.data == data and one.epochs == epochs
            }
            for kind in ("pruned", "branches"):
                series = {
                    rho: one.values(method) - one.values(BASELINE)
                    for rho, one in sorted(here.items())
                    for method in one.methods(kind)[:1]
                }
                if len(series) < 2:
                    continue
                seeds = min(map(len, series.values()))
                values = np.stack([gains[:seeds] for gains in series.values()], axis=1)
                values = values[np.isfinite(values).all(axis=1)]
                trend = spearman_trend(np.array(list(series)), values, within_rows=True)
                identity = ("P8", STUDY, "rows", f"{data}, {epochs} epochs")
                verdict = judge_trend(identity, trend, "increasing")
                levels = ", ".join(f"{rho:g}" for rho in series)
                said.append(
                    f"- {SET_NAMES[data]}, {epochs} epochs, {NAMES[kind]}: {verdict.outcome} "
                    f"(Spearman {trend.rho:+.2f}, p {trend.p_value:.2g}, {orders(len(values))}, "
                    f"rho {levels})"
                )
    return "\n".join(said) or f"Two imbalances at one number of epochs are needed: {NOT_RUN}."


def chosen_share(found: dict[str, Found]) -> str:
    """Whether the rows keep what held-out images say."""
    said = []
    for data, method in {row["data"]: way_of(row, "pruned") for row in ROWS}.items():
        one = found.get(f"{data}-keep-100")
        if one is None:
            said.append(f"{SET_NAMES[data]}: {NOT_RUN}; the rows have {method}.")
            continue
        best = max(one.methods("pruned"), key=lambda name: np.nan_to_num(one.held_out(name)))
        words = "as the rows have it" if best == method else f"but the rows have {method}"
        said.append(f"{SET_NAMES[data]}: {best}, {words}.")
    return " ".join(said)
