"""Colour and label per class of work in all figures: compute is blue, communication warm."""

from __future__ import annotations

from typing import NamedTuple


class Look(NamedTuple):
    """Legend label and colour of a class."""

    label: str
    colour: str


LOOKS = {
    # classes of operations, as in `Run.breakdown`
    "gemm": Look("GEMM", "#2b5c94"),
    "attention": Look("attention", "#4f94d4"),
    "memory_bound": Look("memory-bound kernels", "#9dc6ea"),
    "optimizer": Look("optimizer", "#7a66b3"),
    "tp": Look("tensor parallel", "#e8743b"),
    "cp": Look("context parallel", "#d98cb3"),
    "ep": Look("expert parallel", "#4fa3a0"),
    "dp": Look("data parallel", "#f2b134"),
    "pp": Look("pipeline transfers", "#c94f4f"),
    "other_comm": Look("other communication", "#a8734a"),
    "bubble": Look("pipeline bubble", "#d5dae1"),
    "host": Look("host", "#8a94a3"),
    "other": Look("other", "#b9a9c9"),
    "data": Look("waiting for data", "#9a9a3c"),
    # instructions of a schedule
    "forward": Look("forward", "#4f94d4"),
    "backward": Look("backward", "#2b5c94"),
    "send": Look("send", "#c94f4f"),
    "receive": Look("receive", "#eda39b"),
    "reduce_gradient": Look("gradient reduction", "#f2b134"),
    "gather": Look("parameter gather", "#c99a2e"),
    "tie": Look("tied embedding", "#a8734a"),
    "norm": Look("gradient norm", "#6f9a6c"),
}

INK = "#1f2733"
FAINT = "#6b7684"
GRID = "#e8ebef"
GOOD = "#3a8f5c"
FONT = "Inter, Segoe UI, Helvetica Neue, Arial, sans-serif"


def look(kind: str) -> Look:
    """Label and colour of a class; an unlisted one has its own name, in grey."""
    return LOOKS.get(kind, Look(kind.replace("_", " "), "#9aa3ae"))
