#!/usr/bin/env python3
"""Runs the tests on a real API server against releases of Kubernetes other than the pinned one.

    python3 testbed/versions.py 1.30.14 1.37.2

Builds kube-apiserver, kube-controller-manager and kubectl of each release from the Go module proxy, once, into the cache
folder of the test bed, and runs `cargo test --test e2e -- cases::` with them. Prints one line for each
release and exits with 1 if one fails. etcd and kwok are the pinned ones.

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

PROGRAMS = ["kube-apiserver", "kube-controller-manager", "kubectl"]
ROOT = Path(__file__).resolve().parent.parent
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
    """Builds the missing programs of a release. Returns their folder."""
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
            if subprocess.run(command, cwd=workshop, env=ENVIRONMENT).returncode != 0:
                sys.exit(f"Kubernetes {release}: {program} does not build with this Go, see above")
            (Path(workshop) / program).rename(folder / program)
    return folder


def test(release):
    """Whether the tests pass against a release."""
    command = ["cargo", "test", "--quiet", "--test", "e2e", "--", "cases::"]
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(build(release))}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def main():
    releases = sys.argv[1:]
    if not releases or not all(re.fullmatch(r"1\.\d+\.\d+", release) for release in releases):
        sys.exit(__doc__)
    results = {release: test(release) for release in releases}
    for release, has_passed in results.items():
        print(f"{date.today()} Kubernetes {release}: {'passed' if has_passed else 'FAILED'}")
    sys.exit(0 if all(results.values()) else 1)


if __name__ == "__main__":
    main()
