"""``python -m powerlab.cli``."""

import sys

from powerlab.cli import main

sys.exit(main())
