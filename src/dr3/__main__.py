"""`python -m dr3` is the `dr3` command."""

from dr3.cli import main

main()
