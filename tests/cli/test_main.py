from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dr3.cli import COMMANDS, invoke, main

HEAVY = {"jax", "jaxlib", "equinox", "optax", "orbax", "numpy", "scipy", "matplotlib", "gymnasium", "tyro", "rich"}

TOO_LARGE = "The memory is too small for this; ask for a smaller batch, network, population or part of the data."


@pytest.mark.parametrize("words", [["--help"], []])
def test_help_waits_for_nothing_heavy(words):
    """Half a second is for Python itself; what costs more is not loaded."""
    script = (
        "import sys\n"
        "from dr3.cli import invoke\n"
        f"assert invoke({words}) == 0\n"
        "print('loaded', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert all(command in done.stdout for command in COMMANDS)
    loaded = set(done.stdout.splitlines()[-1].split()[1:])
    assert not loaded & HEAVY


def test_importing_the_package_loads_no_jax():
    script = "import sys, dr3; dir(dr3); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_rooms_are_there_after_importing_the_package_alone():
    script = "import dr3; [getattr(dr3, name) for name in dr3.__all__]; dr3.data.assemble, dr3.paper.table"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (FileNotFoundError(2, "No such file or directory", "gone.png"), "dr3: gone.png: No such file or directory.\n"),
        (OSError("cannot identify image file"), "dr3: cannot identify image file.\n"),
        (MemoryError(), f"dr3: {TOO_LARGE}\n"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 23200 bytes."), f"dr3: {TOO_LARGE}\n"),
    ],
)
def test_what_the_system_refuses_is_one_sentence_and_exit_code_2(monkeypatch, capsys, error, says):
    def refuse(arguments):
        raise error

    monkeypatch.setattr("dr3.cli.demo.main", refuse)
    assert invoke(["demo"]) == 2
    assert capsys.readouterr().err == says


def test_a_reader_who_left_is_no_mistake(monkeypatch):
    def leave(arguments):
        raise BrokenPipeError

    monkeypatch.setattr("dr3.cli.demo.main", leave)
    with pytest.raises(BrokenPipeError):
        invoke(["demo"])


@pytest.mark.parametrize(("seen", "code"), [(BrokenPipeError, 0), (ValueError, 1)])
def test_a_reader_who_left_a_table_is_no_mistake_either(monkeypatch, seen, code):
    def leave(arguments):
        try:
            raise seen
        except seen:
            raise SystemExit(1)  # noqa: B904 (as rich does)

    monkeypatch.setattr("dr3.cli.demo.main", leave)
    monkeypatch.setattr(sys, "argv", ["dr3", "demo"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == code


def test_the_command_exits_with_its_code_and_no_traceback():
    done = subprocess.run([sys.executable, "-m", "dr3", "dmo"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"dr3: There is no command 'dmo'; there are {', '.join(COMMANDS)}; did you mean demo?\n"
    done = subprocess.run([sys.executable, "-m", "dr3", "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("dr3 ")


def test_another_failure_is_not_taken_for_a_lack_of_memory(monkeypatch):
    def fail(arguments):
        raise RuntimeError("what no one has foreseen")

    monkeypatch.setattr("dr3.cli.demo.main", fail)
    with pytest.raises(RuntimeError, match="foreseen"):
        invoke(["demo"])


def test_a_terminal_that_knows_few_letters_is_no_mistake():
    surroundings = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "dr3", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: dr3 COMMAND ?")


def test_compiled_programs_are_kept_where_something_may_be_written(monkeypatch, tmp_path):
    monkeypatch.setattr("dr3.cli.demo.main", lambda arguments: 0)
    (tmp_path / "file").write_text("")
    for place, kept in ((tmp_path / "file", None), (tmp_path, str(tmp_path / "dr3" / "xla"))):
        monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(place))
        assert invoke(["demo"]) == 0
        assert os.environ.get("JAX_COMPILATION_CACHE_DIR") == kept
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "elsewhere")
    assert invoke(["demo"]) == 0
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "elsewhere"
