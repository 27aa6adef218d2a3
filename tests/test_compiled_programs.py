"""An entry of the compilation cache that a kill has torn is noticed once, and whole again after that."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dr3 import compiled_programs
from dr3.training.loop import COMPILER_OPTIONS

SCRIPT = """
from dr3.compiled_programs import keep_compiled_programs
keep_compiled_programs()
import jax
print(jax.jit(lambda x: 2 * x + 1)(1.0))
"""


@pytest.fixture
def compile_in(tmp_path):
    """Compile a program in a process of its own, with the cache in a folder: what it said, and the entries."""

    def compile_():
        told = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=os.environ | told, capture_output=True, text=True, check=True
        )
        assert done.stdout == "3.0\n"
        return done.stderr, {entry: entry.read_bytes() for entry in tmp_path.glob("*-cache")}

    return compile_


@pytest.mark.parametrize("share", [0, 0.5])
def test_a_torn_program_is_written_again_without_a_word(compile_in, share):
    said, whole = compile_in()
    assert said == ""
    assert whole
    for entry, content in whole.items():
        entry.write_bytes(content[: int(share * len(content))])
    said, mended = compile_in()
    assert said == ""
    assert mended.keys() == whole.keys()
    assert all(len(content) > 0.9 * len(whole[entry]) for entry, content in mended.items())
    assert compile_in() == ("", mended)  # read, and not written once more


def test_all_else_is_shown(monkeypatch):
    shown = []
    monkeypatch.setattr(compiled_programs, "_shown_by_python", lambda message, *_: shown.append(message))
    told = ["something else", "Error reading persistent compilation cache entry for 'jit_not_there': why"]
    for message in told:
        compiled_programs._show(message, UserWarning, "file", 1)
    assert shown == told


def test_options_that_the_compiler_does_not_know_are_left_out():
    options = {"xla_cpu_enable_fast_math": False, "xla_no_such_option": 1}
    assert compiled_programs.known_options(options) == {"xla_cpu_enable_fast_math": False}
    assert compiled_programs.known_options(COMPILER_OPTIONS).items() <= COMPILER_OPTIONS.items()


def test_the_package_needs_no_fcntl():
    """Windows has none."""
    script = "import sys; sys.modules['fcntl'] = None\nimport dr3.cli.train, dr3.sweeps, dr3.reports.report"
    subprocess.run([sys.executable, "-c", script], check=True)
