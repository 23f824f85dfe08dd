"""Names of the entries that ship with Orrery; a scenario accepts them wherever it takes a name."""

from __future__ import annotations

from orrery import _core


def gpus() -> list[str]:
    """GPUs: "h100-sxm-80gb"."""
    return _core.catalogue("gpus")


def nodes() -> list[str]:
    """Nodes, which make a cluster with a count: "dgx-h100" in `"/cluster": "dgx-h100 x 64"`."""
    return _core.catalogue("nodes")


def clusters() -> list[str]:
    """Existing clusters: "selene"."""
    return _core.catalogue("clusters")


def models() -> list[str]:
    """Models: "llama3.1-70b"."""
    return _core.catalogue("models")


def software() -> list[str]:
    """Software profiles: "megatron-lm"."""
    return _core.catalogue("software")


def scenarios() -> list[str]:
    """Scenarios that `orrery.load` knows: "gpt3-175b-1024-a100"."""
    return _core.catalogue("scenarios")
