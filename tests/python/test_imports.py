"""Modules of the package import one way, imports for types and inside functions included."""

from __future__ import annotations

import ast
from pathlib import Path

import orrery

PACKAGE = Path(orrery.__file__).parent


def imports_of(text: str, modules: set[str]) -> set[str]:
    """Which of `modules` a module's text imports, wherever the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "orrery":
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orrery."):
            found.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {each.name.split(".")[1] for each in node.names if "orrery." in each.name}
    return found & modules


def circle(graph: dict[str, set[str]]) -> list[str]:
    """What is left when modules that import nothing of what is left are taken away, again and again."""
    left = dict(graph)
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


def test_no_module_reaches_itself():
    files = {path.stem: path for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    assert len(files) > 20
    assert (
        circle(
            {
                name: imports_of(path.read_text(encoding="utf-8"), set(files))
                for name, path in files.items()
            }
        )
        == []
    )


def test_a_circle_is_found_also_where_it_is_for_types_or_inside_a_function():
    texts = {
        "a": "def f():\n    from orrery.b import g\n",
        "b": "if TYPE_CHECKING:\n    from orrery import c\n",
        "c": "import orrery.a\n",
        "d": "from orrery.a import f\nimport json\n",
    }
    graph = {name: imports_of(text, set(texts)) for name, text in texts.items()}
    assert circle(graph) == ["a", "b", "c", "d"]
    del graph["c"]
    assert circle(graph) == []
