"""What tests that draw need of the machine; the same in tests/envs."""

from __future__ import annotations

import pytest

from dr3.errors import UserError


@pytest.fixture(scope="session")
def camera() -> None:
    """Skip where MuJoCo cannot draw: it needs a library of the system, which pip cannot bring."""
    pytest.importorskip("mujoco", reason="drawing needs MuJoCo", exc_type=ImportError)
    from dr3.envs.drawers_scene import Scene

    scene = Scene()
    try:
        scene.picture(8)
    except UserError as error:
        pytest.skip(str(error))
    scene.close()
