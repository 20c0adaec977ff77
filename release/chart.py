"""Packages the Helm chart with the repository of its image, and pushes it.

    python3 release/chart.py --image-repository REPOSITORY --output DIR             # prints the path of the package
    python3 release/chart.py --image-repository REPOSITORY --output DIR --push URL  # URL begins with oci://

With --push, prints `digest=` and the digest of the pushed chart, in the form of the output of a workflow's step.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import tools
import version

CHART = version.SOURCE / "deploy/helm/cronwheel"


def with_repository(values, repository):
    """The text of values.yaml with another repository of the image."""
    pattern = re.compile(r"^(image:\n(?:  .*\n)*?  repository: )\S+$", re.MULTILINE)
    text, count = pattern.subn(lambda found: found[1] + repository, values)
    if count != 1:
        raise ValueError(f"values.yaml has {count} lines with the repository of the image")
    return text


def helm(*arguments):
    """Runs helm without the clusters of the user. Returns all its output."""
    command = [tools.tool("helm"), *arguments]
    environment = os.environ | {"KUBECONFIG": os.devnull}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"helm {arguments[0]}: {done.stdout}")
    return done.stdout


def package(repository, output):
    """Writes the package. Returns its path."""
    with tempfile.TemporaryDirectory() as workshop:
        copy = pathlib.Path(workshop) / "cronwheel"
        shutil.copytree(CHART, copy)
        values = copy / "values.yaml"
        values.write_text(with_repository(values.read_text(), repository))
        helm("lint", "--strict", copy)
        output.mkdir(parents=True, exist_ok=True)
        helm("package", copy, "--destination", output)
    return output / f"cronwheel-{version.current()}.tgz"


def push(path, url, *options):
    """Pushes a package. Returns its digest in the registry."""
    printed = helm("push", path, url, *options)
    return re.search(r"sha256:[0-9a-f]{64}", printed)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image-repository", required=True, help="the repository of the image, without a tag")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="the folder of the package")
    parser.add_argument("--push", metavar="URL", help="the folder of charts in a registry")
    arguments = parser.parse_args()
    path = package(arguments.image_repository, arguments.output)
    print(f"digest={push(path, arguments.push)}" if arguments.push else path)


if __name__ == "__main__":
    main()
