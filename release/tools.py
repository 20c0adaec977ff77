"""The pinned programs of a release. Go builds them once from its module proxy into target/release-tools, and checks
every download against the public checksum database.

    python3 release/tools.py crane     # builds the program if it is missing, and prints its path
"""

import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
FOLDER = SOURCE / "target/release-tools"
# Name: package and version. The module of the test bed pins helm.
TOOLS = {
    "actionlint": ("github.com/rhysd/actionlint/cmd/actionlint", "v1.7.12"),
    "crane": ("github.com/google/go-containerregistry/cmd/crane", "v0.22.1"),
    "helm": ("helm.sh/helm/v4/cmd/helm", None),
    "krew": ("sigs.k8s.io/krew/cmd/krew", "v0.4.3"),
    "validate-krew-manifest": ("sigs.k8s.io/krew/cmd/validate-krew-manifest", "v0.4.3"),
}
MODULE_OF_HELM = SOURCE / "testbed/modules/helm"


def version_in_module(go_mod, module):
    """The version of a module that a go.mod requires."""
    return re.search(rf"^(?:require )?\s*{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)[1]


def tool(name):
    """The path of a program."""
    package, version = TOOLS[name]
    in_module = version is None
    if in_module:
        version = version_in_module((MODULE_OF_HELM / "go.mod").read_text(), "helm.sh/helm/v4")
    folder = FOLDER / f"{name}-{version}"
    if not (folder / name).is_file():
        environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOBIN": str(folder)}
        command = ["go", "install", "-trimpath", "-ldflags=-s -w", package if in_module else f"{package}@{version}"]
        print(f"building {name} {version}", file=sys.stderr, flush=True)
        subprocess.run(command, check=True, cwd=MODULE_OF_HELM if in_module else "/", env=environment)
    return folder / name


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in TOOLS:
        sys.exit(f"{__doc__}\nPrograms: {', '.join(TOOLS)}")
    print(tool(sys.argv[1]))
