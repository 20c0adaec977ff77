"""Joins the images of several architectures to one image index, and pushes it.

    python3 release/image_index.py LAYOUT... --output DIR                   # writes an OCI layout, prints its digest
    python3 release/image_index.py LAYOUT... --output DIR --push REFERENCE  # also pushes it under this name and tag

Prints `digest=`, and `digest-ARCHITECTURE=` for each architecture, in the form of the outputs of a workflow's step.
"""

import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess

import tools

INDEX = "application/vnd.oci.image.index.v1+json"


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def blob(layout, descriptor):
    """A blob of a layout, after a check of its digest and size."""
    data = (layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    if digest_of(data) != descriptor["digest"] or len(data) != descriptor["size"]:
        raise ValueError(f"{layout}: {descriptor['digest']} differs from its descriptor")
    return data


def blobs_below(layout, manifest):
    """The digests and contents of all blobs of an image: manifest, configuration, layers."""
    content = json.loads(blob(layout, manifest))
    descriptors = [manifest, content["config"], *content["layers"]]
    return {descriptor["digest"]: blob(layout, descriptor) for descriptor in descriptors}


def images(layout):
    """The descriptors of the images of a layout."""
    return json.loads((layout / "index.json").read_text())["manifests"]


def with_platform(layout, manifest):
    """The descriptor of an image in an index: with its platform, without its name in the layout."""
    content = json.loads(blob(layout, manifest))
    config = json.loads(blob(layout, content["config"]))
    kept = {name: manifest[name] for name in ["mediaType", "digest", "size"]}
    return kept | {"platform": {"architecture": config["architecture"], "os": config["os"]}}, content["annotations"]


def join(layouts, output):
    """Writes the layout of the index. Returns its descriptors of images."""
    shutil.rmtree(output, ignore_errors=True)
    (output / "blobs/sha256").mkdir(parents=True)
    manifests, annotations = [], {}
    for layout in layouts:
        for image in images(layout):
            descriptor, annotations = with_platform(layout, image)
            manifests.append(descriptor)
            for digest, data in blobs_below(layout, image).items():
                (output / "blobs" / digest.replace(":", "/")).write_bytes(data)
    manifests.sort(key=lambda manifest: manifest["platform"]["architecture"])
    platforms = [tuple(manifest["platform"].values()) for manifest in manifests]
    if len(set(platforms)) < len(platforms):
        raise ValueError(f"an architecture occurs twice: {platforms}")
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": annotations}
    (output / "index.json").write_text(json.dumps(index, sort_keys=True, separators=(",", ":")))
    (output / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    return manifests


def findings(layout):
    """What is wrong with a layout: blobs that differ from their descriptors, are missing, or belong to no image."""
    found, expected = [], set()
    for image in images(layout):
        try:
            expected |= blobs_below(layout, image).keys()
        except (ValueError, OSError) as error:
            found.append(str(error))
    if not found:
        present = {f"sha256:{path.name}" for path in (layout / "blobs/sha256").iterdir()}
        found += [f"{digest} belongs to no image" for digest in sorted(present - expected)]
    return found


def crane(*arguments):
    """Runs crane. Returns its standard output."""
    done = subprocess.run([tools.tool("crane"), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"crane {arguments[0]}: {done.stderr}")
    return done.stdout.strip()


def push(layout, reference, *options):
    """Pushes a layout as an image index. Returns the digest that the registry has."""
    crane("push", "--index", *options, layout, reference)
    return crane("digest", *options, reference)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layouts", nargs="+", type=pathlib.Path, metavar="LAYOUT")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="the layout to write")
    parser.add_argument("--push", metavar="REFERENCE", help="the image's name and tag in a registry")
    arguments = parser.parse_args()
    manifests = join(arguments.layouts, arguments.output)
    digest = digest_of((arguments.output / "index.json").read_bytes())
    if found := findings(arguments.output):
        raise SystemExit("\n".join(found))
    if arguments.push and (pushed := push(arguments.output, arguments.push)) != digest:
        raise SystemExit(f"the registry has {pushed}, not {digest}")
    print(f"digest={digest}")
    for manifest in manifests:
        print(f"digest-{manifest['platform']['architecture']}={manifest['digest']}")


if __name__ == "__main__":
    main()
