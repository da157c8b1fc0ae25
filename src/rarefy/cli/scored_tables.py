"""What is printed about a scored set: its classes, its most atypical samples, or both as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarefy.core.tables import Table, make_table
from rarefy.core.text import printable

if TYPE_CHECKING:
    import pandas as pd

    from rarefy.tools.influence.scored_samples import ScoredSamples

TOP = 10
"""Samples named on the terminal."""
WORDS = "words: what a curator should look at a sample for, with their numbers of samples"


def describe(scored: ScoredSamples, written: dict[str, Path]) -> dict[str, Any]:
    table = scored.table
    words = table["triage"].value_counts()
    columns = ["id", "name", "label", "influence", "percentile"]
    return {
        "samples": len(table),
        "classes": len(scored.samples.classes),
        "undefined": int(table["influence"].isna().sum()),
        "triage": {word: int(count) for word, count in words.items() if word},
        "label_issues": int(table["label_issue"].sum()),
        "doubts": _json_rows(doubts_of(table)[list(DOUBTS)]),
        "highest": highest_of(table)[columns].to_dict("records"),
        "notes": list(table.attrs["notes"]),
        "seconds": table.attrs["seconds"],
        "written": {what: str(path) for what, path in written.items()},
    }


def highest_of(table: pd.DataFrame) -> pd.DataFrame:
    """Those with the most of their class's covariance norm for one sample of it: raw scores of
    different classes cannot be compared, nor can shares of classes of different sizes."""
    moved = table["own"] + table["shared"]
    times = moved / moved.groupby(table["label"]).transform("mean")
    return table.assign(times=times).dropna(subset=["times"]).nlargest(TOP, "times")


DOUBTS = ("id", "name", "label", "given_probability", "suggested_label", "suggested_probability")


def doubts_of(table: pd.DataFrame) -> pd.DataFrame:
    from rarefy.tools.influence.triage import doubts_in

    return doubts_in(table).head(TOP)


def _json_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """What is missing is null: JSON has no NaN."""
    return table.astype(object).where(table.notna(), None).to_dict("records")


def doubts_table(table: pd.DataFrame) -> Table:
    columns = {"sample": "", "label": "", "its probability": ".1%", "suggested": ""}
    columns |= {"probability": ".1%", "neighbours disagree": ".0%"}
    rows = [
        (
            printable(str(row.name or row.index)),
            *(str(row.label), row.given_probability, str(row.suggested_label)),
            *(row.suggested_probability, row.disagreement),
        )
        for row in doubts_of(table).itertuples()
    ]
    caption = "probabilities by classifiers that have not seen the sample"
    if table["given_probability"].isna().all():
        caption = "no label was checked: in doubt by their neighbours alone"
    return make_table(columns, rows, "labels most in doubt", caption)


def advice(table: pd.DataFrame) -> str:
    """What to do with the labels, in a sentence."""
    checked = int(table["given_probability"].notna().sum())
    doubted = table[table["label_issue"]]
    if not checked:
        return f"no label was checked; by their neighbours alone {len(doubted):,} are in doubt"
    if not len(doubted):
        return f"no label is in doubt, of {checked:,} checked"
    shares = table.groupby("label", sort=False)["label_issue"].mean()
    worst, *others = map(str, shares.index[shares == shares.max()])
    inside = f"{doubted['label'].eq(worst).sum()} of {table['label'].eq(worst).sum()}"
    alike = f", as many per sample in {len(others)} more" if others else ""
    from rarefy.tools.influence.label_check import KNOWN

    several = "label is" if len(doubted) == 1 else "labels are"
    known = table.attrs["label_accuracy"] >= KNOWN
    first = "look at these first" if known else "most are not wrong, see the notes"
    return (
        f"{len(doubted):,} {several} in doubt, of {checked:,} checked; most in class {worst!r} "
        f"({inside}{alike}): {first}"
    )


def classes_table(scored: ScoredSamples) -> Table:
    # what reading them had to say was told before
    notes = scored.table.attrs["notes"][len(scored.samples.notes) :]
    words = [word for word in scored.words() if word]
    shown = scored.by_class()
    rows = list(shown[: 2 * TOP].itertuples(index=False, name=None))
    if len(shown) > 2 * TOP:
        rows.append((f"... {len(shown) - 2 * TOP:,} more", *[""] * (len(words) + 2)))
    return make_table(
        {"class": "", **dict.fromkeys(("samples", "undefined", *words), ",")},
        rows,
        f"{scored.samples.name}: {len(scored.table):,} samples, "
        f"{len(scored.samples.classes):,} classes",
        "\n".join((WORDS, *notes)),
    )


def top_table(table: pd.DataFrame) -> Table:
    columns = {"sample": "", "class": "", "influence": ".4g", "times": ".1f"}
    columns |= {"neighbours disagree": ".0%", "look for": ""}
    rows = [
        (
            printable(str(row.name or row.index)),
            *(str(row.label), row.influence, row.times, row.disagreement, str(row.triage)),
        )
        for row in highest_of(table).itertuples()
    ]
    caption = "times: what the class's mean sample adds to its covariance"
    return make_table(columns, rows, "most atypical", caption)
