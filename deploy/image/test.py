"""Builds the image, and runs the controller in it like a container engine, against the test bed.

Checks the layout: size, user, labels, licences, bill of materials, man pages, completions. Then unpacks the layer and
starts the binary in that root: read-only, as the user of the image, with a host name of the API server that only DNS
resolves. A minutely CronJob must get its Job. Without root, only the layout is checked.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LAYOUT = SOURCE / "target/image/oci"
# A separate loopback address for the DNS server, which must use port 53.
DNS_ADDRESS = "127.0.0.153"
HOST = "kubernetes.default.svc"
CRON_JOB = {
    "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "from-the-image", "namespace": "default"},
    "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}}},
}


def blob(descriptor):
    data = (LAYOUT / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    assert "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"], descriptor
    assert len(data) == descriptor["size"], descriptor
    return data


def check_layout():
    """Returns the configuration of the image and its files as an archive."""
    manifest = json.loads(blob(json.loads((LAYOUT / "index.json").read_text())["manifests"][0]))
    config = json.loads(blob(manifest["config"]))
    compressed = blob(manifest["layers"][0])
    assert len(compressed) < 15_000_000, len(compressed)
    archive = gzip.decompress(compressed)
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(archive).hexdigest()]
    assert config["config"]["User"] == "65532:65532", config
    labels = config["config"]["Labels"]
    assert labels["org.opencontainers.image.revision"], labels
    containerfile = (SOURCE / "deploy/image/Containerfile").read_text()
    for label in ["title", "description", "licenses", "version"]:
        text = f'org.opencontainers.image.{label}="{labels[f"org.opencontainers.image.{label}"]}"'
        assert text in containerfile, text
    tar = tarfile.open(fileobj=io.BytesIO(archive))
    bom = json.load(tar.extractfile("sbom.cdx.json"))
    names = {component["name"] for component in bom["components"]}
    assert bom["bomFormat"] == "CycloneDX" and {"tokio", "rustls", "glibc"} <= names and "apisim" not in names, names
    assert all(component.get("licenses") for component in bom["components"])
    for command in ["run", "next", "explain", "check", "shards", "ui", "report", "freeze", "thaw"]:
        page = tar.extractfile(f"usr/share/man/man1/cronwheel-{command}.1").read().decode()
        assert f".TH cronwheel-{command} 1" in page and page.count("\n") > 20, page
    assert "cronwheel\\-shards(1)" in tar.extractfile("usr/share/man/man1/cronwheel.1").read().decode()
    completions = ["bash-completion/completions/cronwheel", "fish/vendor_completions.d/cronwheel.fish"]
    for path in [*completions, "zsh/site-functions/_cronwheel"]:
        assert "explain" in tar.extractfile(f"usr/share/{path}").read().decode(), path
    texts = tar.extractfile("licenses/libraries").read().decode()
    missing = [name for name in names - {"rust-std"} if f"{name} " not in texts]
    assert not missing, missing
    return config["config"], tar


def answer_queries(server):
    """A DNS server with one name."""
    while True:
        query, client = server.recvfrom(512)
        labels, position = [], 12
        while query[position]:
            labels.append(query[position + 1:position + 1 + query[position]].decode())
            position += 1 + query[position]
        question, kind = query[12:position + 5], int.from_bytes(query[position + 1:position + 3], "big")
        is_known = ".".join(labels) == HOST
        n_answers = int(is_known and kind == 1)
        answer = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04" + bytes([127, 0, 0, 1])
        flags = b"\x81\x80" if is_known else b"\x81\x83"
        head = query[:2] + flags + b"\x00\x01" + n_answers.to_bytes(2, "big") + b"\x00" * 4
        server.sendto(head + question + answer * n_answers, client)


def testbed(*arguments):
    command = ["cargo", "run", "--quiet", "--package", "testbed", "--", "--name", "image", *arguments]
    return subprocess.run(command, check=True, cwd=SOURCE, stdout=subprocess.PIPE, text=True).stdout


def kubeconfig(path):
    """The text of a kubeconfig with embedded files and with the host name of the server."""
    config = json.loads(pathlib.Path(path).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    for entry in [cluster, user]:
        for key in ["certificate-authority", "client-certificate", "client-key"]:
            if key in entry:
                entry[f"{key}-data"] = base64.b64encode(pathlib.Path(entry.pop(key)).read_bytes()).decode()
    cluster["server"] = f"https://{HOST}:{cluster['server'].rsplit(':')[-1]}"
    return json.dumps(config)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(root, config, port):
    """Starts the image's entry point in its root, which is mounted read-only, with /proc as in a container."""
    arguments = [*config["Entrypoint"], "run", "--kubeconfig=/kubeconfig", f"--listen=127.0.0.1:{port}"]
    mounts = (
        f"mount --bind {root} {root} && mount -o remount,bind,ro {root} && mount -t proc proc {root}/proc && "
        f"exec chroot --userspec={config['User']} {root} \"$@\""
    )
    return subprocess.Popen(["unshare", "--mount", "sh", "-c", mounts, "sh", *arguments], env={})


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def wait(what, seconds, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.5)
    raise SystemExit(f"not within {seconds} s: {what}")


def check_process(process):
    """Checks that the process has the user of the image, no capabilities, and a read-only root."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text().split("\n")
    fields = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    assert fields["Uid"].split() == ["65532"] * 4, fields["Uid"]
    assert fields["Gid"].split() == ["65532"] * 4, fields["Gid"]
    assert int(fields["CapEff"], 16) == 0, fields["CapEff"]
    mounts = pathlib.Path(f"/proc/{process.pid}/mountinfo").read_text().splitlines()
    # In the root of the process, its own root is "/".
    own = next(line.split() for line in mounts if line.split()[4] == "/")
    assert own[5].split(",")[0] == "ro", own


def run(root, config):
    kubectl = lambda *arguments: testbed("kubectl", "--", *arguments)
    port = free_port()
    process = start(root, config, port)
    try:
        wait("ready", 60, lambda: process.poll() is None and get(port, "/readyz")[0] == 200)
        check_process(process)
        manifest = root.parent / "cron-job.json"
        manifest.write_text(json.dumps(CRON_JOB))
        kubectl("apply", "-f", str(manifest))
        jobs = wait("a Job", 90, lambda: kubectl("get", "jobs", "-o", "name", "-n", "default").split())
        assert jobs[0].startswith("job.batch/from-the-image-"), jobs
        metrics = get(port, "/metrics")[1]
        assert 'cronwheel_instant_outcomes_total{outcome="created"} 0' not in metrics
        assert "\nprocess_resident_memory_bytes " in metrics
        process.terminate()
        assert process.wait(30) == 0, process.returncode
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def main():
    subprocess.run([sys.executable, SOURCE / "deploy/image/build.py"], check=True)
    config, tar = check_layout()
    if os.geteuid() != 0:
        return print("The layout is right. The image was not run: that needs root, to mount its root and to change the user.")
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((DNS_ADDRESS, 53))
    threading.Thread(target=answer_queries, args=[server], daemon=True).start()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cronwheel-image-"))
    folder.chmod(0o755)
    root = folder / "root"
    try:
        tar.extractall(root)
        # The files that a kubelet adds to a container.
        (root / "proc").mkdir()
        (root / "etc/resolv.conf").write_text(f"nameserver {DNS_ADDRESS}\n")
        (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        usage = testbed("up", "--jobs", "none")
        path = next(part.split("=", 1)[1] for part in usage.split() if part.startswith("KUBECONFIG="))
        (root / "kubeconfig").write_text(kubeconfig(path))
        (root / "kubeconfig").chmod(0o644)
        run(root, config)
        print("The image runs: read-only, as its user, and finds the API server by name.")
    finally:
        testbed("down")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
