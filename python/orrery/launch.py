"""A plan as launch files of training tools and launchers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, final

from orrery import _core
from orrery.answer import Answer, answered
from orrery.heading import named
from orrery.parts import Part, required, words_of
from orrery.scenario import Scenario


@final
class Launch(Answer):
    """Launch files of a plan. Made by `orrery.export`."""

    _rows = "files"

    @property
    def files(self) -> dict[str, str]:
        """The text of each file, by its name; none if the tool cannot do what the plan needs."""
        return {each["name"]: each["text"] for each in self._values["files"]}

    @property
    def refused(self) -> list[dict[str, Any]]:
        """What the tool cannot do: `{target, option, why}`."""
        return list(self["refused"])

    @property
    def not_said(self) -> list[dict[str, Any]]:
        """What its files cannot say, and have as comments: `{target, option, why}`."""
        return list(self["not_said"])

    def save(self, folder: str | os.PathLike[str]) -> list[str]:
        """Writes the files into a folder, which is made. Returns their paths.

        Errors  ValueError where the tool refuses the plan; OSError
        """
        if not self.files:
            why = "; ".join(f"{each['option']}: {each['why']}" for each in self.refused)
            raise ValueError(f"no files: {why}")
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            (place / name).write_text(text, encoding="utf-8")
        return [str(place / name) for name in self.files]


@named("export")
def export(scenario: Scenario | Part, *, to: str | Iterable[str]) -> Launch:
    """A plan as launch files of a training tool, and of a launcher that starts it: `orrery export`.

    to      tools and launchers, each with a version or the newest known: "megatron",
            ["torchtitan@0.2.2", "slurm"]
    What the tool cannot do is refused by name (`refused`), what its files cannot say is a comment
    (`not_said`). Errors: InputError.
    """
    found = _core.export_launch(
        required(scenario.json if isinstance(scenario, Scenario) else scenario),
        to=words_of(to),
    )
    return answered(Launch, found, "the files")
