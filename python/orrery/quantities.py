"""Plain numbers that print with their unit."""

from __future__ import annotations


def _fitting(value: float, units: tuple[tuple[str, float], ...]) -> str:
    """Four digits in the largest unit in which the value does not start with a zero."""
    symbol, factor = units[0]
    for each, size in units:
        if abs(value) >= 0.9995 * size:
            symbol, factor = each, size
    return f"{value / factor:.4g} {symbol}"


class Seconds(float):
    """Seconds, a float; `str` writes them in the unit that fits: "31.5 s", "84.2 ms"."""

    __slots__ = ()

    def __str__(self) -> str:
        return _fitting(
            self,
            (("ps", 1e-12), ("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1), ("min", 60))
            + (("h", 3600), ("d", 86400)),
        )


class Bytes(int):
    """Bytes, an int; `str` writes them in binary units (GiB = 2^30 bytes): "54.2 GiB"."""

    __slots__ = ()

    def __str__(self) -> str:
        names = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
        return _fitting(self, tuple((name, 1024.0**i) for i, name in enumerate(names)))

    def __format__(self, spec: str) -> str:
        return str(self) if not spec else int.__format__(self, spec)


class Text(str):
    """A str whose repr is its text, so that a prompt and a notebook show its lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
