"""``python -m rarefy`` is the same as ``rarefy``."""

import sys

from rarefy.cli import run

if __name__ == "__main__":
    sys.exit(run())
