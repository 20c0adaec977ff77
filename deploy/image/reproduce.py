"""Builds the image in two folders with different names, each from scratch. Fails if the digests differ.

    python3 deploy/image/reproduce.py

The folders are copies of the files that git tracks, with uncommitted changes. If the digests differ, it prints the
differing files of the image. Each build takes about ten minutes on two cores.
"""

import gzip
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import build

FOLDERS = ["one", "another/one/with-a-longer-name"]


def copy_source(folder):
    for name in build.output("git", "ls-files", "-z").split("\0"):
        source, target = build.SOURCE / name, folder / name
        if name and source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def build_in(folder, commit):
    """Returns the digest of the image, and its files."""
    environment = os.environ | {"CRONWHEEL_COMMIT": commit}
    subprocess.run([sys.executable, folder / "deploy/image/build.py"], check=True, env=environment)
    layout = folder / "target/image/oci"
    blob = lambda descriptor: (layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    descriptor = json.loads((layout / "index.json").read_text())["manifests"][0]
    archive = gzip.decompress(blob(json.loads(blob(descriptor))["layers"][0]))
    tar = tarfile.open(fileobj=io.BytesIO(archive))
    files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
    return descriptor["digest"], files


def main():
    root = pathlib.Path(tempfile.mkdtemp(prefix="cronwheel-reproduce-"))
    commit, folders = build.commit(), [root / folder for folder in FOLDERS]
    try:
        # Both copies are made before the first build, because files may change during a build.
        for folder in folders:
            copy_source(folder)
        (first, files), (second, others) = [build_in(folder, commit) for folder in folders]
    finally:
        shutil.rmtree(root)
    if first != second:
        differing = sorted(name for name in files.keys() | others.keys() if files.get(name) != others.get(name))
        raise SystemExit(f"{first} and {second} differ: {', '.join(differing) or 'the configuration'}")
    print(f"Both folders give {first}.")


if __name__ == "__main__":
    main()
