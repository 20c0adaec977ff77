#!/usr/bin/env python3
"""Runs the tests on a real API server against releases of Kubernetes, and writes docs/reference/versions.md.

    python3 testbed/versions.py                  # the newest release of each supported minor version; hours
    python3 testbed/versions.py 1.30.14 1.37.2   # these releases; the rows of others stay

Builds kube-apiserver, kube-controller-manager and kubectl of each release from the Go module proxy, once, into the cache
folder of the test bed, and runs `cargo test --test e2e -- cases::` with them. Writes the row of a release as soon as its
tests end, and exits with 1 if one fails. etcd and kwok are the pinned ones. So is kube-controller-manager or kubectl if
the proxy lacks a module of it: the row says which programs are of the release.

The module files are derived from those of the release. Kubernetes requires its staging modules at v0.0.0, so each of
them is replaced by the version of the same release. Go checks every download against the public checksum database.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

# The newest release of each supported minor version in the Go module proxy on 27 November 2026.
RELEASES = ["1.30.14", "1.31.14", "1.32.13", "1.33.13", "1.34.4", "1.35.4", "1.36.3", "1.37.2"]
PROGRAMS = ["kube-apiserver", "kube-controller-manager", "kubectl"]
ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/versions.md"
# The marks around the table in the page.
BEGIN, END = "<!-- written by testbed/versions.py -->\n", "<!-- end of the table -->\n"
HEAD = "| Version | Programs of the version | Date | Passed | Failed |\n|---|---|---|---|---|\n"
ENVIRONMENT = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOWORK": "off"}


def cache_folder():
    for variable, below in [("CRONWHEEL_TESTBED_CACHE", ""), ("XDG_CACHE_HOME", "cronwheel-testbed"), ("HOME", ".cache/cronwheel-testbed")]:
        if os.environ.get(variable):
            return Path(os.environ[variable]) / below
    sys.exit("no folder for the programs: set CRONWHEEL_TESTBED_CACHE, XDG_CACHE_HOME or HOME")


def module_file(release):
    """The go.mod of a release. Modules required at v0.0.0 are replaced by staging modules of the same minor version."""
    download = subprocess.run(
        ["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{release}"],
        capture_output=True, text=True, env=ENVIRONMENT, cwd=tempfile.gettempdir(),
    )
    answer = json.loads(download.stdout or "{}")
    if "GoMod" not in answer:
        sys.exit(f"Kubernetes {release}: {answer.get('Error') or download.stderr.strip()}; give a release such as 1.30.14")
    text = Path(answer["GoMod"]).read_text()
    staging = sorted(set(re.findall(r"^\s+(k8s\.io/[a-z0-9-]+) v0\.0\.0(?!-)", text, re.MULTILINE)))
    staging_version = "v0." + release.split(".", 1)[1]
    go_version = re.search(r"^go (\d+\.\d+)", text, re.MULTILINE)[1]
    lines = ["module cronwheel.dev/testbed/kubernetes", "", "go 1.26.0", "", f"godebug default=go{go_version}", ""]
    lines += [f"require k8s.io/kubernetes v{release}", "", "replace ("]
    lines += [f"\t{name} => {name} {staging_version}" for name in staging] + [")", ""]
    return "\n".join(lines)


def build(release):
    """Builds the missing programs of a release. Returns their folder. Exits without kube-apiserver."""
    folder = cache_folder() / f"kubernetes-{release}"
    missing = [program for program in PROGRAMS if not (folder / program).is_file()]
    if not missing:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    version = "k8s.io/component-base/version"
    major, minor, _ = release.split(".")
    stamps = {"gitVersion": f"v{release}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean", "gitCommit": "unknown"}
    flags = "-s -w " + " ".join(f"-X {version}.{name}={value}" for name, value in stamps.items())
    with tempfile.TemporaryDirectory(dir=folder) as workshop:
        (Path(workshop) / "go.mod").write_text(module_file(release))
        for program in missing:
            print(f"building {program} {release}", file=sys.stderr, flush=True)
            package = f"k8s.io/kubernetes/cmd/{program}"
            command = ["go", "build", "-trimpath", "-ldflags", flags, "-o", program, package]
            if subprocess.run(command, cwd=workshop, env=ENVIRONMENT).returncode == 0:
                (Path(workshop) / program).rename(folder / program)
                continue
            problem = f"Kubernetes {release}: {program} does not build with this Go, see above"
            if program == PROGRAMS[0]:
                sys.exit(problem)
            print(f"{problem}; the pinned one is used", file=sys.stderr, flush=True)
    return folder


def programs(folder):
    """The cell with the programs that are of the release."""
    present = [program for program in PROGRAMS if (folder / program).is_file()]
    return "all" if present == PROGRAMS else ", ".join(present)


def cells(output):
    """The cells of a row, from the output of the tests: how many passed, and which failed. None without a result."""
    result = re.search(r"test result: \w+\. (\d+) passed; (\d+) failed;", output)
    if not result:
        return None
    passed, failed = map(int, result.groups())
    names = re.search(r"\nfailures:\n((?:    \S+\n)+)", output)
    names = sorted(name.rsplit("::", 1)[-1] for name in names[1].split()) if names else []
    return [f"{passed} of {passed + failed}", ", ".join(f"`{name}`" for name in names)]


def with_row(page, row):
    """The page with a row in place of the one of the same release. The newest release comes first."""
    before, rest = page.split(BEGIN)
    table, after = rest.split(END)
    lines = [line for line in table.strip().splitlines()[2:] if not line.startswith(f"| {row[0]} |")]
    lines.append(f"| {' | '.join(row)} |")
    number = lambda line: [int(part) for part in line.split("|")[1].split(".")]
    rows = "\n".join(sorted(lines, key=number, reverse=True))
    return f"{before}{BEGIN}\n{HEAD}{rows}\n\n{END}{after}"


def test(folder):
    """Runs the tests with the programs of a folder, prints their output, and returns it."""
    command = ["cargo", "test", "--quiet", "--test", "e2e", "--", "cases::"]
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(folder)}
    output = []
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as tests:
        for line in tests.stdout:
            print(line, end="", flush=True)
            output.append(line)
    return "".join(output)


def main():
    releases = sys.argv[1:] or RELEASES
    if not all(re.fullmatch(r"1\.\d+\.\d+", release) for release in releases):
        sys.exit(__doc__)
    failed = []
    for release in releases:
        folder = build(release)
        result = cells(test(folder))
        if result:
            PAGE.write_text(with_row(PAGE.read_text(), [release, programs(folder), str(date.today()), *result]))
        if not result or result[1]:
            failed.append(release)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
