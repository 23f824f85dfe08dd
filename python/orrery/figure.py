"""Helpers shared by all figures; plotly is imported for the first one."""

from __future__ import annotations

from typing import Any

from orrery.palette import FAINT, FONT, GRID, INK
from orrery.quantities import Seconds


def graph_objects() -> Any:
    """plotly.graph_objects. Errors: ImportError that says what to install."""
    try:
        import plotly.graph_objects
    except ImportError as error:
        raise ImportError("pictures need plotly: pip install 'orrery-sim[notebook]'") from error
    return plotly.graph_objects


def styled(figure: Any, *, title: str, subtitle: str, height: int) -> Any:
    """Sets type, colours and margins."""
    heading = f"<b>{title}</b><br><span style='font-size:12.5px;color:{FAINT}'>{subtitle}</span>"
    figure.update_layout(
        template="none",
        title={"text": heading, "x": 0, "xref": "paper", "y": 1, "yref": "container"},
        title_pad={"t": 18},
        title_yanchor="top",
        title_font={"size": 17, "color": INK},
        font={"family": FONT, "size": 12, "color": INK},
        paper_bgcolor="white",
        plot_bgcolor="white",
        height=height,
        modebar={"bgcolor": "white", "color": "#b5bdc8", "remove": ["select2d", "lasso2d"]},
        hoverlabel={"bgcolor": "white", "bordercolor": GRID, "font": {"color": INK}},
    )
    figure.update_xaxes(gridcolor=GRID, zeroline=False, tickcolor=GRID, ticks="outside")
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    return figure


def with_unit(value: float, longest: float, unit: str) -> str:
    """A time as text for an axis that goes to `longest`; all labels have equally many decimals."""
    return f"{value:.{2 if longest >= 10 else 3}f} {unit}"


def time_axis(longest: float) -> tuple[float, str]:
    """Factor from seconds, and unit, for an axis up to `longest` seconds."""
    unit = str(Seconds(longest)).split(" ")[1]
    return {"us": (1e6, unit), "ms": (1e3, unit)}.get(unit, (1.0, "s"))
