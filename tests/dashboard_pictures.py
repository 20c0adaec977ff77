"""Draws the dashboards as SVG, from their JSON and from the data of a run of `make dashboards-test`.

    python3 tests/dashboard_pictures.py RESULTS.json docs/dashboards

It does not use Grafana: position, title, unit, legend, thresholds, columns, links and annotations come from the
dashboard's file, the values from Prometheus.
"""

import datetime
import json
import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape, quoteattr

import dashboard_tables as tables

DASHBOARDS = pathlib.Path(__file__).resolve().parents[1] / "deploy/helm/cronwheel/files/dashboards"
# Seconds between two points of a line.
STEP = 5
COLUMN, LINE, GAP, MARGIN, HEAD = 60, 36, 8, 16, 100
COLORS = ["#3274d9", "#e0752d", "#299c46", "#a352cc", "#c4162a", "#0f9aa8", "#b58900", "#d6569b", "#5f6b7a", "#7eb26d"]
# A panel shows at most this many series. Its legend has room for fewer.
SERIES_MAX, LEGEND_LINES_MAX = 20, 2
# Grafana's names of colours.
NAMED = {
    "green": "#299c46", "yellow": "#e0b400", "orange": "#e0752d", "red": "#c4162a", "blue": "#3274d9",
    "transparent": None,
}
LINK, MUTED = "#1f6feb", "#6a737d"
# The height of a line of a table.
TABLE_LINE = 22
HEAT = ["#fff3d6", "#fdd49e", "#fdbb84", "#fc8d59", "#e34a33", "#b30000"]


def with_prefix(value, step, prefixes, unit):
    index = 0
    while abs(value) >= step and index < len(prefixes) - 1:
        value, index = value / step, index + 1
    return f"{plain(value)}{prefixes[index]}{unit}"


def plain(value):
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.3g}"


def seconds(value):
    size = abs(value)
    if size == 0:
        return "0 s"
    for scale, name in [(1e-6, "µs"), (1e-3, "ms")]:
        if size < scale * 1000:
            return f"{plain(value / scale)} {name}"
    return f"{plain(value)} s" if size < 120 else f"{plain(value / 60)} min"


def formatted(value, unit, largest=None, decimals=None):
    """Formats a value in a Grafana unit. All rates of an axis are either per second or per minute."""
    if unit == "dateTimeAsIso":
        return f"{datetime.datetime.fromtimestamp(value / 1000, datetime.timezone.utc):%Y-%m-%d %H:%M:%S}"
    if unit == "percentunit":
        return f"{plain(round(value * 100, 2))} %" if decimals is None else f"{value * 100:.{decimals}f} %"
    if unit == "s":
        return seconds(value)
    if unit == "bytes":
        return with_prefix(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"], "")
    if decimals == 0:
        value = round(value)
    ending = {"ops": "/s", "reqps": " req/s"}.get(unit, "")
    if ending and 0 < abs(largest if largest is not None else value) < 0.05:
        return f"{plain(value * 60)}{ending.replace('/s', '/min')}"
    return with_prefix(value, 1000, ["", " K", " M", " G"], ending)


def nice_step(extent, n_steps):
    rough = extent / n_steps
    power = 10 ** math.floor(math.log10(rough))
    return next(factor * power for factor in [1, 2, 2.5, 5, 10] if factor * power >= rough * 0.999)


def ticks(low, high, unit):
    if high <= low:
        high = low + 1
    # A step is a round number of KiB, MiB or minutes if the labels use these units.
    scale = 1
    if unit == "bytes" and high > 1:
        scale = 1024 ** int(math.log(high, 1024))
    elif unit == "s" and high >= 120:
        scale = 60
    step = nice_step((high - low) / scale, 4) * scale
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def text(x, y, content, size=12, color="#24292e", anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(content)}</text>')


def shortened(content, n_letters):
    return content if len(content) <= n_letters else content[:n_letters - 1].rstrip() + "…"


def box(x, y, width, height, fill, more=""):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" {more}/>'


def linked(url, content):
    """Content that leads to an address. Addresses with values of Grafana lead nowhere in a picture."""
    return f'<a href={quoteattr(url)} target="_blank">{content}</a>' if "${" not in url else content


def legend_of(target, labels):
    return re.sub(r"{{\s*(\w+)\s*}}", lambda match: labels.get(match[1], ""), target["legendFormat"])


def points_of(series):
    pairs = series.get("values") or [series["value"]]
    return [(time, float(value)) for time, value in pairs if math.isfinite(float(value))]


class Drawing:
    """The part of a panel with axes."""

    def __init__(self, x, y, width, height, span):
        self.x, self.y, self.width, self.height, self.span = x, y, width, height, span

    def at(self, time):
        begin, end = self.span
        return self.x + (time - begin) / (end - begin) * self.width

    def time_axis(self):
        begin, end = self.span
        step = 60 * nice_step((end - begin) / 60, 5)
        parts, time = [], math.ceil(begin / 60) * 60
        while time <= end:
            moment = datetime.datetime.fromtimestamp(time, datetime.timezone.utc)
            parts.append(text(min(self.at(time), self.x + self.width - 14), self.y + self.height + 14, f"{moment:%H:%M}", 10, "#6a737d", "middle"))
            time += max(60, int(step // 60 * 60))
        return parts


def limits_of(definition):
    """The values and colours of the threshold lines of a graph."""
    defaults = definition["fieldConfig"]["defaults"]
    if "thresholdsStyle" not in defaults.get("custom", {}):
        return []
    return [(step["value"], NAMED[step["color"]]) for step in defaults["thresholds"]["steps"] if step["value"] is not None]


def annotated(drawing, annotations):
    """The events of the annotations: a dashed line at each, and a strip while one lasts."""
    parts = []
    for color, events in annotations:
        for begin, end in events:
            if not drawing.span[0] <= end or not begin <= drawing.span[1]:
                continue
            at = drawing.at(max(begin, drawing.span[0]))
            parts.append(f'<path d="M{at:.1f} {drawing.y:.1f}v{drawing.height:.1f}" stroke="{color}" '
                         'stroke-dasharray="3 3" opacity="0.7"/>')
            width = drawing.at(min(end, drawing.span[1])) - at
            if width > 1:
                parts.append(box(at, drawing.y, width, drawing.height, color, 'opacity="0.08"'))
            parts.append(f'<path d="M{at - 3.5:.1f} {drawing.y + drawing.height + 5:.1f}h7l-3.5 -5z" fill="{color}"/>')
    return parts


def lines(drawing, named, unit, minimum, limits=()):
    """Lines of (name, color, points), with their axes and thresholds. Thresholds far above all values are not drawn."""
    values = [value for _, _, points in named for _, value in points]
    limits = [(value, color) for value, color in limits if value <= 20 * max(values) or len(values) == 0]
    values += [value for value, _ in limits]
    low = min(values + ([minimum] if minimum is not None else []))
    marks = ticks(low, max(values), unit)
    scale = drawing.height / (marks[-1] - marks[0])
    y_of = lambda value: drawing.y + drawing.height - (value - marks[0]) * scale
    parts = []
    for mark in marks:
        parts.append(f'<path d="M{drawing.x:.1f} {y_of(mark):.1f}h{drawing.width:.1f}" stroke="#e1e4e8"/>')
        parts.append(text(drawing.x - 6, y_of(mark) + 3.5, formatted(mark, unit, marks[-1]), 10, "#6a737d", "end"))
    for _, color, points in reversed(named):
        path, last = [], None
        for time, value in points:
            is_joined = last is not None and time - last <= 3 * STEP
            path.append(f"{'L' if is_joined else 'M'}{drawing.at(time):.1f} {y_of(value):.1f}")
            last = time
        parts.append(f'<path d="{"".join(path)}" fill="none" stroke="{color}" stroke-width="1.6" '
                     'stroke-linejoin="round" stroke-linecap="round"/>')
    for value, color in limits:
        parts.append(f'<path d="M{drawing.x:.1f} {y_of(value):.1f}h{drawing.width:.1f}" stroke="{color}" '
                     'stroke-width="1.4" stroke-dasharray="8 5"/>')
    return parts + drawing.time_axis()


def heatmap(drawing, buckets):
    """Draws the buckets of a histogram. Prometheus counts them cumulatively."""
    bounds = sorted(buckets, key=float)
    counts, below = {}, {}
    for bound in bounds:
        for time, value in buckets[bound]:
            counts[bound, time] = max(0, value - below.get(time, 0))
            below[time] = value
    used = [index for index, bound in enumerate(bounds) if any(counts[bound, time] > 0.01 for time, _ in buckets[bound])]
    shown = bounds[:max(used, default=0) + 2]
    largest = max(counts.values(), default=0) or 1
    height, parts = drawing.height / len(shown), []
    for index, bound in enumerate(shown):
        y = drawing.y + drawing.height - (index + 1) * height
        if index % max(1, len(shown) // 6) == 0:
            name = "more" if bound == "+Inf" else f"≤ {seconds(float(bound))}"
            parts.append(text(drawing.x - 6, y + height / 2 + 3.5, name, 10, "#6a737d", "end"))
        for time, _ in buckets[bound]:
            share = counts[bound, time] / largest
            if share > 0.005:
                color = HEAT[min(len(HEAT) - 1, int(share * len(HEAT)))]
                width = drawing.at(time + STEP) - drawing.at(time)
                parts.append(box(drawing.at(time) - width / 2, y, width + 0.3, height - 0.5, color))
    return parts + drawing.time_axis()


def legend(named, x, y, width):
    """The names of the series on at most two lines, and the number of names that do not fit."""
    parts, at, line = [], x, 0
    for index, (name, color, _) in enumerate(named):
        name = shortened(name, 40)
        needed = 26 + 6.5 * len(name)
        if at + needed > x + width - 60 and at > x:
            at, line = x, line + 1
        if line == LEGEND_LINES_MAX:
            parts.append(text(x + width, y + (line - 1) * 15 + 4, f"and {len(named) - index} more", 11, "#6a737d", "end"))
            break
        parts.append(f'<path d="M{at:.1f} {y + line * 15:.1f}h12" stroke="{color}" stroke-width="3"/>')
        parts.append(text(at + 16, y + line * 15 + 4, name, 11, "#444d56"))
        at += needed
    return parts, min(line + 1, LEGEND_LINES_MAX)


def n_legend_lines(named, width):
    return legend(named, 0, 0, width)[1]


def head_of_panel(definition, x, y, width):
    parts = [box(x, y, width, definition["gridPos"]["h"] * LINE - GAP, "#ffffff", 'rx="4" stroke="#d9dde2"')]
    links = definition.get("links", [])
    n_letters = int((width - 36 * bool(links)) / 7.4)
    parts.append(text(x + 12, y + 21, shortened(definition["title"], n_letters), 13, weight="600"))
    for link in links:
        icon = text(x + width - 20, y + 21, "↗", 13, LINK)
        parts.append(linked(link["url"], f"<title>{escape(link['title'])}</title>{icon}"))
    parts.append(f"<desc>{escape(definition['description'])}</desc>")
    return parts


def stat(definition, named, x, y, width, height):
    """A number on the colour of its threshold."""
    defaults = definition["fieldConfig"]["defaults"]
    value = named[0][1][-1][1]
    ground = NAMED[tables.color_at(defaults["thresholds"], value)]
    content = formatted(value, defaults["unit"], decimals=defaults.get("decimals"))
    return [
        box(x + 6, y + 29, width - 12, height - 35, ground, 'rx="3"'),
        text(x + width / 2, y + 29 + (height - 35) / 2 + 9, content, 26, "#ffffff", "middle", "600"),
    ]


def table(definition, series, x, y, width, height):
    """A table, whose columns are as wide as their longest cells. Lines that do not fit are counted."""
    lines = tables.sorted_lines(definition, tables.merged(definition, series))
    shown = tables.columns(definition, lines)
    n_lines = int((height - 62) / TABLE_LINE)
    cells = [[tables.text_and_color(properties, line.get(name), formatted) for name, _, properties in shown]
             for line in lines[:n_lines if len(lines) <= n_lines else n_lines - 1]]
    needed = [max([len(title)] + [len(row[index][0]) for row in cells]) + 2 for index, (_, title, _) in enumerate(shown)]
    at, parts = x + 12, []
    for index, (_, title, properties) in enumerate(shown):
        own = (width - 24) * needed[index] / sum(needed)
        n_letters = int(own / 6.3)
        parts.append(text(at, y + 46, shortened(title, n_letters), 11, MUTED, weight="600"))
        for number, row in enumerate(cells):
            content, color = row[index]
            top = y + 54 + number * TABLE_LINE
            if color:
                parts.append(box(at - 4, top + 1, own - 4, TABLE_LINE - 2, NAMED[color]))
            links = properties.get("links", [])
            ink = "#ffffff" if color else LINK if links else "#24292e"
            cell = text(at, top + 15, shortened(content, n_letters), 11, ink)
            parts.append(linked(links[0]["url"], cell) if links else cell)
        at += own
    if len(lines) > len(cells):
        bottom = y + 54 + len(cells) * TABLE_LINE + 15
        parts.append(text(x + 12, bottom, f"and {len(lines) - len(cells)} more lines", 11, MUTED))
    return parts


def legend_with_numbers(definition, named):
    """The names of the lines, with their latest and largest value if the legend is a table."""
    if definition["options"].get("legend", {}).get("displayMode") != "table":
        return named
    unit = definition["fieldConfig"]["defaults"]["unit"]
    numbers = lambda points: f"{formatted(points[-1][1], unit)}, max {formatted(max(value for _, value in points), unit)}"
    return [(f"{name}: {numbers(points)}", color, points) for name, color, points in named]


def panel(definition, series, annotations, span, x, y, width, height):
    parts = head_of_panel(definition, x, y, width)
    unit = definition["fieldConfig"]["defaults"]["unit"]
    middle = (x + width / 2, y + height / 2 + 14)
    if definition["type"] == "table" and any(series):
        return parts + table(definition, series, x, y, width, height)
    named = []
    for target, results in zip(definition["targets"], series):
        for result in results:
            named.append((legend_of(target, result["metric"]), points_of(result)))
    named = [(name, points) for name, points in named if points]
    if not named:
        return parts + [text(*middle, "No data", 13, "#959da5", "middle")]
    if definition["type"] == "stat":
        return parts + stat(definition, named, x, y, width, height)
    if definition["type"] == "heatmap":
        drawing = Drawing(x + 74, y + 34, width - 90, height - 60, span)
        return parts + heatmap(drawing, dict(named)) + annotated(drawing, annotations)
    named.sort(key=lambda line: line[0])
    colored = [(name, COLORS[index % len(COLORS)], points) for index, (name, points) in enumerate(named)]
    labelled = legend_with_numbers(definition, colored)
    n_lines = n_legend_lines(labelled, width - 24)
    drawing = Drawing(x + 64, y + 34, width - 80, height - 66 - 15 * n_lines, span)
    minimum = definition["fieldConfig"]["defaults"].get("min")
    parts += lines(drawing, colored[:SERIES_MAX], unit, minimum, limits_of(definition))
    parts += annotated(drawing, annotations)
    return parts + legend(labelled, x + 12, y + height - 15 * n_lines + 3, width - 24)[0]


def events_of(annotation, series):
    """The begin and the end of each event, as Grafana finds them: values that are instants, or times with a value above
    0, of which those that are no longer than a step apart are one event."""
    step, events = int(annotation["step"].removesuffix("s")), []
    for result in series:
        times = {value / 1000 if annotation["useValueForTime"] else time for time, value in points_of(result) if value > 0}
        for time in sorted(times):
            if events and 0 <= time - events[-1][1] <= step:
                events[-1][1] = time
            else:
                events.append([time, time])
    return events


def head_of_dashboard(definition, annotations, note, width):
    parts = [
        text(MARGIN, 32, definition["title"], 20, weight="600"),
        text(MARGIN, 56, definition["description"], 13, "#57606a"),
        text(width - MARGIN, 32, note, 12, "#57606a", "end"),
    ]
    at = width - MARGIN
    for link in reversed(definition["links"]):
        title = f"{link['title']} {'▾' if link['asDropdown'] else '↗'}"
        label = text(at, 56, title, 12, LINK, "end")
        parts.append(linked(link["url"], label) if link["url"] else label)
        at -= 24 + 6.6 * len(title)
    at = MARGIN
    for annotation, color in annotations:
        parts.append(f'<path d="M{at} 86h9l-4.5 -7z" fill="{color}"/>')
        parts.append(text(at + 14, 86, annotation["name"], 12, "#444d56"))
        at += 34 + 7 * len(annotation["name"])
    return parts


def dashboard(definition, results, span):
    bottom = max(part["gridPos"]["y"] + part["gridPos"]["h"] for part in definition["panels"])
    width, height = 24 * COLUMN + 2 * MARGIN, HEAD + bottom * LINE + MARGIN
    begin = datetime.datetime.fromtimestamp(span[0], datetime.timezone.utc)
    note = (f"Drawn from the dashboard's JSON and the results of a run on {begin:%Y-%m-%d}, {begin:%H:%M} UTC. "
            "Not drawn by Grafana.")
    named = [(annotation, NAMED[annotation["iconColor"]]) for annotation in definition["annotations"]["list"]]
    annotations = []
    for annotation, color in named:
        series = [result["series"] for result in results if result.get("annotation") == annotation["name"]]
        annotations.append((color, events_of(annotation, sum(series, []))))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Inter, Helvetica, Arial, sans-serif">',
        box(0, 0, width, height, "#f4f5f7"),
    ] + head_of_dashboard(definition, named, note, width)
    for part in definition["panels"]:
        grid = part["gridPos"]
        x, y = MARGIN + grid["x"] * COLUMN, HEAD + grid["y"] * LINE
        if part["type"] == "row":
            parts.append(text(x, y + 23, part["title"], 15, weight="600"))
            continue
        series = [result["series"] for result in results if result.get("panel") == part["id"]]
        parts.append("<g>" + "".join(
            panel(part, series, annotations, span, x, y, grid["w"] * COLUMN - GAP, grid["h"] * LINE - GAP)) + "</g>")
    return "\n".join(parts) + "\n</svg>\n"


def main():
    results_file, folder = sys.argv[1:]
    run = json.loads(pathlib.Path(results_file).read_text())
    pathlib.Path(folder).mkdir(exist_ok=True)
    for file in sorted(DASHBOARDS.glob("*.json")):
        results = [result for result in run["results"] if result["dashboard"] == file.stem]
        drawn = dashboard(json.loads(file.read_text()), results, (run["from"], run["to"]))
        (pathlib.Path(folder) / f"{file.stem}.svg").write_text(drawn)


if __name__ == "__main__":
    main()
