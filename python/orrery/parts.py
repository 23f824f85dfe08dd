"""Models, clusters, plans and software as people give them: a name, a path or the document."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from orrery import pointer

Part = str | os.PathLike[str] | Mapping[str, Any]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def text_of(part: Part | None) -> str | None:
    """A name or a path as it is, a document as JSON."""
    if part is None:
        return None
    return pointer.to_json(part) if isinstance(part, Mapping) else os.fspath(part)


def required(part: Part) -> str:
    """The same of what must be given."""
    text = text_of(part)
    if text is None:
        raise TypeError("expected a name, a path or a document, found None")
    return text


def path_of(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def paths_of(paths: Paths) -> list[str]:
    """One path, or several."""
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


def words_of(words: str | Iterable[str]) -> list[str]:
    """One word, or several."""
    return [words] if isinstance(words, str) else list(words)
