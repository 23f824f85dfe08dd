"""The head of a document: what it was made with, which question it answers, and with what."""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from orrery import _core
from orrery.errors import Interrupted

_OF_THE_CALL = ("progress", "on_step", "partial")  # how it is asked, not what


class _Named(Protocol):
    """An answer whose document has a head."""

    def _name(self, head: Mapping[str, Any]) -> None: ...


P = ParamSpec("P")
A = TypeVar("A", bound=_Named)


def heading(
    command: str, inputs: Mapping[str, Any] | None = None, changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What every document of the `orrery` command begins with, too.

    inputs   the arguments that were given, by name
    changes  what was replaced in the scenario, by pointer
    """
    changed = [{"pointer": at, "value": _value(value)} for at, value in (changes or {}).items()]
    return {
        "orrery": json.loads(_core.made_with()),
        "command": command,
        "inputs": dict(inputs or {}),
        "changes": changed,
    }


def named(command: str) -> Callable[[Callable[P, A]], Callable[P, A]]:
    """A function whose answer, a partial one too, states the arguments that it was called with."""

    def decorate(function: Callable[P, A]) -> Callable[P, A]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def asked(*args: P.args, **kwargs: P.kwargs) -> A:
            given = signature.bind(*args, **kwargs).arguments
            try:
                answer = function(*args, **kwargs)
            except Interrupted as stopped:
                if stopped.partial is not None:
                    stopped.partial._name(_head(command, given))
                raise
            answer._name(_head(command, given))
            return answer

        return asked

    return decorate


def _head(command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    changes: dict[str, Any] = dict(given.get("changes") or {})
    for name, value in given.items():
        if name in (*_OF_THE_CALL, "changes") or value is None or isinstance(value, Iterator):
            continue
        if hasattr(value, "changes"):  # a Scenario
            changes = {**value.changes, **changes}
            value = value.name
        inputs[name] = _written(value)
    return heading(command, inputs, changes)


def _written(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): _written(each) for key, each in value.items()}
    if isinstance(value, str | bool | int | float | None):
        return value
    if isinstance(value, Sequence):
        return [_written(each) for each in value]
    return str(value)


def _value(value: Any) -> str:
    """As `--set POINTER=VALUE` has it."""
    return value if isinstance(value, str) else json.dumps(_written(value))
