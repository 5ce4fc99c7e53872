"""The columns for Spark as plain Python makes them: no command writes them, through which test_twins could compare."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kdump import engine
from tests.conftest import ROOT

TESTS = ("tests/core/test_arrow_buffers.py", "tests/core/test_header_columns.py")


@pytest.mark.skipif(engine.running() == engine.PLAIN, reason="these tests run with plain Python already")
@pytest.mark.every_disk
def test_the_tests_of_columns_pass_without_the_compiled_core() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *TESTS],
        cwd=ROOT,
        # These tests need none of pytest's plugins, whose import takes longer than the tests.
        env={**os.environ, "KDUMP_ENGINE": engine.PLAIN, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
