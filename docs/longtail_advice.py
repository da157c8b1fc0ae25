"""What the rows of 000 Table 2 say, in words: verdicts, advice, the published numbers beside."""

from __future__ import annotations

import numpy as np
from longtail_rows import BASELINE, JUDGE, NOT_RUN, Found, orders, set_name, shown

from rarefy.measure.statistics import Interval, spearman_trend
from rarefy.studies.longtail._published import TABLE_2
from rarefy.studies.longtail._words import protocol_words, spoken
from rarefy.studies.longtail.longtail_table import ALGORITHM_1, EPOCHS
from rarefy.tools.longtail.readings import LONG_TAIL, readings
from rarefy.train.contrast.method import Method

NAMES = {"pruned": "Algorithm 1 (one masked branch)", "branches": "Two branches (SDCLR)"}
FEWEST = 3
"""Orders of the classes from which a choice is recommended."""


def verdict_of(found: dict[str, Found], kind: str) -> str:
    """One reading of the method, in words."""
    said = []
    for one in found.values():
        for method in one.methods(kind)[:1] if "-rho" in one.scale else ():
            gain = one.gain(method)
            word = "open"
            if gain.n > 1:
                word = "helps" if gain.low > 0 else "hurts" if gain.high < 0 else "open"
            said.append(f"{one.name}, {one.epochs} epochs: {word}, {shown(gain, True)} points")
    words = "; ".join(said) if said else NOT_RUN
    return f"- **{NAMES[kind]}**: {words}."


def advice(found: dict[str, Found]) -> str:
    """What a user should choose today: a method that helps in some row and hurts in none."""
    rows = [one for one in found.values() if "-rho" in one.scale]
    if not rows:
        return (
            "No row of the table has been run with this code yet, so nothing is recommended on its "
            "account: start with `simclr`, and put `branches:0.1` beside it with "
            "`rarefy pretrain DATA --method simclr,branches:0.1 --seeds 4`, which tells on your "
            "own data whether it pays."
        )
    for kind in ("branches", "pruned"):
        gains = {
            one: (method, one.gain(method))
            for one in rows
            for method in one.methods(kind)[:1]
            if one.gain(method).n >= FEWEST
        }
        helps = {one: gain for one, (_, gain) in gains.items() if gain.low > 0}
        hurts = {one: gain for one, (_, gain) in gains.items() if gain.high < 0}
        # (worse after a shorter training is a condition, not an objection)
        if helps and max([0, *(one.epochs for one in hurts)]) < min(one.epochs for one in helps):
            best = max(helps, key=lambda one: one.epochs)
            return _recommended(gains[best][0], found, helps, hurts, len(gains))
    return (
        "Plain `simclr`: no pruned method does better than luck in some row without doing worse in "
        "another. Put `branches:0.1` beside it on your own data before you believe either."
    )


def _recommended(
    method: str,
    found: dict[str, Found],
    helps: dict[Found, Interval],
    hurts: dict[Found, Interval],
    count: int,
) -> str:
    """A method with its conditions: where it gains, and what speaks against it."""
    where = ", ".join(f"`{one.scale}` {gain.mean:+.2f}" for one, gain in helps.items())
    worse = ", ".join(f"`{one.scale}` {gain.mean:+.2f}" for one, gain in hurts.items())
    least = min(one.epochs for one in helps)
    lines = [
        f"`{method}` ({spoken(method)}) where a linear probe will follow and training has {least} "
        f"epochs or more: over SimCLR at the same number it gains more than luck in {len(helps)} "
        f"of {count} rows ({where} points) and loses more than luck in "
        + (f"{len(hurts)} ({worse})." if worse else "none.")
    ]
    shorter = [
        f"after {one.epochs} epochs the gain is {shown(one.gain(method), True)} "
        f"({orders(one.gain(method).n)})"
        for one in sorted(found.values(), key=lambda one: one.epochs)
        if one.epochs < least
        and one.data in {row.data for row in helps}
        and one not in hurts
        and method in one.methods(Method.parse(method).kind)
        and not one.gain(method).low > 0
    ]
    if shorter:
        lines.append(f"It takes time: {'; '.join(shorter)}.")
    lines += [
        f"On {set_name(data)} it gains at none of {len(here)} lengths tried."
        for data in dict.fromkeys(one.data for one in found.values())
        for here in [[one for one in found.values() if one.data == data and one.gain_count(method)]]
        if here and not any(one.gain(method).low > 0 for one in here)
    ]
    others = [
        f"{protocol_words(protocol)} {shown(gain, True)}"
        for one in helps
        for protocol in map(str, one.results["protocol"].values)
        if protocol != JUDGE
        for gain in [one.gain(method, protocol=protocol)]
        if not gain.low > 0
    ]
    if others:
        lines.append(f"By other judges no gain is certain: {'; '.join(others)}.")
    gaps = [gain for one in helps for gain in [one.gain(method, "delta_20")] if gain.low > 0]
    if gaps:
        words = ", ".join(shown(gain, True) for gain in gaps)
        lines.append(
            f"It is no cure for the tail: the gap between head and tail (Delta_20) grows ({words})."
        )
    lines.append(
        "Check on your own data with "
        f"`rarefy pretrain DATA --method simclr,{method} --seeds 4`; else take `simclr`."
    )
    return " ".join(lines)


def against_published(found: dict[str, Found]) -> str:
    """Which side a gain that differs from the published one comes from."""
    said = []
    for row in TABLE_2:
        for epochs in EPOCHS:
            one = found.get(f"{row.data}-rho{row.rho:g}-{epochs}")
            for method in one.methods("branches")[:1] if one else ():
                plain, pruned = (one.mean(way, "overall") for way in (BASELINE, method))
                said.append(
                    f"- {one.name}, {epochs} epochs: {plain.mean:.2f} → {pruned.mean:.2f} here, "
                    f"{row.plain:.2f} → {row.pruned:.2f} published: SimCLR is "
                    f"{_off(plain.mean - row.plain)} the published baseline, two branches "
                    f"{_off(pruned.mean - row.pruned)} the published method."
                )
    return "\n".join(said) if said else NOT_RUN[0].upper() + NOT_RUN[1:] + "."


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
                if one.scale.startswith(f"{data}-rho") and one.scale.endswith(f"-{epochs}")
            }
            for kind in ("pruned", "branches"):
                series = {
                    rho: (told.sel(way=method) - told.sel(way=BASELINE)).values.reshape(-1)
                    for rho, one in sorted(here.items())
                    for method in one.methods(kind)[:1]
                    for told in (readings(one.results, JUDGE)["overall"].sel(images=LONG_TAIL),)
                }
                if len(series) < 2:
                    continue
                seeds = min(map(len, series.values()))
                values = np.stack([gains[:seeds] for gains in series.values()], axis=1)
                trend = spearman_trend(np.array(list(series)), values, within_rows=True)
                levels = ", ".join(f"{rho:g}" for rho in series)
                said.append(
                    f"- {set_name(data)}, {epochs} epochs, {NAMES[kind]}: Spearman "
                    f"{trend.rho:+.2f} (p {trend.p_value:.2g}, {seeds} orders, rho {levels})"
                )
    return (
        "\n".join(said)
        if said
        else "Two imbalances at one number of epochs are needed: " + NOT_RUN + "."
    )


def chosen_share(found: dict[str, Found]) -> str:
    """Whether the rows keep what held-out images say."""
    said = []
    for data, method in ALGORITHM_1.items():
        one = found.get(f"{data}-keep-100")
        if one is None:
            said.append(f"{set_name(data)}: {NOT_RUN}; the rows have {method}.")
            continue
        tried = one.methods("pruned")
        held_out = one.results["validation"].sel(protocol=JUDGE, images=LONG_TAIL)
        best = max(
            tried, key=lambda name: float(np.nanmax([-1, *held_out.sel(way=name).values.flat]))
        )
        words = "as the rows have it" if best == method else f"but the rows have {method}"
        said.append(f"{set_name(data)}: {best}, {words}.")
    return " ".join(said)
