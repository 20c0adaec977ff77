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
    """Of every query: the dashboard, the panel or annotation, the expression, and whether it is of now alone."""
    for file in sorted(DASHBOARDS.glob("*.json")):
        dashboard = json.loads(file.read_text())
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                yield file.stem, {"panel": panel["id"]}, target["expr"], target["instant"]
        for annotation in dashboard["annotations"]["list"]:
            yield file.stem, {"annotation": annotation["name"]}, annotation["expr"], False


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


def series(prometheus, expression, is_instant, begin, end):
    """The data of a query: the latest value, or all values in the period."""
    query = {"query": with_values(expression, end - begin)}
    if is_instant:
        return fetch(prometheus, "query", query | {"time": end})
    return fetch(prometheus, "query_range", query | {"start": begin, "end": end, "step": STEP})


def main():
    prometheus, minutes = sys.argv[1:]
    end = int(time.time())
    begin = end - 60 * int(minutes)
    results = []
    for dashboard, place, expression, is_instant in queries():
        data = series(prometheus.rstrip("/"), expression, is_instant, begin, end)
        results.append({"dashboard": dashboard, "series": data} | place)
    json.dump({"from": begin, "to": end, "results": results}, sys.stdout)
    n_with_data = sum(bool(result["series"]) for result in results)
    print(f"{n_with_data} of {len(results)} queries have data", file=sys.stderr)


if __name__ == "__main__":
    main()
