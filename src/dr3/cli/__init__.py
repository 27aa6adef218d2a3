"""The command line: parse, call the library, print.

Each command is a module here with `main(arguments) -> exit code`, imported only when it is called: `dr3 --help` must
not wait for JAX.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from io import TextIOWrapper

from dr3 import __version__

__all__ = ["COMMANDS", "invoke"]

COMMANDS = {
    "train": "train a population on logged data, with or without a regularizer; rerunning resumes",
    "compare": "the same training with different regularizers: returns, gains with intervals, instruments, curves",
    "sweep": "a grid of trainings from a file, on all cores or on a Ray cluster; rerunning does what is missing",
    "cure": "which published remedy helps this critic: all of them side by side, and one page that answers",
    "tune": "choose DR3's coefficient without a simulator: the smallest whose Q-values do not diverge",
    "data": "describe logged data, convert it, or collect it by acting",
    "play": "a moving picture of a policy in a world",
    "run": "look at a run: its digest; hand it to TensorBoard or W&B",
    "diagnose": "what is wrong with a critic, since which step, and what to try",
    "select": "choose a checkpoint without a simulator, by a declared rule",
    "evaluate": "what policies are worth, judged by logged data alone: estimates with intervals",
    "export": "a policy as one ONNX file (or StableHLO, or weights), with a contract beside it",
    "verify": "replay logged rows through an exported policy, without JAX: the same actions and values?",
    "report": "one HTML file about runs: verdicts, curves, intervals, configuration",
    "watch": "the report of a run while it trains, in the browser",
    "reproduce": "every figure and table of the paper: run it, judge its claim, at one of three scales",
    "demo": "the paper's gridworld evidence and DR3 on a game's data, in under three minutes",
    "theory": "check the paper's theory by computation, or watch it beside a run",
    "stats": "results files: intervals, probability of improvement, the paper's numbers beside them",
    "paper": "the paper's own tables as data, and an audit of them",
}

EXAMPLES = """\
examples:
  dr3 demo
  dr3 data describe grid16smoothobs
  dr3 train dqn --data grid16smoothobs --regularizer dr3:0.03 --steps 5000 --seeds 3 --out runs/first
  dr3 train dqn --help"""


def main() -> None:
    """The `dr3` command. A user's mistake is one sentence and exit code 2; a stop by Ctrl-C is exit code 130."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that knows no γ gets a question mark, not a traceback
            stream.reconfigure(errors="replace")
    try:
        code = invoke(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:  # the reader of a pipe left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except SystemExit as left:  # rich has seen that reader leave, and ends with 1
        code = 0 if isinstance(left.__context__, BrokenPipeError) else left.code
    raise SystemExit(code)


def invoke(arguments: list[str]) -> int:
    """Carry out one command line. A user's mistake is said in one sentence.

    Args:
        arguments: What follows `dr3`, word by word.

    Returns:
        The exit code.
    """
    from dr3.errors import UserError

    try:
        return carry_out(arguments)
    except UserError as mistake:
        sentence = str(mistake)
    except BrokenPipeError:
        raise
    except OSError as error:  # what no check has foreseen: a disk that is full, a file that may not be read
        sentence = f"{error.filename}: {error.strerror}." if error.filename and error.strerror else f"{error}."
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "Out of memory" not in str(error):  # as XLA says it
            raise
        sentence = "The memory is too small for this; ask for a smaller batch, network, population or part of the data."
    print(f"dr3: {sentence}", file=sys.stderr)
    return 2


def carry_out(arguments: list[str]) -> int:
    """The same, but a mistake is a `UserError`."""
    from dr3.compiled_programs import keep_compiled_programs
    from dr3.errors import UserError, did_you_mean
    from dr3.plugins import load_plugin

    arguments, plugins, force = _of_every_command(arguments)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"dr3 {__version__}")
        return 0
    command, *rest = arguments
    if command not in COMMANDS:
        raise UserError(
            f"There is no command {command!r}; there are {', '.join(COMMANDS)}{did_you_mean(command, COMMANDS)}"
        )
    keep_compiled_programs()
    for module in plugins:
        load_plugin(module)
    with _forcing() if force else nullcontext():
        return import_module(f"dr3.cli.{command}").main(rest)


@contextmanager
def _forcing() -> Generator[None]:
    """In the environment, so that workers know it too."""
    os.environ["DR3_FORCE"] = "1"
    try:
        yield
    finally:
        del os.environ["DR3_FORCE"]


def _of_every_command(arguments: list[str]) -> tuple[list[str], list[str], bool]:
    """The other arguments, the modules that --plugin names, and --force: any command takes them at any place."""
    from dr3.errors import UserError

    rest, plugins, words = [], [], iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag != "--plugin":
            rest.append(word)
        elif module := value if equals else next(words, ""):
            plugins.append(module)
        else:
            raise UserError("--plugin needs the name of a module, as in --plugin my_methods.")
    return [word for word in rest if word != "--force"], plugins, "--force" in rest


def _help() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())
    return (
        "usage: dr3 COMMAND …\n\nTrain, watch and repair value functions that are learned from logged data.\n\n"
        f"commands (dr3 COMMAND --help tells more):\n{commands}\n\n"
        "every command takes --plugin MODULE: methods, regularizers, readers and worlds of your own "
        "(docs/extending.md);\nand --force: read a file that unpacks to gigabytes"
        f"\n\n{EXAMPLES}"
    )
