"""Builds the image of cronwheel without a base image and without a container engine: an OCI layout with one layer.

The layer holds the static release binary, its man pages and completions, its licences, its bill of materials
(CycloneDX) and the files that glibc needs to resolve names. It has no times, owners or paths of the build machine.

    python3 deploy/image/build.py             # writes target/image/oci, and prints the digest
    python3 deploy/image/build.py --root DIR  # writes only the files, for a Containerfile
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import uuid

SOURCE = pathlib.Path(__file__).resolve().parents[2]
USER = 65532
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# A larger layer is an error.
LAYER_BYTES_MAX = 15_000_000


def output(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=SOURCE, **more).stdout.strip()


def triple():
    lines = output("rustc", "-vV").splitlines()
    host = next(line.split(": ")[1] for line in lines if line.startswith("host: "))
    return f"{host.split('-')[0]}-unknown-linux-gnu"


def commit():
    """The commit of the source tree, with a suffix if files differ from it. Empty without git."""
    if os.environ.get("CRONWHEEL_COMMIT"):
        return os.environ["CRONWHEEL_COMMIT"]
    try:
        name = output("git", "rev-parse", "HEAD", stderr=subprocess.DEVNULL)
        changed = output("git", "status", "--porcelain", "--untracked-files=no")
    except (subprocess.CalledProcessError, FileNotFoundError):
        return ""
    return name + ("-modified" if changed else "")


def build_binary(target):
    """Compiles the static binary without the feature `dev` and without paths of this machine."""
    cargo_home = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
    folders = [(SOURCE, "/src"), (cargo_home, "/cargo")]
    rust_flags = ["-C target-feature=+crt-static"] + [f"--remap-path-prefix={old}={new}" for old, new in folders]
    environment = os.environ | {
        "CARGO_PROFILE_RELEASE_DEBUG": "none",
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        "RUSTFLAGS": " ".join(rust_flags),
        "CFLAGS": " ".join(f"-ffile-prefix-map={old}={new}" for old, new in folders),
        "CRONWHEEL_COMMIT": commit(),
    }
    if target.startswith("aarch64"):
        # Kernels of arm64 have pages of 4, 16 or 64 KiB. jemalloc works with pages up to the size that it is built for, by
        # default that of the build machine.
        environment["JEMALLOC_SYS_WITH_LG_PAGE"] = "16"
    folder = SOURCE / "target/image"
    arguments = ["--release", "--locked", "--no-default-features", "--bin", "cronwheel"]
    subprocess.run(
        ["cargo", "build", *arguments, "--target", target, "--target-dir", folder],
        check=True, cwd=SOURCE, env=environment,
    )
    return folder / target / "release/cronwheel"


def packages(target):
    """The crates in the binary: the package itself first, then its run-time dependencies."""
    metadata = json.loads(output(
        "cargo", "metadata", "--format-version=1", "--locked", "--no-default-features", f"--filter-platform={target}"))
    by_id = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(id for id, package in by_id.items() if package["name"] == "cronwheel")
    selected = selected_packages(target)
    needs, waiting = {}, [root]
    while waiting:
        id = waiting.pop()
        if id in needs:
            continue
        of_run_time = [dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        needs[id] = [need for need in of_run_time if (by_id[need]["name"], by_id[need]["version"]) in selected]
        waiting += needs[id]
    order = [root] + sorted((id for id in needs if id != root), key=lambda id: (by_id[id]["name"], by_id[id]["version"]))
    return [(by_id[id], [by_id[need] for need in needs[id]]) for id in order]


def selected_packages(target):
    """Name and version of each crate that the features of the binary select. The metadata above also include crates
    that other members of the workspace select."""
    tree = output("cargo", "tree", "--locked", "--package=cronwheel", "--no-default-features", "--edges=normal",
                  "--prefix=none", "--format={p}", f"--target={target}")
    columns = (line.split() for line in tree.splitlines() if line.strip())
    return {(name, version.removeprefix("v")) for name, version, *_ in columns}


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def glibc():
    """The version of the linked glibc, and its licence text from the path that Debian uses."""
    version = output("ldd", "--version").splitlines()[0].split()[-1]
    text = pathlib.Path("/usr/share/doc/libc6/copyright")
    return version, text.read_text() if text.exists() else "GNU C Library: LGPL-2.1-or-later\n"


def bill_of_materials(crates):
    """CycloneDX 1.5."""
    own = crates[0][0]
    component = lambda package: {
        "type": "library", "bom-ref": reference(package), "purl": reference(package),
        "name": package["name"], "version": package["version"],
        **({"licenses": [{"expression": package["license"].replace("/", " OR ")}]} if package["license"] else {}),
    }
    linked = [
        {"type": "library", "bom-ref": "glibc", "name": "glibc", "version": glibc()[0],
         "licenses": [{"expression": "LGPL-2.1-or-later"}]},
        {"type": "library", "bom-ref": "rust-std", "name": "rust-std", "version": output("rustc", "--version").split()[1],
         "licenses": [{"expression": "MIT OR Apache-2.0"}]},
    ]
    needs = lambda dependencies: sorted({reference(package) for package in dependencies})
    bom = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": component(own) | {"type": "application"}},
        "components": [component(package) for package, _ in crates[1:]] + linked,
        "dependencies": [{"ref": reference(package), "dependsOn": needs(dependencies)} for package, dependencies in crates],
    }
    bom["dependencies"][0]["dependsOn"] += ["glibc", "rust-std"]
    # The serial number depends only on the contents.
    bom["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom, sort_keys=True))}"
    return json.dumps(bom, indent=1) + "\n"


def is_licence(path):
    name = path.name.lower()
    return path.is_file() and name.startswith(("license", "licence", "copying", "notice", "copyright", "unlicense"))


def licence_texts(crates):
    """Every licence text once, after the names of the crates that have it."""
    users = {}
    for package, _ in crates[1:]:
        folder = pathlib.Path(package["manifest_path"]).parent
        texts = [path.read_text(errors="replace") for path in sorted(folder.iterdir()) if is_licence(path)]
        for text in texts or [f"{package['name']} is published under {package['license']}, without a text.\n"]:
            users.setdefault(text, []).append(f"{package['name']} {package['version']}")
    users.setdefault(glibc()[1], []).append(f"glibc {glibc()[0]}")
    head = "Licences of the libraries in the binary. The bill of materials names the licence that each one is under.\n"
    parts = [f"{'=' * 80}\n{', '.join(names)}\n{'=' * 80}\n\n{text.strip()}\n" for text, names in users.items()]
    return "\n".join([head, *parts])


def printed_by(binary):
    """The man pages and completions that the binary prints, by their standard paths."""
    commands = {"usr/share/man/man1/cronwheel.1": ["man"]}
    for command in ["run", "next", "explain", "check", "shards", "ui", "report", "freeze", "thaw"]:
        commands[f"usr/share/man/man1/cronwheel-{command}.1"] = ["man", command]
    commands["usr/share/bash-completion/completions/cronwheel"] = ["completions", "bash"]
    commands["usr/share/fish/vendor_completions.d/cronwheel.fish"] = ["completions", "fish"]
    commands["usr/share/zsh/site-functions/_cronwheel"] = ["completions", "zsh"]
    # Help texts print the values of these variables.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POD_")}
    printed = lambda command: subprocess.run([binary, *command], check=True, stdout=subprocess.PIPE, env=environment).stdout
    return {path: (0o644, printed(command)) for path, command in commands.items()}


def files(target):
    """The files of the image: path, mode, contents."""
    crates = packages(target)
    binary = build_binary(target)
    return printed_by(binary) | {
        "cronwheel": (0o755, binary.read_bytes()),
        "etc/passwd": (0o644, f"cronwheel:x:{USER}:{USER}::/:/sbin/nologin\n".encode()),
        "etc/group": (0o644, f"cronwheel:x:{USER}:\n".encode()),
        "etc/nsswitch.conf": (0o644, b"hosts: files dns\n"),
        "licenses/cronwheel": (0o644, (SOURCE / "LICENSE").read_bytes()),
        "licenses/libraries": (0o644, licence_texts(crates).encode()),
        "sbom.cdx.json": (0o644, bill_of_materials(crates).encode()),
    }


def layer(contents):
    """A reproducible tar archive: sorted, without times and owners."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        folders = sorted({str(parent) for path in contents for parent in pathlib.PurePath(path).parents} - {"."})
        for path in folders:
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for path, (mode, data) in sorted(contents.items()):
            entry = tarfile.TarInfo(path)
            entry.mode, entry.size = mode, len(data)
            tar.addfile(entry, io.BytesIO(data))
    return archive.getvalue()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def write_layout(folder, contents, target):
    """Writes the OCI layout and returns the digest of the manifest."""
    version = output("cargo", "pkgid", "--package", "cronwheel").rsplit("#")[-1].rsplit("@")[-1]
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "blobs/sha256").mkdir(parents=True)

    def blob(kind, data):
        (folder / "blobs" / digest(data).replace(":", "/")).write_bytes(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(data), "size": len(data)}

    as_json = lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    archive = layer(contents)
    compressed = gzip.compress(archive, compresslevel=9, mtime=0)
    if len(compressed) > LAYER_BYTES_MAX:
        raise SystemExit(f"the layer has {len(compressed)} bytes, more than {LAYER_BYTES_MAX}")
    labels = {
        "org.opencontainers.image.title": "cronwheel",
        "org.opencontainers.image.description": "A CronJob controller for Kubernetes that starts every Job on time",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version,
        **({"org.opencontainers.image.revision": commit()} if commit() else {}),
    }
    config = blob("config.v1+json", as_json({
        "architecture": ARCHITECTURES[target.split("-")[0]], "os": "linux",
        "config": {"User": f"{USER}:{USER}", "Entrypoint": ["/cronwheel"], "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [digest(archive)]},
        "history": [{"created_by": "deploy/image/build.py"}],
    }))
    manifest = blob("manifest.v1+json", as_json({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": [blob("layer.v1.tar+gzip", compressed)], "annotations": labels,
    }))
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version}
    (folder / "oci-layout").write_bytes(as_json({"imageLayoutVersion": "1.0.0"}))
    (folder / "index.json").write_bytes(as_json({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]}))
    return manifest["digest"], len(compressed)


def write_root(folder, contents):
    for path, (mode, data) in contents.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(mode)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, help="write the files of the image into this folder instead")
    parser.add_argument("--layout", type=pathlib.Path, default=SOURCE / "target/image/oci", help="the OCI layout to write")
    arguments = parser.parse_args()
    target = triple()
    contents = files(target)
    if arguments.root:
        return write_root(arguments.root, contents)
    name, size = write_layout(arguments.layout, contents, target)
    print(f"{arguments.layout}: {name}, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
