//! The pinned modules agree with the stamped versions, and equal inputs have equal cache keys.

use super::*;

const MODULE: Module = Module {
    name: "m",
    go_mod: "module m",
    go_sum: "sums",
    sources: &[],
    ldflags: "-s -w",
    tags: "",
    programs: &[],
};

#[test]
fn the_cache_key_depends_on_the_release_the_modules_and_the_flags() {
    let release = "go version go1.26.8 linux/amd64";
    let key = cache_key(release, &MODULE);
    assert_eq!(key, cache_key(release, &MODULE));
    assert_eq!(key.len(), 16);
    let changed = |change: fn(&mut Module)| {
        let mut module = MODULE;
        change(&mut module);
        cache_key(release, &module)
    };
    let others = [
        cache_key("go version go1.26.9 linux/amd64", &MODULE),
        cache_key("go version go1.26.8 linux/arm64", &MODULE),
        changed(|module| module.go_mod = "module n"),
        changed(|module| module.go_sum = "sums2"),
        changed(|module| module.ldflags = "-s"),
        changed(|module| module.tags = "netgo"),
        changed(|module| (module.go_mod, module.go_sum) = ("module ms", "ums")),
        changed(|module| module.sources = &[("main.go", "package main")]),
    ];
    assert!(others.iter().all(|other| *other != key), "{key} {others:?}");
}

#[test]
fn go_versions_are_parsed_and_compared() {
    let check = |line: &str, expected: Option<GoVersion>| assert_eq!(parse_version(line), expected, "{line}");
    check("go version go1.26.8 linux/amd64", Some(GoVersion(1, 26)));
    check("go version go1.27rc1 darwin/arm64", Some(GoVersion(1, 27)));
    check("go version go1.9 linux/amd64", Some(GoVersion(1, 9)));
    check("go version devel +abc linux/amd64", None);
    check("", None);
    assert!(GoVersion(1, 9) < GO_MINIMUM && GoVersion(1, 26) >= GO_MINIMUM && GoVersion(2, 0) > GO_MINIMUM);
}

fn all_modules() -> impl Iterator<Item = Module> {
    CONTROL_PLANE
        .into_iter()
        .chain([SCHEDULER, SCHEDULE_ORACLE, CLOCKED_REFERENCE, HELM, PROMETHEUS])
}

#[test]
fn minimum_go_version_satisfies_every_module() {
    for module in all_modules() {
        let line = module.go_mod.lines().find_map(|line| line.strip_prefix("go ")).unwrap();
        let required = parse_version(&format!("go version go{line} linux/amd64")).unwrap();
        assert!(required <= GO_MINIMUM, "{}: {required}", module.name);
    }
}

#[test]
fn programs_belong_to_their_module_and_stamp_its_version() {
    for module in all_modules() {
        for program in module.programs {
            let own_name = module
                .go_mod
                .lines()
                .find_map(|line| line.strip_prefix("module "))
                .unwrap();
            let is_required = |line: &str| {
                let fields: Vec<&str> = line.split_ascii_whitespace().collect();
                fields
                    .windows(2)
                    .any(|pair| program.package.starts_with(pair[0]) && pair[1].starts_with('v'))
            };
            assert!(
                program.package.starts_with(own_name) || module.go_mod.lines().any(is_required),
                "{} in {}",
                program.package,
                module.name
            );
        }
    }
    assert!(CONTROL_PLANE[2].go_mod.contains("k8s.io/kubernetes v1.36.3"));
    assert!(CONTROL_PLANE[2].ldflags.contains("gitVersion=v1.36.3"));
    assert!(CONTROL_PLANE[1].go_mod.contains("sigs.k8s.io/kwok v0.8.0"));
    assert!(HELM.go_mod.contains("helm.sh/helm/v4 v4.3.1"));
    assert!(PROMETHEUS.go_mod.contains("github.com/prometheus/prometheus v0.316.0"));
    assert!(PROMETHEUS.ldflags.contains("Version=3.16.0"));
}

#[test]
fn build_strips_paths_and_ignores_goflags() {
    let command = build_command(Path::new("/w"), &CONTROL_PLANE[0], &CONTROL_PLANE[0].programs[0]);
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let expected = [
        "build",
        "-trimpath",
        "-ldflags",
        "-s -w",
        "-o",
        "/w/etcd",
        "go.etcd.io/etcd/server/v3",
    ];
    assert_eq!(arguments, expected);
    assert!(
        command
            .get_envs()
            .any(|(name, value)| name == "GOFLAGS" && value.is_some_and(std::ffi::OsStr::is_empty))
    );
}
