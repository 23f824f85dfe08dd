"""The stubs of `orrery._core` name what is there, and nothing else."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import orrery
from orrery import _core

PACKAGE = Path(orrery.__file__).parent


def parameters_of(function) -> list[str]:
    """Names of a bound function's parameters, from the signature that pybind11 writes first."""
    signature = re.match(r"\w+\((.*)\) -> ", inspect.getdoc(function) or "")
    assert signature, function
    names = re.findall(r"(\w+): |(\*)(?:, |$)", signature.group(1))
    return [name or star for name, star in names]


def parameters_in(stub: ast.FunctionDef) -> list[str]:
    keywords = [each.arg for each in stub.args.kwonlyargs]
    return [each.arg for each in stub.args.args] + (["*", *keywords] if keywords else [])


def check(stub: ast.Module | ast.ClassDef, thing) -> None:
    named = {
        each.name: each for each in stub.body if isinstance(each, (ast.ClassDef, ast.FunctionDef))
    }
    public = {name for name in vars(thing) if not name.startswith("_")}
    assert set(named) == public
    for name, each in named.items():
        found = vars(thing)[name]
        if isinstance(each, ast.ClassDef):
            check(each, found)
        elif isinstance(found, property):
            assert ["property"] == [decorator.id for decorator in each.decorator_list]
        else:
            given = parameters_in(each)
            assert given == [part.replace("arg0", "self") for part in parameters_of(found)]


def test_the_stubs_are_what_is_there():
    check(ast.parse((PACKAGE / "_core.pyi").read_text()), _core)


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_everything_public_says_what_it_answers():
    for name in orrery.__all__:
        thing = getattr(orrery, name)
        assert inspect.getdoc(thing), name
        if not inspect.isclass(thing) or not thing.__module__.startswith("orrery"):
            continue
        for member, value in vars(thing).items():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"
