"""Builds the files of a release for the architecture of this machine.

    python3 release/archive.py --output DIR

Writes the image as an OCI layout into DIR/image-ARCHITECTURE, and into DIR/files the archive of the binary, with its
man pages, completions and licences, and its bill of materials (CycloneDX). Fails if the bill of materials disagrees with
the binary or with Cargo.lock.
"""

import argparse
import gzip
import json
import pathlib
import re
import sys

import bill_of_materials
import version

sys.path.append(str(version.SOURCE / "deploy/image"))
import build  # noqa: E402  the script of the image


def archive_name(number, architecture):
    return f"cronwheel-{number}-linux-{architecture}.tar.gz"


def bill_name(number, architecture):
    return f"cronwheel-{number}-linux-{architecture}.cdx.json"


def archive_files(image_files):
    """The files of the archive, from those of the image: without the files that only a root file system needs."""
    selected = {path: file for path, file in image_files.items() if not path.startswith("etc/")}
    selected["LICENSE"] = selected.pop("licenses/cronwheel")
    return {re.sub("^usr/", "", path): file for path, file in selected.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True, help="the folder to write")
    folder = parser.parse_args().output
    number, target = version.current(), build.triple()
    architecture = build.ARCHITECTURES[target.split("-")[0]]
    contents = build.files(target)
    (_, binary), (_, bill) = contents["cronwheel"], contents["sbom.cdx.json"]
    if found := bill_of_materials.findings(json.loads(bill), version.read("Cargo.lock"), binary):
        sys.exit("\n".join(found))
    digest, _ = build.write_layout(folder / f"image-{architecture}", contents, target)
    files = folder / "files"
    files.mkdir(parents=True, exist_ok=True)
    archive = gzip.compress(build.layer(archive_files(contents)), compresslevel=9, mtime=0)
    (files / archive_name(number, architecture)).write_bytes(archive)
    (files / bill_name(number, architecture)).write_bytes(bill)
    n_named = len(bill_of_materials.named_in(binary))
    print(f"bill of materials: {len(json.loads(bill)['components'])} components; the binary names {n_named} of them in paths")
    print(f"{files / archive_name(number, architecture)}: {len(archive) / 1e6:.1f} MB, image {digest}")


if __name__ == "__main__":
    main()
