# SPDX-License-Identifier: MIT
"""Plots as SVG, readable on white and on black."""

import math
from xml.sax.saxutils import escape

STYLE = """
text { font: 13px sans-serif; fill: #24292f } .small { font-size: 11px; fill: #57606a }
.title { font-weight: bold; font-size: 15px } .grid { stroke: #d0d7de; stroke-width: 1 }
.axis { stroke: #57606a; stroke-width: 1 } .range { stroke: #24292f; stroke-width: 1.5 }
.line { fill: none; stroke-width: 2 }
.ours { fill: #0969da } .base { fill: #1a7f37 } .other { fill: #8c959f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 } .grid { stroke: #30363d } .axis { stroke: #9198a1 }
.range { stroke: #e6edf3 } .ours { fill: #4493f8 } .base { fill: #3fb950 } .other { fill: #6e7681 } }
"""
# Of one lightness that both backgrounds bear.
COLOURS = ("#1f77d0", "#2a9d3f", "#d1651a", "#a259c4", "#c9403a", "#1a9c9c", "#a08a1c", "#c4508e", "#7f8790", "#8a6142")
DASHES = ("", "6 3", "2 3")


def number(value):
    """Three digits that count."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def tick(value):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


class Scale:
    """Values on an axis from one pixel to another, with ticks at round values."""

    def __init__(self, values, begin, end, logarithmic=False, zero=False):
        values = [value for value in values if value > 0] or [1]
        self.begin, self.end, self.logarithmic = begin, end, logarithmic
        low, high = (0 if zero else min(values)), max(values)
        if logarithmic:
            low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(high) - 1e-9)
            self.low, self.high = low, max(high, low + 1)
            self.ticks = [10.0 ** power for power in range(self.low, self.high + 1)]
            return
        step = 10 ** math.floor(math.log10((high - low or high) / 4))
        step *= next(factor for factor in (1, 2, 2.5, 5, 10) if (high - low or high) / (step * factor) <= 6)
        first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
        self.low, self.high = first * step, last * step
        self.ticks = [index * step for index in range(first, last + 1)]

    def at(self, value):
        if self.logarithmic:
            value = math.log10(max(value, 10 ** self.low))
        return self.begin + (self.end - self.begin) * (value - self.low) / (self.high - self.low)


def picture(width, height, title, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n'
            f'<text class="title" x="10" y="22">{escape(title)}</text>\n' + "\n".join(parts) + "\n</svg>\n")


def bars(title, unit, rows, logarithmic=False):
    """A bar for each (name, class, low, middle, high); from low to high goes a thin line.

    The class is ours, base or other, and gives the colour.  Where the axis is logarithmic, the length of a bar says
    nothing, and there is a dot instead.
    """
    left, width, step, top = 250, 760, 24, 40
    bottom = top + step * len(rows)
    scale = Scale([row[3] for row in rows] + [row[4] for row in rows], left, width - 70, logarithmic, zero=True)
    parts = []
    for value in scale.ticks:
        x = scale.at(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>'
                     f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick(value)}</text>')
    for i, (name, kind, low, middle, high) in enumerate(rows):
        y = top + step * i
        end, far = scale.at(middle), max(scale.at(high), scale.at(middle))
        parts.append(f'<text x="{left - 8}" y="{y + 16}" text-anchor="end">{escape(name)}</text>'
                     + (f'<circle class="{kind}" cx="{end:.1f}" cy="{y + step / 2}" r="6"/>' if logarithmic else
                        f'<rect class="{kind}" x="{left}" y="{y + 4}" width="{max(end - left, 1):.1f}" '
                        f'height="{step - 8}"/>')
                     + f'<text class="small" x="{far + 5:.1f}" y="{y + 16}">{number(middle)}</text>')
        if high > low:
            parts.append(f'<line class="range" x1="{scale.at(low):.1f}" y1="{y + step / 2}" '
                         f'x2="{scale.at(high):.1f}" y2="{y + step / 2}"/>')
    parts.append(f'<text class="small" x="{width - 70}" y="{bottom + 34}" text-anchor="end">{escape(unit)}</text>')
    return picture(width, bottom + 44, title, parts)


def lines(title, x_label, y_label, series, logarithmic=(False, False)):
    """A line for each (name, [(x, y)...]), named at its right end."""
    left, right, width, top, bottom = 70, 540, 760, 45, 340
    series = [(name, points) for name, points in series if points]
    x_scale = Scale([x for _, points in series for x, _ in points], left, right, logarithmic[0])
    y_scale = Scale([y for _, points in series for _, y in points], bottom, top, logarithmic[1], zero=True)
    parts = []
    for value in x_scale.ticks:
        x = x_scale.at(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>'
                     f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick(value)}</text>')
    for value in y_scale.ticks:
        y = y_scale.at(value)
        parts.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
                     f'<text class="small" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick(value)}</text>')
    # Names don't overlap: each is at least a line below the one above.
    names = sorted((y_scale.at(points[-1][1]), i) for i, (_, points) in enumerate(series))
    place, above = {}, top - 20
    for y, i in names:
        above = place[i] = max(y, above + 16)
    for i, (name, points) in enumerate(series):
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]
        corners = " ".join(f"{x_scale.at(x):.1f},{y_scale.at(y):.1f}" for x, y in points)
        parts.append(f'<polyline class="line" stroke="{colour}" stroke-dasharray="{dash}" points="{corners}"/>')
        parts += [f'<circle cx="{x_scale.at(x):.1f}" cy="{y_scale.at(y):.1f}" r="3" fill="{colour}"/>'
                  for x, y in points]
        parts.append(f'<line stroke="{colour}" stroke-width="2" x1="{right + 8}" y1="{place[i]:.1f}" x2="{right + 24}" '
                     f'y2="{place[i]:.1f}"/><text x="{right + 30}" y="{place[i] + 4:.1f}">{escape(name)}</text>')
    parts.append(f'<text class="small" x="{right}" y="{bottom + 34}" text-anchor="end">{escape(x_label)}</text>'
                 f'<text class="small" x="{left}" y="{top - 8}">{escape(y_label)}</text>')
    return picture(width, bottom + 44, title, parts)
