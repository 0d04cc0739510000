"""Cost against size as an SVG: both axes logarithmic, a line for each column, and the exponent of
its law.

The same figures give the same bytes. Colours are of a middle lightness and the text follows the
reader's scheme, so that a plot can be read on white and on black.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .figures import exponent

WIDTH, HEIGHT = 820, 460
LEFT, TOP, RIGHT, BOTTOM = 70, 40, 290, 50
COLOURS = (
    "#d9480f",
    "#1c7ed6",
    "#2f9e44",
    "#ae3ec9",
    "#e8890c",
    "#0c8599",
    "#c2255c",
    "#7048e8",
    "#74871b",
    "#868e96",
    "#4c6ef5",
    "#a0643c",
    "#f06595",
    "#15aabf",
    "#82c91e",
    "#b197fc",
)
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}"
    ".t{font-weight:600;font-size:14px}.g{stroke:#8886;stroke-width:.6}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """The costs of one column."""

    title: str
    points: tuple[tuple[float, float], ...]
    """Sizes and seconds."""
    kind: str = "peer"
    """``ours`` is drawn thick, a ``baseline`` dashed."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A logarithmic scale between two powers of ten."""

    low: int
    high: int
    begin: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], begin: float, end: float) -> Axis:
        low, high = (
            math.floor(math.log10(min(values)) + 1e-9),
            math.ceil(math.log10(max(values)) - 1e-9),
        )
        return cls(low=low, high=max(high, low + 1), begin=begin, end=end)

    def at(self, value: float) -> float:
        return self.begin + (math.log10(value) - self.low) / (self.high - self.low) * (
            self.end - self.begin
        )

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def duration(seconds: float) -> str:
    """Return a power of ten of seconds, in words.

    >>> duration(1e-5), duration(0.1), duration(10.0)
    ('10 µs', '100 ms', '10 s')
    """
    scale, unit = next(
        (pair for pair in ((1, "s"), (1e3, "ms"), (1e6, "µs")) if seconds * pair[0] >= 0.999),
        (1e9, "ns"),
    )
    return f"{seconds * scale:,.0f} {unit}"


def plot(title: str, lines: Sequence[Line]) -> str:
    """Return the SVG. Lines of fewer than two points are left out."""
    drawn = sorted(
        (line for line in lines if len(line.points) > 1),
        key=lambda line: (-line.points[-1][1], line.title),
    )
    x = Axis.over([size for line in drawn for size, _ in line.points], LEFT, WIDTH - RIGHT)
    y = Axis.over([seconds for line in drawn for _, seconds in line.points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<text class="t" x="{LEFT}" y="22">{escape(title)}</text>',
    ]
    for size in x.ticks:
        at = x.at(size)
        parts.append(
            f'<line class="g" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM}"/>'
        )
        parts.append(
            f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{size:,.0f}</text>'
        )
    for seconds in y.ticks:
        at = y.at(seconds)
        parts.append(
            f'<line class="g" x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}"/>'
        )
        parts.append(
            f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{duration(seconds)}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 10}" '
        'text-anchor="middle">size</text>'
    )
    colours = {
        line.title: COLOURS[i % len(COLOURS)]
        for i, line in enumerate(sorted(lines, key=lambda line: (line.kind != "ours", line.title)))
    }
    for i, line in enumerate(drawn):
        colour, width = colours[line.title], 3.2 if line.kind == "ours" else 1.6
        path = " ".join(f"{x.at(size):.1f},{y.at(seconds):.1f}" for size, seconds in line.points)
        dashes = ' stroke-dasharray="5 4"' if line.kind == "baseline" else ""
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" '
            f'stroke-width="{width}"{dashes}/>'
        )
        parts += [
            f'<circle cx="{x.at(a):.1f}" cy="{y.at(b):.1f}" r="{width + 0.6:.1f}" fill="{colour}"/>'
            for a, b in line.points
        ]
        at = TOP + 10 + i * 22
        law = exponent([point for point in line.points if point[0] >= 100])
        reported = line.title if law is None else f"{line.title}: n^{law:.2f}"
        parts.append(
            f'<rect x="{WIDTH - RIGHT + 20}" y="{at - 9}" width="14" height="{4 + width:.1f}" '
            f'rx="2" fill="{colour}"/>'
        )
        weight = ' font-weight="700"' if line.kind == "ours" else ""
        parts.append(f'<text x="{WIDTH - RIGHT + 42}" y="{at}"{weight}>{escape(reported)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
