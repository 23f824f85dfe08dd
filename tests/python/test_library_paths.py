"""Where the loader looks for what the installed command, its modules and the Python module need."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import orrery
import pytest
from executing import COMMAND


def installed() -> list[Path]:
    found = list(Path(orrery.__file__).parent.glob("*.so"))
    if COMMAND is not None:
        folder = Path(COMMAND).resolve().parent
        found += [folder / "orrery", *folder.glob("liborrery_*.so")]
        found += (folder.parent / "lib" / "orrery").glob("*.so")
    return found


@pytest.mark.skipif(shutil.which("readelf") is None, reason="there is no readelf")
def test_nothing_that_is_installed_searches_a_folder_not_named_in_full():
    files = installed()
    assert any(file.name.startswith("_core") for file in files)
    for file in files:
        dynamic = subprocess.run(
            ["readelf", "-d", str(file)], capture_output=True, text=True, check=True
        ).stdout
        for line in dynamic.splitlines():
            if "PATH)" in line:
                elements = line.split("[", 1)[1].rsplit("]", 1)[0].split(":")
                assert all(Path(each).is_absolute() for each in elements), (file, elements)
