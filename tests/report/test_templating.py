"""One guard for the templates of all pages."""

from __future__ import annotations

from markupsafe import Markup

from rarefy.report.templating import template


def test_pages_show_names_and_no_marks() -> None:
    environment = template("checkup.html.j2").environment
    name = "\u202egpj.exe\u200f\u2066<script>\x1b"
    shown = environment.from_string("{{ name }} {{ ours }}")
    assert shown.render(name=name, ours=Markup("<b>\n\t</b>")) == (
        r"\u202egpj.exe\u200f\u2066&lt;script&gt;\x1b" + " <b>\n\t</b>"
    )
