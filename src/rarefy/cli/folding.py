"""Help in two sizes: ``--help`` is one screen, ``--help-all`` has every option under its heading.

An option without a heading (``rich_help_panel``) is for most people and stands on the first screen;
one with a heading is folded away there.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

PANELS = {
    "The laboratory: do the papers hold?": (
        *("demo", "studies", "run", "explore", "claims", "verify", "report"),
    ),
    "Your own data": (
        *("checkup", "influence", "clean", "train", "pretrain", "probe", "granularity", "data"),
    ),
    "Files of runs": ("check",),
}
"""The verbs, in the order in which ``rarefy --help`` shows them."""

IMAGES = "Reading the data"
TRAINING = "How it is trained"
PRUNING = "How it is pruned"
NOISE = "Noise in the images"
TAIL = "Making it long-tailed"
JUDGING = "How it is judged"
LABELS = "Which labels are compared"
SCORING = "How samples are scored"
MACHINE = "The machine"
FILES = "What is written"


class GroupedVerbs(TyperGroup):
    """``rarefy --help``: the verbs under headings."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = [name for names in PANELS.values() for name in names]
        known = super().list_commands(ctx)
        return sorted(known, key=lambda name: order.index(name) if name in order else len(order))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        for panel, names in PANELS.items():
            if found is not None and cmd_name in names:
                found.rich_help_panel = panel  # type: ignore[attr-defined]
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _unmark_flags(self, ctx)
        super().format_help(ctx, formatter)


class FoldedVerb(TyperCommand):
    """``rarefy VERB --help``: the options that have no heading."""

    show_all = False

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for one in self.params:
            if one.nargs == -1:
                # typer 0.26 looks elsewhere (in a file) for a list that was not typed only where
                # it might be in the environment
                one.envvar = []

    def format_help(self, ctx: Any, formatter: Any) -> None:
        folded = [one for one in self.params if getattr(one, "rich_help_panel", None)]
        folded = [] if self.show_all else [one for one in folded if not getattr(one, "hidden", 0)]
        headings = dict.fromkeys(str(getattr(one, "rich_help_panel", "")) for one in folded)
        if folded:
            self.epilog = (
                f"[bold]rarefy {self.name} --help-all[/] shows {len(folded)} more options: "
                f"{'; '.join(headings)}."
            )
        _unmark_flags(self, ctx)
        try:
            for one in folded:
                one.hidden = True  # type: ignore[attr-defined]
            super().format_help(ctx, formatter)
        finally:
            self.epilog = None
            for one in folded:
                one.hidden = False  # type: ignore[attr-defined]


def _unmark_flags(command: Any, ctx: Any) -> None:
    """Nothing stands behind a flag, so its help must not say <bool>."""
    for one in command.get_params(ctx):
        if getattr(one, "is_flag", False):
            one.metavar = ""


def show_whole_help(context: typer.Context, asked: bool) -> None:
    """The callback of ``--help-all``."""
    if asked and not context.resilient_parsing:
        assert isinstance(context.command, FoldedVerb)
        context.command.show_all = True
        try:
            typer.echo(context.get_help())
        finally:
            context.command.show_all = False
        raise typer.Exit()
