#!/usr/bin/env python3
"""Measures `cronwheel ui` on a large cluster: memory, the time until everything is shown, and the answers.

    python3 tests/page_size.py target/release/cronwheel [CRONJOBS [ROUNDS]]

An API server in this process has the CronJobs with four Jobs each, and never changes anything. It answers lists in pages
and holds watches open, as the real one does. Objects have the size of those of a real one, with their managed fields.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAMESPACES = 500
# Minutes between two slots, and the schedule.
SCHEDULES = [(1, "* * * * *"), (5, "*/5 * * * *"), (60, "0 * * * *"), (15, "*/15 * * * *"), (120, "0 */2 * * *")]
VERSION = "1000"
NOW = datetime.now(timezone.utc).replace(second=0, microsecond=0)
CONTAINER = {
    "name": "work", "image": "registry.example.com/payments/work:1.42.0", "imagePullPolicy": "IfNotPresent",
    "args": ["--tenant", "payments", "--mode", "nightly"], "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(8)],
}
POD = {"metadata": {}, "spec": {
    "containers": [CONTAINER], "dnsPolicy": "ClusterFirst", "restartPolicy": "Never", "schedulerName": "default-scheduler",
    "securityContext": {}, "terminationGracePeriodSeconds": 30,
}}


def fields(value):
    """The managed fields of a value."""
    if not isinstance(value, dict):
        return {}
    return {f"f:{key}": fields(part) for key, part in value.items()}


def managed(manager, subresource, value, at):
    entry = {"manager": manager, "operation": "Update", "apiVersion": "batch/v1", "time": at, "fieldsType": "FieldsV1",
             "fieldsV1": fields(value)}
    return entry | ({"subresource": subresource} if subresource else {})


def text(at):
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def uid(number, minute):
    return f"{number:08x}-0000-4000-8000-{minute:012x}"


def last_slots(period):
    """The last three slots, and one of yesterday."""
    last = NOW - timedelta(minutes=int(NOW.timestamp()) // 60 % period)
    return [last - timedelta(minutes=period * (1200 // period))] + [last - timedelta(minutes=period * n) for n in (2, 1, 0)]


def cron_job(number):
    period, schedule = SCHEDULES[number % len(SCHEDULES)]
    spec = {"schedule": schedule, "timeZone": "Etc/UTC", "concurrencyPolicy": "Forbid", "suspend": False,
            "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {}, "spec": {"backoffLimit": 2, "template": POD}}}
    status = {"lastScheduleTime": text(last_slots(period)[-1]), "lastSuccessfulTime": text(last_slots(period)[-1])}
    created = text(NOW - timedelta(days=30))
    metadata = {
        "name": f"payments-job-{number}", "namespace": f"namespace-{number % NAMESPACES}", "uid": uid(number, 0),
        "resourceVersion": VERSION, "generation": 1, "creationTimestamp": created,
        "labels": {"app.kubernetes.io/name": "payments", "team": f"team-{number % 40}"},
        "managedFields": [managed("kubectl", "", {"spec": spec}, created),
                          managed("kube-controller-manager", "status", {"status": status}, created)],
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def job(number, place, slot):
    minute = int(slot.timestamp()) // 60
    name, created, end = f"payments-job-{number}", text(slot + timedelta(seconds=1)), text(slot + timedelta(seconds=20))
    is_failed = place == 0
    condition = {"type": "Failed", "reason": "BackoffLimitExceeded"} if is_failed else {"type": "Complete"}
    condition |= {"status": "True", "lastProbeTime": end, "lastTransitionTime": end}
    status = {"conditions": [condition], "startTime": created, "ready": 0, "terminating": 0}
    status |= {"failed": 1} if is_failed else {"succeeded": 1, "completionTime": end}
    labels = {"batch.kubernetes.io/controller-uid": uid(number, minute), "batch.kubernetes.io/job-name": f"{name}-{minute}"}
    spec = {"parallelism": 1, "completions": 1, "completionMode": "NonIndexed", "suspend": False, "backoffLimit": 2,
            "selector": {"matchLabels": labels}, "template": POD | {"metadata": {"labels": labels}}}
    metadata = {
        "name": f"{name}-{minute}", "namespace": f"namespace-{number % NAMESPACES}", "uid": uid(number, minute),
        "resourceVersion": VERSION, "generation": 1, "creationTimestamp": created,
        "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": text(slot)}, "labels": labels,
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": uid(number, 0),
                             "controller": True, "blockOwnerDeletion": True}],
        "managedFields": [managed("kube-controller-manager", "", {"spec": spec}, created),
                          managed("kube-controller-manager", "status", {"status": status}, end)],
    }
    return {"metadata": metadata, "spec": spec, "status": status}


class Cluster(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects = {}

    def log_message(self, *_):
        pass

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(address.query))
        objects = self.objects.get(address.path.rsplit("/", 1)[-1])
        if objects is None:
            self.answer(404, b'{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}')
        elif query.get("watch") in ("true", "1"):
            self.hold(int(query.get("timeoutSeconds", "290")))
        else:
            first = int(query.get("continue") or 0)
            end = first + int(query.get("limit") or len(objects))
            more = {"continue": str(end), "remainingItemCount": len(objects) - end} if end < len(objects) else {}
            head = json.dumps({"resourceVersion": VERSION} | more).encode()
            kind = address.path.rsplit("/", 1)[-1]
            kind = {"cronjobs": b"CronJobList", "jobs": b"JobList"}[kind]
            body = b'{"kind":"%s","apiVersion":"batch/v1","metadata":%s,"items":[' % (kind, head)
            self.answer(200, body + b",".join(objects[first:end]) + b"]}")

    def answer(self, code, body):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hold(self, seconds):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        time.sleep(seconds)
        self.wfile.write(b"0\r\n\r\n")


def memory(process, name):
    with open(f"/proc/{process.pid}/status") as status:
        return int(re.search(rf"{name}:\s+(\d+) kB", status.read()).group(1)) / 1024


def print_memory(process):
    all_memory, own, highest = (memory(process, name) for name in ("VmRSS", "RssAnon", "VmHWM"))
    print(f"memory: {all_memory:.0f} MiB, {own:.0f} MiB without the program's file, highest {highest:.0f} MiB", flush=True)


def processor_seconds(process):
    with open(f"/proc/{process.pid}/stat") as stat:
        parts = stat.read().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def get(url):
    begun = time.monotonic()
    with urllib.request.urlopen(url) as answer:
        body = answer.read().decode()
    return body, time.monotonic() - begun


def wait_until_shown(page, n_cron_jobs):
    tile = f"<b>{n_cron_jobs:,}</b>"
    while True:
        body, _ = get(page)
        if tile in body and "being listed" not in body:
            return
        time.sleep(1)


def measure_answers(page, rounds):
    routes = ["", "?page=150", "?q=0042", "?state=due", "?q=starts+between+02:00+and+03:00", "strip.json",
              "cronjobs/namespace-7/payments-job-7"]
    all_times = []
    for route in routes:
        times = sorted(get(page + route)[1] for _ in range(rounds))
        all_times += times
        print(f"/{route}: median {times[len(times) // 2] * 1e3:.0f} ms, longest {times[-1] * 1e3:.0f} ms", flush=True)
    all_times.sort()
    print(f"answers p99: {all_times[len(all_times) * 99 // 100] * 1e3:.0f} ms of {len(all_times)}")


def main():
    program, numbers = sys.argv[1], [int(number) for number in sys.argv[2:]]
    n_cron_jobs, rounds = (numbers + [20_000, 40][len(numbers):])[:2]
    encoded = lambda value: json.dumps(value, separators=(",", ":")).encode()
    Cluster.objects = {
        "cronjobs": [encoded(cron_job(number)) for number in range(n_cron_jobs)],
        "jobs": [encoded(job(number, place, slot)) for number in range(n_cron_jobs)
                 for place, slot in enumerate(last_slots(SCHEDULES[number % len(SCHEDULES)][0]))],
    }
    for kind, objects in Cluster.objects.items():
        print(f"{len(objects):,} {kind} of {sum(map(len, objects)) // len(objects):,} bytes")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Cluster)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = os.path.join(folder, "kubeconfig")
        with open(kubeconfig, "w") as file:
            json.dump({
                "apiVersion": "v1", "kind": "Config", "current-context": "size",
                "contexts": [{"name": "size", "context": {"cluster": "size", "user": "size"}}],
                "clusters": [{"name": "size", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                "users": [{"name": "size", "user": {}}],
            }, file)
        history = os.path.join(folder, "history.sqlite")
        begun = time.monotonic()
        page = subprocess.Popen([program, "ui", "--kubeconfig", kubeconfig, "--listen", "0", "--history", history],
                                stdout=subprocess.PIPE, text=True)
        try:
            address = page.stdout.readline().strip().rsplit(" ", 1)[-1] + "/"
            wait_until_shown(address, n_cron_jobs)
            print(f"shown after {time.monotonic() - begun:.1f} s, {processor_seconds(page):.1f} s of processor time")
            print_memory(page)
            time.sleep(20)
            print_memory(page)
            measure_answers(address, rounds)
            print_memory(page)
        finally:
            page.terminate()
            page.wait()


if __name__ == "__main__":
    main()
