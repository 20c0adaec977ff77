"""Prints the krew manifest of `kubectl cronwheel`, with the checksums of the archives in a folder.

    python3 release/krew.py --files DIR --download URL --homepage URL

The first URL is the address below which the archives of the release can be downloaded.
"""

import argparse
import hashlib
import pathlib

import archive
import version

HEAD = """\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: cronwheel
spec:
  version: v{version}
  homepage: {homepage}
  shortDescription: Explain when CronJobs run, or why they did not
  description: |
    Explains the CronJobs of any cluster, beside any controller:

    * explain: why a CronJob runs now or does not, and when it runs next, also for
      manifests in CI
    * next: a schedule in words, its next runs, and clock changes
    * ui, report: which runs were late, lost or failed, as a page or as text
    * check: whether a cluster is ready for the cronwheel controller, and whether
      the controller works

    These commands only read, except `check --canary`, which creates two namespaces
    for its test and removes them.
  platforms:
"""
PLATFORM = """\
  - selector:
      matchLabels:
        os: linux
        arch: {architecture}
    uri: {download}/{archive}
    sha256: {sha256}
    files:
    - from: cronwheel
      to: kubectl-cronwheel
    - from: LICENSE
      to: .
    bin: kubectl-cronwheel
"""


def manifest(number, homepage, download, checksums):
    """The manifest. `checksums` has the SHA-256 of the archive of each architecture."""
    platforms = [
        PLATFORM.format(architecture=architecture, download=download, sha256=sha256,
                        archive=archive.archive_name(number, architecture))
        for architecture, sha256 in sorted(checksums.items())
    ]
    return HEAD.format(version=number, homepage=homepage) + "".join(platforms)


def checksums(folder, number):
    """The SHA-256 of the archive of each architecture for which the folder has one."""
    paths = {name: folder / archive.archive_name(number, name) for name in archive.build.ARCHITECTURES.values()}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items() if path.exists()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=pathlib.Path, required=True, help="the folder of the archives")
    parser.add_argument("--download", required=True, help="the address below which they can be downloaded")
    parser.add_argument("--homepage", required=True, help="the address of the project")
    arguments = parser.parse_args()
    number = version.current()
    print(manifest(number, arguments.homepage, arguments.download, checksums(arguments.files, number)), end="")


if __name__ == "__main__":
    main()
