"""JSON pointers (RFC 6901): the addresses of values in a scenario."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def get(document: Any, pointer: str) -> Any:
    """The value at a pointer. Errors: KeyError."""
    value = document
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (LookupError, TypeError, ValueError):
            raise KeyError(pointer) from None
    return value


def differences(left: Any, right: Any, pointer: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(pointer, left, right) wherever two documents differ; None for a missing value."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in {**left, **right}:
            step = key.replace("~", "~0").replace("/", "~1")
            yield from differences(left.get(key), right.get(key), f"{pointer}/{step}")
    elif left != right:
        yield pointer, left, right


def to_json(value: Any) -> str:
    """A new value for a scenario as JSON text; NumPy scalars become numbers.

    Errors: TypeError for a value that JSON cannot express, ValueError for a non-finite number.
    """

    def otherwise(thing: Any) -> Any:
        if hasattr(thing, "tolist"):
            return thing.tolist()
        if hasattr(thing, "__fspath__"):
            return thing.__fspath__()
        raise TypeError(f"expected a JSON value, found {thing!r}")

    return json.dumps(value, allow_nan=False, default=otherwise)
