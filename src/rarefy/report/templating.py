"""Templates of all pages: what is printed is escaped, what is missing is an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from rarefy.core.papers import PAPERS
from rarefy.core.text import visible
from rarefy.report.formulas import mathml


def template(name: str, **filters: Callable[[Any], str]) -> Template:
    """One of ``rarefy/report/templates`` by its file; ``filters`` by their names in it."""
    environment = Environment(
        loader=PackageLoader("rarefy.report"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(name)


def typeset(text: str) -> Markup:
    """Our own words with formulas typeset and papers called by name."""

    def named(found: re.Match[str]) -> str:
        short = PAPERS[found[1]].short
        before = text[: found.start()].rstrip()
        return short[0].upper() + short[1:] if not before or before[-1] in ".:" else short

    return mathml(visible(re.sub(r"(?<![\w.])(00[0-4])(?![\w.]\d)", named, text)))


def _shown(value: Any) -> Any:
    """Names of strangers may turn the direction of what follows; what we wrote as HTML stays."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
