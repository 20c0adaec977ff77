"""Queries a Prometheus for the data of the dashboards. Prints it in the format that tests/dashboard_pictures.py draws.

    python3 tests/dashboard_results.py http://127.0.0.1:9090 10 > RESULTS.json

It sends the same queries as `make dashboard-pictures` (tests/e2e/dashboards/panels.rs), for the last minutes.
"""

import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from dashboard_pictures import DASHBOARDS, STEP

RATE_INTERVAL = "1m"
# Ignores proxies in the environment.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def queries():
    """The dashboard, the panel and the expression of every query."""
    for file in sorted(DASHBOARDS.glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel.get("targets", []):
                yield file.stem, panel, target["expr"]


def with_values(expression, seconds):
    """An expression with values in place of Grafana's variables."""
    values = {
        "$__rate_interval": RATE_INTERVAL,
        "$__range": f"{seconds}s",
        "$cluster": ".*",
        "$job": ".*",
        "$instance": ".*",
    }
    for variable, value in values.items():
        expression = expression.replace(variable, value)
    return expression


def fetch(prometheus, kind, parameters):
    """The series that Prometheus returns for a query."""
    url = f"{prometheus}/api/v1/{kind}?{urllib.parse.urlencode(parameters)}"
    try:
        with OPENER.open(url, timeout=30) as response:
            return json.load(response)["data"]["result"]
    except urllib.error.HTTPError as error:
        sys.exit(f"Prometheus refuses {parameters['query']}: {error.read().decode()}")
    except OSError as error:
        sys.exit(f"{prometheus} does not respond: {error}")


def series(prometheus, panel, expression, begin, end):
    """The data of a panel's query: the latest value in a stat panel, otherwise all values in the period."""
    query = {"query": with_values(expression, end - begin)}
    if panel["type"] == "stat":
        return fetch(prometheus, "query", query | {"time": end})
    return fetch(prometheus, "query_range", query | {"start": begin, "end": end, "step": STEP})


def main():
    prometheus, minutes = sys.argv[1:]
    end = int(time.time())
    begin = end - 60 * int(minutes)
    results = []
    for dashboard, panel, expression in queries():
        data = series(prometheus.rstrip("/"), panel, expression, begin, end)
        results.append({"dashboard": dashboard, "panel": panel["id"], "series": data})
    json.dump({"from": begin, "to": end, "results": results}, sys.stdout)
    n_with_data = sum(bool(result["series"]) for result in results)
    print(f"{n_with_data} of {len(results)} queries have data", file=sys.stderr)


if __name__ == "__main__":
    main()
