"""Arguments for models, clusters, plans and software: a name, a path or the document itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from orrery import pointer

Part = str | os.PathLike[str] | Mapping[str, Any]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def kind_of(thing: object) -> str:
    """What a thing is, for the message of a TypeError."""
    return "None" if thing is None else type(thing).__name__


def mapping_of(changes: Any, name: str) -> Mapping[str, Any]:
    """The changes as they are. Errors: TypeError unless they map pointers to values."""
    if not isinstance(changes, Mapping):
        raise TypeError(f"{name}: expected {{pointer: value}}, found {kind_of(changes)}")
    for address in changes:
        if not isinstance(address, str):
            raise TypeError(f"{name}: expected JSON pointers, found {address!r}")
    return changes


def text_of(part: Part | None) -> str | None:
    """A name or a path unchanged, a document as JSON text."""
    if part is None:
        return None
    return pointer.to_json(part) if isinstance(part, Mapping) else os.fspath(part)


def required(part: Part) -> str:
    """As `text_of`, for an argument that must be given. Errors: TypeError."""
    text = text_of(part)
    if text is None:
        raise TypeError("expected a name, a path or a document, found None")
    return text


def path_of(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def paths_of(paths: Paths) -> list[str]:
    """One path or several, as a list."""
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


def words_of(words: str | Iterable[str]) -> list[str]:
    """One word or several, as a list."""
    return [words] if isinstance(words, str) else list(words)
