"""Build the wheel and the sdist, and prove them in an empty environment.

    python tools/release.py                 of the files as they are (`make release-check`)
    python tools/release.py --tag v0.2.0    of a tag, into dist/0.2.0 with checksums (`make release TAG=v0.2.0`)

Needs `build` and `twine`. It uploads nothing, and says what does.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Leave in `dist` what was built and holds; end with a sentence where something does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", help="what to release, vVERSION; by default the files as they are are only checked")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        sources = ROOT if options.tag is None else checked_out(options.tag, Path(scratch) / "sources")
        version = version_of(sources)
        if options.tag is not None:
            check_tag(options.tag, version, sources)
        built = Path(scratch) / "dist"
        # The wheel is built from the sdist, so that one which cannot be built from is found here.
        run(sys.executable, "-m", "build", "--quiet", "--outdir", built, sources)
        run(sys.executable, "-m", "twine", "check", "--strict", *sorted(built.iterdir()))
        (wheel,) = built.glob(f"dr3-{version}-*.whl")
        try_out(wheel, version, sources, Path(scratch))
        kept = ROOT / "dist" / (version if options.tag else "checked")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(built, kept)
    files = sorted(kept.iterdir())
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (kept / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(f"{', '.join(file.name for file in files)} are in {kept.relative_to(ROOT)}: they install and run.")
    if options.tag:
        print(f"To publish them: twine upload {kept.relative_to(ROOT)}/dr3-*")


def checked_out(tag: str, folder: Path) -> Path:
    """The files of a tag, without what lies about in this folder."""
    archive = folder.with_suffix(".tar")
    run("git", "-C", ROOT, "archive", "--output", archive, f"refs/tags/{tag}")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder


def version_of(sources: Path) -> str:
    """The version, from the one place where it is written."""
    found = re.search(r'^__version__ = "(.+)"$', (sources / "src/dr3/__init__.py").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("src/dr3/__init__.py has no __version__.")
    return found[1]


def check_tag(tag: str, version: str, sources: Path) -> None:
    """A tag is named after its version, and what changed in that is written down."""
    if tag != f"v{version}":
        raise SystemExit(f"The tag {tag} holds version {version}: it would have to be v{version}.")
    heading = re.search(
        rf"^## {re.escape(version)}\b(.*)$", (sources / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    if heading is None or "not released" in heading[1]:
        raise SystemExit(f"CHANGELOG.md has no heading for {version}, or still says that it is not released.")


def try_out(wheel: Path, version: str, sources: Path, scratch: Path) -> None:
    """Install the wheel into an empty environment, and run the demo from an empty folder."""
    environment, empty = scratch / "environment", scratch / "empty"
    venv.create(environment, with_pip=True)
    empty.mkdir()
    bin = environment / ("Scripts" if os.name == "nt" else "bin")
    pip = (bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--constraint", sources / "requirements.txt", f"{wheel}[plots]")
    said = subprocess.run([bin / "dr3", "--version"], cwd=empty, capture_output=True, text=True, check=True).stdout
    if said.strip() != f"dr3 {version}":
        raise SystemExit(f"The installed command says {said.strip()!r}, and not dr3 {version}.")
    run(bin / "dr3", "demo", "--smoke", cwd=empty)


def run(*words: str | Path, cwd: Path | None = None) -> None:
    """Carry out a command, shown as it is; its failure is ours."""
    print("$", *(Path(word).name if isinstance(word, Path) else word for word in words), flush=True)
    began = time.monotonic()
    code = subprocess.run([str(word) for word in words], cwd=cwd, check=False).returncode
    if code:
        raise SystemExit(f"This ended with exit code {code}.")
    print(f"  {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
