"""`python -m dr3` is the `dr3` command."""

import os
import sys

# Python puts the current folder first: a file there called numpy.py, which came with some data, would be run.
if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from dr3.cli import main

main()
