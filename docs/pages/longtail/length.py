"""What the length of a training does: gains by the number of epochs, and where they come from."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from pages.longtail.rows import BASELINE, JUDGE, SET_NAMES, Found, by_length, sets_of
from pages.markdown import table
from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.longtail.table.study import BRANCHES
from rarefy.studies.longtail.words import protocol_words, spoken

RUN_AND_JUDGED = ("algorithm", "seeds", "protocols")


def length_table(found: dict[str, Found]) -> str:
    """Two branches against SimCLR by the number of epochs."""
    rows = [
        [
            one.name,
            epochs,
            spoken(method),
            f"{one.mean(BASELINE):.2f}",
            *(one.gain(method, protocol=each).shown() for each in ("linear", "few", "knn")),
            one.gain(method).counted,
        ]
        for data in sets_of(found)
        for method in _branches(found, data)
        for epochs, one in by_length(found, data, method).items()
    ]
    columns = ("set", "epochs", "method", "SimCLR, linear", "gain, linear", "gain, few labels")
    return table((*columns, "gain, nearest neighbours", "n"), rows)


def length_picture(found: dict[str, Found]) -> Picture:
    """Gains over SimCLR by the number of epochs."""
    panels = []
    for data in sets_of(found):
        curves, counts = [], set()
        for method in _branches(found, data):
            there = by_length(found, data, method)
            gains = [one.gain(method) for one in there.values()]
            mean, low, high = (
                np.array([getattr(gain.interval, name) for gain in gains])
                for name in ("mean", "low", "high")
            )
            epochs = np.array(list(there), float)
            curves.append(Curve(spoken(method), epochs, mean, low, high, role=method))
            name = next(iter(there.values())).name
            counts |= {len(gain.values) for gain in gains}
        if not any(len(curve.x) > 1 for curve in curves):  # (a single length is no course)
            continue
        ends = np.array([min(curve.x[0] for curve in curves), max(curve.x[-1] for curve in curves)])
        curves.insert(0, Curve("SimCLR", ends, 0 * ends, role=BASELINE, style="dotted"))
        numbers = " to ".join(map(str, dict.fromkeys((min(counts), max(counts)))))
        name += f", {numbers} order" + "s" * (max(counts) > 1)
        panels.append(Lines(curves, "epochs", "gain over SimCLR, points", name, x_log=True))
    return Picture("length", "How long one trains", "", panels)


def where_from(found: dict[str, Found]) -> str:
    """From the length at which SimCLR is best (by held-out training images: test images choose
    nothing) to the longest: what SimCLR loses, what the masked network wins, over the orders of the
    classes that all lengths have."""
    said = []
    for data, method, there in _by_set(found):
        plain, masked = (
            {epochs: one.mean(way) for epochs, one in there.items()} for way in (BASELINE, method)
        )
        held_out = {epochs: one.held_out(BASELINE) for epochs, one in there.items()}
        best, longest = max(held_out, key=held_out.__getitem__), max(plain)
        where = f"- {SET_NAMES[data]} ({_orders(there)}): SimCLR is best after {best} epochs"
        if best == longest:
            said.append(
                f"{where}, the longest training: nothing is lost yet that masks could keep, and "
                f"{spoken(method)} are at {masked[best] - plain[best]:+.2f} points."
            )
            continue
        lost, won = plain[best] - plain[longest], masked[longest] - masked[best]
        said.append(
            f"{where} ({plain[best]:.2f}) and has {plain[longest]:.2f} after {longest}; "
            f"{spoken(method)} go from {masked[best]:.2f} to {masked[longest]:.2f}. Of the "
            f"{lost + won:.2f} points by which the gain grows SimCLR loses {lost:.2f}, and two "
            f"branches add {won:.2f}.{_not_seen(there[best], there[longest])}"
        )
    return "\n".join(said) or "Two lengths of one set are needed: not run yet."


def _not_seen(best: Found, longest: Found) -> str:
    """That SimCLR's own training does not show what its features lose."""
    (loss, less), (apart, nearer) = (
        [_last(one, BASELINE, name) for one in (best, longest)]
        for name in ("epoch_loss", "epoch_alignment")
    )
    if less >= loss or nearer >= apart:
        return ""
    words = (
        f" SimCLR's loss does not show it (from {loss:.2f} to {less:.2f}), nor does the distance "
        f"of two views (from {apart:.2f} to {nearer:.2f})."
    )
    seen = 100 * longest.of(BASELINE, "watched_knn").mean("seed").values
    top = int(np.argmax(seen))
    if top + 1 < len(seen):
        words += (
            f" Neighbours of held-out images do: right in {seen[top]:.1f} % after "
            f"{longest.results['watched_epoch'].values[top]} of {longest.epochs} epochs, in "
            f"{seen[-1]:.1f} % at the end; `rarefy pretrain` looks at them on the way."
        )
    return words


def repeated(found: dict[str, Found]) -> str:
    """The same training in two runs: differences that mean nothing. (A cell whose loss is the same
    in every epoch was not run twice: a run takes over what other scales have.)"""
    said = []
    for one, two in combinations(found.values(), 2):
        if _setting(one) != _setting(two):
            continue
        seeds = sorted({*one.results["seed"].values} & {*two.results["seed"].values})
        for way in (way for way in one.ways if way in two.ways):
            losses = (each.of(way, "epoch_loss").sel(seed=seeds) for each in (one, two))
            anew = np.array(seeds)[(next(losses) != next(losses)).any("epoch").values]
            told = []
            for protocol in (JUDGE, "knn"):
                values = (
                    each.at(anew.tolist()).values(way, protocol=protocol) for each in (one, two)
                )
                apart = abs(next(values) - next(values))
                numbers = ", ".join(f"{by:.2f}" for by in apart[np.isfinite(apart)])
                told += [f"{numbers} by {protocol_words(protocol)}"] if numbers else []
            if told:
                where = f"({spoken(way)}, {one.name}, {one.epochs} epochs)"
                said.append(f"{' and '.join(told)} {where}")
    words = "Two runs of one training differed by these points, and smaller gains mean nothing: "
    return f"{words}{'; '.join(said)}." if said else ""


def _setting(one: Found) -> dict[str, Any]:
    """Everything about a training but which of them were run, and how they were judged."""
    told = one.study.parameters().items()
    return {name: value for name, value in told if name not in RUN_AND_JUDGED}


def course_picture(found: dict[str, Found]) -> Picture:
    """What both methods have learnt after trainings of every length, and on the way of the
    longest."""
    panels = []
    for _, method, there in _by_set(found):
        longest = there[max(there)]
        ends, ways = [], []
        for way in (BASELINE, method):
            values = np.stack([one.values(way) for one in there.values()], axis=1)
            ends.append(mean_curve(spoken(way), list(there), values, way))
            seen = 100 * longest.of(way, "watched_knn").transpose("seed", ...).values
            epochs = longest.results["watched_epoch"].values.astype(float)
            ways.append(mean_curve(spoken(way), epochs, seen, way))
        name = f"{longest.name}, {_orders(there)}"
        panels += [
            Lines(ends, "epochs of the whole training", "linear probe, test, %", name, x_log=True),
            Lines(ways, f"epoch (of {longest.epochs})", "neighbours, held-out, %", "on the way"),
        ]
    return Picture("course", "Where the gain comes from", "", panels)


def _by_set(found: dict[str, Found]) -> list[tuple[str, str, dict[int, Found]]]:
    """Sets with several lengths: the method with most of them (of several that of the rows), and
    its results by length, with the orders of the classes that all lengths have."""
    sets = []
    for data in sets_of(found):
        lengths = {way: by_length(found, data, way) for way in _branches(found, data)}
        if lengths:
            most = max(lengths, key=lambda way: (len(lengths[way]), way == BRANCHES))
            there, shared = lengths[most], _shared(lengths[most], most)
            if len(there) > 1 and shared:
                sets.append((data, most, {at: one.at(shared) for at, one in there.items()}))
    return sets


def _branches(found: dict[str, Found], data: str) -> list[str]:
    """Methods with two branches, in the order in which they come."""
    names = [name for one in found.values() for name in one.methods("branches") if one.data == data]
    return [name for name in dict.fromkeys(names) if by_length(found, data, name)]


def _shared(there: dict[int, Found], method: str) -> list[int]:
    """Orders of the classes in which both methods came to their end at every length."""

    def ended(one: Found) -> set[int]:
        values = np.stack([one.values(way) for way in (BASELINE, method)])
        return {*one.results["seed"].values[np.isfinite(values).all(axis=0)]}

    return sorted(set.intersection(*map(ended, there.values())))


def _orders(there: dict[int, Found]) -> str:
    return next(iter(there.values())).gain(BASELINE).counted


def _last(one: Found, way: str, name: str) -> float:
    return float(one.of(way, name).isel(epoch=-1).mean())
