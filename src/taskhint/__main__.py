"""python -m taskhint"""

from __future__ import annotations

import sys

from taskhint.cli import main

sys.exit(main())
