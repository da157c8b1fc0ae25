"""What writes the pages of the documentation that no person writes: a module per page.
``docs/make.py`` is its command line."""

from pathlib import Path

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
