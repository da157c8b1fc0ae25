"""``python -m rarefy`` is the same as ``rarefy``."""

import sys

from rarefy.cli import main

if __name__ == "__main__":
    sys.exit(main())
