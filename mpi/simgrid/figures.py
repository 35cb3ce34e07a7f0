"""Line charts as SVG, for scale.py: a few curves on two logarithmic or plain axes, every number
rounded, so that the same figures give the same bytes everywhere.

    chart("Time of a ring", "ranks", "ms", [Curve("simulated", points)]) -> str
"""

import dataclasses
import math

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 170, 40, 50
# Told apart without colours, too: by marks and dashes (Okabe and Ito's colours).
STYLES = [("#0072b2", "", "circle"), ("#d55e00", "6 3", "square"), ("#009e73", "2 3", "diamond"),
          ("#cc79a7", "8 3 2 3", "triangle")]


@dataclasses.dataclass
class Curve:
    name: str
    points: list  # of (x, y), x increasing
    marks: bool = True
    line: bool = True


class Axis:
    """Positions on paper of the numbers from low to high."""

    def __init__(self, values, first, last, logarithmic=True):
        self.first, self.last, self.logarithmic = first, last, logarithmic
        self.low, self.high = min(values), max(values)
        if not logarithmic:
            self.low = min(self.low, 0)

    def place(self, value):
        form = math.log if self.logarithmic else float
        low, high = form(self.low), form(self.high)
        share = (form(value) - low) / (high - low) if high > low else 0.5
        return self.first + share * (self.last - self.first)

    def ticks(self):
        if not self.logarithmic:
            step = 10 ** math.floor(math.log10((self.high - self.low) / 2))
            step *= next(m for m in (1, 2, 5, 10) if (self.high - self.low) / (m * step) <= 6)
            return [n * step for n in range(math.ceil(self.low / step),
                                            math.floor(self.high / step) + 1)]
        return [10.0 ** n for n in range(math.ceil(math.log10(self.low)),
                                         math.floor(math.log10(self.high)) + 1)]


def number(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


def label(value):
    return f"{value:g}"


def mark(kind, x, y, colour):
    x, y = round(x, 1), round(y, 1)
    if kind == "circle":
        return f'<circle cx="{number(x)}" cy="{number(y)}" r="3.5" fill="{colour}"/>'
    corners = {"square": [(-3, -3), (3, -3), (3, 3), (-3, 3)],
               "diamond": [(0, -4), (4, 0), (0, 4), (-4, 0)],
               "triangle": [(0, -4), (4, 3), (-4, 3)]}[kind]
    points = " ".join(f"{number(x + dx)},{number(y + dy)}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def text(x, y, words, anchor="middle", extra=""):
    return (f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"{extra}>'
            f"{words}</text>")


def chart(title, x_name, y_name, curves, x_ticks=None, logarithmic=(True, True)):
    """The chart as one SVG document."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    xs = Axis([x for curve in curves for x, _ in curve.points], LEFT, right, logarithmic[0])
    ys = Axis([y for curve in curves for _, y in curve.points], bottom, TOP, logarithmic[1])
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           text((LEFT + right) / 2, 22, title, extra=' font-size="14"')]
    for value in x_ticks or xs.ticks():
        x = xs.place(value)
        out += [f'<path d="M{number(x)} {TOP}V{bottom}" stroke="#dddddd"/>',
                text(x, bottom + 16, label(value))]
    for value in ys.ticks():
        y = ys.place(value)
        out += [f'<path d="M{LEFT} {number(y)}H{right}" stroke="#dddddd"/>',
                text(LEFT - 6, y + 4, label(value), "end")]
    out += [f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#333333"/>',
            text((LEFT + right) / 2, HEIGHT - 12, x_name),
            text(18, (TOP + bottom) / 2, y_name,
                 extra=f' transform="rotate(-90 18 {number((TOP + bottom) / 2)})"')]
    for n, curve in enumerate(curves):
        colour, dash, kind = STYLES[n % len(STYLES)]
        places = [(xs.place(x), ys.place(y)) for x, y in curve.points]
        line = " ".join(f"{number(x)},{number(y)}" for x, y in places)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        if curve.line:
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" '
                       f'stroke-width="2"{dashes}/>')
        if curve.marks:
            out += [mark(kind, x, y, colour) for x, y in places]
        y = TOP + 14 + 20 * n
        out.append(text(right + 42, y, curve.name, "start"))
        if curve.line:
            out.append(f'<path d="M{right + 12} {number(y - 4)}h24" stroke="{colour}" '
                       f'stroke-width="2"{dashes}/>')
        if curve.marks:
            out.append(mark(kind, right + 24, y - 4, colour))
    return "\n".join(out + ["</svg>"]) + "\n"
