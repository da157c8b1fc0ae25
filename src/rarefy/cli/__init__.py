"""The command line: ``frame`` holds the app, the other files its verbs."""

from rarefy.cli import checking as checking
from rarefy.cli import checkup as checkup
from rarefy.cli import claiming as claiming
from rarefy.cli import cleaning as cleaning
from rarefy.cli import exploring as exploring
from rarefy.cli import granularity as granularity
from rarefy.cli import images as images
from rarefy.cli import influence as influence
from rarefy.cli import listing as listing
from rarefy.cli import moving as moving
from rarefy.cli import pretraining as pretraining
from rarefy.cli import probing as probing
from rarefy.cli import running as running
from rarefy.cli import showing as showing
from rarefy.cli import training as training
from rarefy.cli import verifying as verifying
from rarefy.cli.frame import app as app
from rarefy.cli.frame import main as main
