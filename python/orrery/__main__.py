"""`python -m orrery`: the command that was installed with this package."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def command() -> str | None:
    """The command next to this Python, or else the first on the path."""
    installed = Path(sysconfig.get_path("scripts")) / "orrery"
    return str(installed) if installed.exists() else shutil.which("orrery")


def main() -> None:
    """Replaces this process by the command, with the same arguments."""
    found = command()
    if found is None:
        sys.exit("python -m orrery: there is no command orrery; pip install . installs it")
    os.execv(found, [found, *sys.argv[1:]])


if __name__ == "__main__":
    main()
