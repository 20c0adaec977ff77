"""Runs every step of a release that needs no repository host and no identity, for the architecture of this machine.

    python3 release/dry_run.py     # or `make release-dry-run`; writes target/release-dry-run

Image and chart are pushed to a registry on loopback, and krew installs the plugin from its archive. Not run: signatures,
attestations, the other architecture, and the upload.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import archive
import chart
import checksums
import image_index
import krew
import notes
import tools
import version

FOLDER = version.SOURCE / "target/release-dry-run"
FILES = FOLDER / "files"
# Addresses in the files that a dry run writes. They belong to nobody.
HOME = "https://repository.example/cronwheel"
ON_LOOPBACK = "--insecure"


def step(text):
    print(f"release-dry-run: {text}", flush=True)


def run(*command, **more):
    """Runs a command. Returns its output, which a failure also prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


@contextlib.contextmanager
def registry():
    """A registry in memory on a free port of loopback. Gives its address."""
    command = [tools.tool("crane"), "registry", "serve", "--address", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            for line in server.stdout:
                if found := re.search(r"port (\d+)", line):
                    yield f"127.0.0.1:{found[1]}"
                    return
            sys.exit("the registry on loopback did not start")
        finally:
            server.terminate()


def push_image(address, number, layouts):
    index = FOLDER / "image"
    image_index.join(layouts, index)
    if found := image_index.findings(index):
        sys.exit("\n".join(found))
    digest = image_index.digest_of((index / "index.json").read_bytes())
    pushed = image_index.push(index, f"{address}/team/cronwheel:{number}", ON_LOOPBACK)
    if pushed != digest:
        sys.exit(f"the registry has the index {pushed}, not {digest}")
    reference = f"{address}/team/cronwheel@{digest}"
    for image in image_index.images(index):
        platform = "/".join([image["platform"]["os"], image["platform"]["architecture"]])
        found = image_index.crane("digest", ON_LOOPBACK, "--platform", platform, reference)
        if found != image["digest"]:
            sys.exit(f"the registry has {found} for {platform}, not {image['digest']}")
        image_index.crane("validate", ON_LOOPBACK, "--remote", f"{address}/team/cronwheel@{found}")
    return digest


def push_chart(address, number):
    package = chart.package("registry.example/team/cronwheel", FILES)
    digest = chart.push(package, f"oci://{address}/team/charts", "--plain-http")
    rendered = chart.helm("template", "cronwheel", f"oci://{address}/team/charts/cronwheel", "--version", number,
                          "--plain-http", "--namespace", "kube-system")
    if f"registry.example/team/cronwheel:{number}" not in rendered:
        sys.exit("the pulled chart does not name the image of the release")
    return digest


def install_plugin(number, architecture):
    """Validates the krew manifest, installs the plugin from its archive, and runs it."""
    manifest = FOLDER / "cronwheel.yaml"
    run(tools.tool("validate-krew-manifest"), "-skip-install", "-manifest", manifest)
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"KREW_ROOT": home, "KREW_NO_UPGRADE_CHECK": "1"}
        path = FILES / archive.archive_name(number, architecture)
        run(tools.tool("krew"), "install", f"--manifest={manifest}", f"--archive={path}", env=environment,
            stdin=subprocess.DEVNULL)
        plugin = pathlib.Path(home) / "bin/kubectl-cronwheel"
        help_text = run(plugin, "explain", "--help", env=environment)
        if "Usage: kubectl cronwheel explain" not in help_text:
            sys.exit(f"the help of the plugin does not name it:\n{help_text}")
        if f"cronwheel {number} " not in run(plugin, "--version", env=environment):
            sys.exit("the plugin has another version")
        return run(plugin, "next", "0 0 29 2 *", env=environment).splitlines()[0]


def write_texts(number):
    """Release notes and krew manifest."""
    changelog = version.read("CHANGELOG.md")
    text = notes.notes(changelog, number, f"{HOME}/blob/v{number}")
    (FOLDER / "notes.md").write_text(text)
    if text.replace(f"{HOME}/blob/v{number}/", "") != notes.section(changelog, number)[1]:
        sys.exit(f"the release notes are not the section of {number} in CHANGELOG.md")
    manifest = krew.manifest(number, HOME, f"{HOME}/releases/download/v{number}", krew.checksums(FILES, number))
    (FOLDER / "cronwheel.yaml").write_text(manifest)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    number = version.current()
    step(f"version {number}")
    step("binary, bill of materials and image of this architecture")
    print("\n".join(run(sys.executable, version.SOURCE / "release/archive.py", "--output", FOLDER).splitlines()[-2:]))
    layouts = sorted(FOLDER.glob("image-*"))
    architecture = layouts[0].name.removeprefix("image-")
    with registry() as address:
        step(f"image index, pushed to loopback: {push_image(address, number, layouts)}")
        step(f"chart, pushed to loopback and pulled: {push_chart(address, number)}")
    write_texts(number)
    step("release notes and krew manifest")
    step(f"plugin installed by krew: {install_plugin(number, architecture)}")
    (FOLDER / "SHA256SUMS").write_text(checksums.checksums(FILES))
    run("sha256sum", "--check", "--strict", FOLDER / "SHA256SUMS", cwd=FILES)
    for path in sorted([*FOLDER.glob("*.*"), *FILES.iterdir(), FOLDER / "SHA256SUMS"]):
        print(f"{path.stat().st_size:>10} {path.relative_to(version.SOURCE)}")
    step("everything that runs here has passed. Not run: signatures, attestations, the other architecture, the upload")


if __name__ == "__main__":
    main()
