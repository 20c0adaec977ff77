"""Tests of the scripts of a release, without a build: `python3 release/test_release.py`, a part of `make lint`."""

import json
import pathlib
import re
import tempfile
import unittest

import archive
import bill_of_materials
import chart
import checksums
import image_index
import krew
import notes
import tools
import version

CHANGELOG = """# Changelog

## 0.2.0 (unreleased)

- A [page](docs/reference/page.md#history), a [site](https://example.org), [below](#here).

## 0.1.0 (2026-12-01)

- First.
"""


def write_image(folder, architecture):
    """Writes a layout as the image script does, with a binary that only has a name."""
    contents = {"cronwheel": (0o755, architecture.encode())}
    target = {"amd64": "x86_64", "arm64": "aarch64"}[architecture] + "-unknown-linux-gnu"
    archive.build.output = lambda *command, **_: "path+file:///src#cronwheel@0.1.0" if command[0] == "cargo" else ""
    return archive.build.write_layout(folder / architecture, contents, target)[0]


class Notes(unittest.TestCase):
    def test_section_ends_at_the_next_version(self):
        self.assertEqual(notes.section(CHANGELOG, "0.1.0"), ("2026-12-01", "- First.\n"))
        remark, body = notes.section(CHANGELOG, "0.2.0")
        self.assertEqual((remark, body.count("\n")), ("unreleased", 1))

    def test_missing_or_empty_section_is_an_error(self):
        for changelog in [CHANGELOG.replace("0.1.0", "0.1.01"), CHANGELOG.replace("- First.", "")]:
            with self.assertRaises(KeyError):
                notes.section(changelog, "0.1.0")

    def test_only_links_to_files_become_absolute(self):
        text = notes.notes(CHANGELOG, "0.2.0", "https://host/blob/v0.2.0", "registry.example/c@sha256:1")
        self.assertIn("[page](https://host/blob/v0.2.0/docs/reference/page.md#history)", text)
        self.assertIn("[site](https://example.org), [below](#here)", text)
        self.assertIn("Image: `registry.example/c@sha256:1`.", text)


class Version(unittest.TestCase):
    def test_files_of_the_tree_agree(self):
        self.assertRegex(version.current(), r"^\d+\.\d+\.\d+$")
        self.assertTrue(notes.section(version.read("CHANGELOG.md"), version.current()))

    def test_each_file_that_disagrees_is_named(self):
        files = ['[workspace.package]\nversion = "0.2.0"\n', "version: 0.2.0\nappVersion: 0.1.0\n", 'image.version="0.2.0"']
        expected = ["appVersion of the chart is 0.1.0, not 0.2.0"]
        self.assertEqual(version.disagreements(version.stated(*files)), expected)

    def test_tag_needs_its_version_and_a_date(self):
        self.assertEqual(version.refusals_of_tag("v0.1.0", "0.1.0", CHANGELOG), [])
        self.assertIn("the tag is v0.1.1", version.refusals_of_tag("v0.1.1", "0.1.0", CHANGELOG)[0])
        self.assertIn("no date for 0.2.0", version.refusals_of_tag("v0.2.0", "0.2.0", CHANGELOG)[0])
        self.assertIn("no section of 0.3.0", version.refusals_of_tag("v0.3.0", "0.3.0", CHANGELOG)[0])


class ImageIndex(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        original = archive.build.output
        self.addCleanup(lambda: setattr(archive.build, "output", original))

    def test_index_has_both_architectures_and_all_their_blobs(self):
        digests = [write_image(self.folder, name) for name in ["arm64", "amd64"]]
        layouts, joined = [self.folder / "arm64", self.folder / "amd64"], self.folder / "joined"
        manifests = image_index.join(layouts, joined)
        self.assertEqual([each["platform"]["architecture"] for each in manifests], ["amd64", "arm64"])
        self.assertEqual({each["digest"] for each in manifests}, set(digests))
        self.assertEqual(image_index.findings(joined), [])
        index = json.loads((joined / "index.json").read_text())
        self.assertEqual(index["annotations"]["org.opencontainers.image.version"], "0.1.0")
        self.assertNotIn("annotations", index["manifests"][0])

    def test_changed_missing_and_foreign_blobs_are_found(self):
        write_image(self.folder, "amd64")
        layout = self.folder / "amd64"
        blobs = layout / "blobs/sha256"
        (blobs / ("0" * 64)).write_text("foreign")
        self.assertEqual(image_index.findings(layout), [f"sha256:{'0' * 64} belongs to no image"])
        path = blobs / image_index.images(layout)[0]["digest"].removeprefix("sha256:")
        path.write_bytes(path.read_bytes() + b" ")
        self.assertIn("differs from its descriptor", image_index.findings(layout)[0])
        path.unlink()
        self.assertEqual(len(image_index.findings(layout)), 1)

    def test_architecture_occurs_once(self):
        write_image(self.folder, "amd64")
        with self.assertRaises(ValueError):
            image_index.join([self.folder / "amd64"] * 2, self.folder / "joined")


class Files(unittest.TestCase):
    def test_archive_has_the_program_and_its_licence_but_no_accounts(self):
        image = ["cronwheel", "etc/passwd", "licenses/cronwheel", "licenses/libraries", "usr/share/man/man1/cronwheel.1"]
        names = archive.archive_files({name: (0o644, b"") for name in image})
        self.assertEqual(set(names), {"cronwheel", "LICENSE", "licenses/libraries", "share/man/man1/cronwheel.1"})

    def test_checksums_are_those_of_sha256sum(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a").write_bytes(b"")
            expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n"
            self.assertEqual(checksums.checksums(pathlib.Path(folder)), expected)

    def test_krew_manifest_names_the_archives(self):
        text = krew.manifest("0.1.0", "https://home", "https://host/v0.1.0", {"arm64": "b" * 64, "amd64": "a" * 64})
        self.assertIn("\n  version: v0.1.0\n", text)
        uris = re.findall(r"uri: (.*)\n    sha256: (.)", text)
        self.assertEqual(uris, [("https://host/v0.1.0/cronwheel-0.1.0-linux-amd64.tar.gz", "a"),
                                ("https://host/v0.1.0/cronwheel-0.1.0-linux-arm64.tar.gz", "b")])
        short = re.search(r"shortDescription: (.*)", text)[1]
        self.assertLessEqual(len(short), 50)

    def test_chart_names_the_repository_of_the_release(self):
        values = (chart.CHART / "values.yaml").read_text()
        changed = chart.with_repository(values, "registry.example/team/cronwheel")
        differing = [new for old, new in zip(values.splitlines(), changed.splitlines(), strict=True) if old != new]
        self.assertEqual(differing, ["  repository: registry.example/team/cronwheel"])
        with self.assertRaises(ValueError):
            chart.with_repository("image: {}\n", "a")

    def test_helm_is_that_of_the_test_bed(self):
        self.assertRegex(tools.version_in_module((tools.MODULE_OF_HELM / "go.mod").read_text(), "helm.sh/helm/v4"), r"^v4\.")


class Workflows(unittest.TestCase):
    TEXTS = {path.name: path.read_text() for path in (version.SOURCE / ".github/workflows").glob("*.yml")}

    def test_actions_are_pinned_by_commit_with_their_version(self):
        lines = [line for text in self.TEXTS.values() for line in re.findall(r"uses: (.*)", text)]
        self.assertGreater(len(lines), 10)
        unpinned = [line for line in lines if not re.fullmatch(r"\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)]
        self.assertEqual(unpinned, ["./.github/workflows/test.yml"])

    def test_each_job_states_its_permissions(self):
        for name, text in self.TEXTS.items():
            self.assertIn("\npermissions: {}\n", text, name)
            jobs = re.split(r"^  (?=[a-z-]+:\n)", text.split("\njobs:\n")[1], flags=re.MULTILINE)[1:]
            self.assertTrue(jobs, name)
            for job in jobs:
                self.assertIn("\n    permissions:\n", job, f"{name}: {job.splitlines()[0]}")

    def test_scripts_of_the_steps_exist(self):
        paths = {path for text in self.TEXTS.values() for path in re.findall(r"release/\w+\.py", text)}
        self.assertGreaterEqual(len(paths), 7)
        self.assertEqual([path for path in sorted(paths) if not (version.SOURCE / path).is_file()], [])


class BillOfMaterials(unittest.TestCase):
    LOCK = '[[package]]\nname = "tokio-util"\nversion = "0.7.1"\n[[package]]\nname = "own"\nversion = "1.0.0"\n'
    # Enough crates that the check is not blind.
    OTHERS = [(f"crate-{n}", "1.0.0") for n in range(bill_of_materials.N_NAMED_MIN)]
    BINARY = b"\0/cargo/registry/src/index-1/tokio-util-0.7.1/src/lib.rs\0/rustc/1/library/core/src/lib.rs" + b"".join(
        f"/cargo/registry/src/i/{name}-1.0.0/a.rs".encode() for name, _ in OTHERS)
    LOCK += "".join(f'[[package]]\nname = "{name}"\nversion = "1.0.0"\n' for name, _ in OTHERS)

    def bill(self, *names):
        parts = [{"name": name, "version": number, "purl": "pkg:cargo/x", "licenses": ["MIT"]} for name, number in [*names, *self.OTHERS]]
        own = {"name": "own", "version": "1.0.0", "purl": "pkg:cargo/own"}
        return {"components": [*parts, {"name": "glibc", "version": "2", "licenses": ["LGPL"]}], "metadata": {"component": own}}

    def test_complete_bill_has_no_findings(self):
        bill = self.bill(("tokio-util", "0.7.1"))
        self.assertEqual(bill_of_materials.findings(bill, self.LOCK, self.BINARY), [])

    def test_missing_and_unknown_crates_are_found(self):
        found = bill_of_materials.findings(self.bill(("tokio-util", "0.7.2")), self.LOCK, self.BINARY)
        self.assertEqual(len(found), 2)
        self.assertIn("tokio-util 0.7.1 is in the binary", found[0])
        self.assertIn("tokio-util 0.7.2 is in the bill, and not in Cargo.lock", found[1])

    def test_binary_without_paths_is_refused(self):
        self.assertEqual(bill_of_materials.findings(self.bill(), self.LOCK, b""), ["the binary names only 0 crates"])

    def test_versions_with_build_metadata_are_read(self):
        path = b"/cargo/registry/src/i/tikv-jemalloc-sys-0.7.1+5.3.1-0-g81034/src/lib.rs"
        self.assertEqual(bill_of_materials.named_in(path), {("tikv-jemalloc-sys", "0.7.1+5.3.1-0-g81034")})


if __name__ == "__main__":
    unittest.main()
