"""What makes the site of pages, docstrings and commands: used by `docs/conf.py` alone."""
