"""What goes wrong because of an input is said in one sentence."""


class UserError(Exception):
    """A mistake in what was asked for or handed over, not in the program.

    The message is one sentence that names the thing (file, field, row, flag) and, where there is one, the next step.
    The command line prints it without a traceback and exits with code 2.
    """
