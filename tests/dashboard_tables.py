"""The lines and columns of a table of a dashboard, as Grafana's transformations `merge` and `organize` make them."""

import math


def options_of(definition, name):
    return next((part["options"] for part in definition.get("transformations", []) if part["id"] == name), {})


def merged(definition, series):
    """The lines of a table: the labels of each series, and the value of each query with these labels."""
    lines = {}
    for target, results in zip(definition["targets"], series):
        for result in results:
            labels = {name: value for name, value in result["metric"].items() if name != "__name__"}
            line = lines.setdefault(tuple(sorted(labels.items())), dict(labels))
            value = float(result["value"][1])
            if math.isfinite(value):
                line[f"Value #{target['refId']}"] = value
    return list(lines.values())


def properties_of(definition, title):
    """The settings of a column, from the defaults of the panel and the overrides by its title."""
    field = definition["fieldConfig"]
    found = {"unit": field["defaults"].get("unit")}
    for override in field["overrides"]:
        if override["matcher"]["options"] == title:
            found |= {part["id"]: part["value"] for part in override["properties"]}
    return found


def columns(definition, lines):
    """The name of each column in the lines, its title and its settings, in their order. Labels that no series has are
    left out, and so is the name that Grafana gives to the value of a single query."""
    organized = options_of(definition, "organize")
    names = sorted(organized["renameByName"], key=lambda name: organized["indexByName"][name])
    is_shown = lambda name: name.startswith("Value #") or any(line.get(name) for line in lines)
    shown = [name for name in names if name != "Value" and is_shown(name)]
    titles = organized["renameByName"]
    return [(name, titles[name], properties_of(definition, titles[name])) for name in shown]


def sorted_lines(definition, lines):
    """The lines in the order of the table: by one column, and those without a value last."""
    titles = options_of(definition, "organize")["renameByName"]
    for order in reversed(definition["options"].get("sortBy", [])):
        name = next(name for name, title in titles.items() if title == order["displayName"] and name != "Value")
        sign = -1 if order["desc"] else 1
        lines = sorted(lines, key=lambda line: (name not in line, sign * line.get(name, 0)))
    return lines


def color_at(thresholds, value):
    """The colour of the last step that a value reaches."""
    reached = [step["color"] for step in thresholds["steps"] if step["value"] is None or value >= step["value"]]
    return reached[-1] if reached else None


def text_and_color(properties, value, formatted):
    """What a cell shows, and the colour of its ground; None for no colour."""
    if value is None:
        for mapping in properties.get("mappings", []):
            result = mapping["options"]["result"]
            return result["text"], result["color"]
        return "", None
    if isinstance(value, str):
        return value, None
    has_ground = properties.get("custom.cellOptions", {}).get("type") == "color-background"
    color = color_at(properties["thresholds"], value) if has_ground else None
    return formatted(value, properties["unit"], decimals=properties.get("decimals")), color
