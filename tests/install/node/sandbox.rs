//! Starts a container as a process with its own root folder, which holds the program, `/proc` and the Pod's token.
//!
//! The root is in a mount namespace of the process, so it disappears with the process. The program is linked to the
//! libraries of this machine, which are mounted too. The container has the network and limits of the machine.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
};

use super::container::ContainerSpec;

/// Arguments: root, folder of the token, program, mode of the root, user and group, folder of the volumes, their names
/// with the folders in the container, and the command.
const SCRIPT: &str = r#"
set -e
root=$1 secrets=$2 program=$3 mode=$4 user=$5 volumes=$6 empty=$7
shift 7
mount -t tmpfs -o mode=0755 tmpfs "$root"
mkdir -p "$root/proc" "$root/run/secrets/kubernetes.io/serviceaccount" "$root/var"
ln -s ../run "$root/var/run"
mount -t proc proc "$root/proc"
for folder in /lib /lib64 /usr/lib; do
    [ -d "$folder" ] || continue
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
done
touch "$root/cronwheel"
mount --bind "$program" "$root/cronwheel"
mount --bind "$secrets" "$root/run/secrets/kubernetes.io/serviceaccount"
for volume in $empty; do
    mkdir -p "$volumes/${volume%%:*}" "$root${volume#*:}"
    chmod 0777 "$volumes/${volume%%:*}"
    mount --bind "$volumes/${volume%%:*}" "$root${volume#*:}"
done
mount -o "remount,bind,$mode" "$root"
exec chroot --userspec="$user" "$root" "$@"
"#;

/// Whether this process may start containers. It needs root and the capability to mount.
pub(super) fn is_permitted() -> bool {
    let mut trial = Command::new("unshare");
    let ended = trial.args(["--mount", "true"]).stderr(Stdio::null()).status();
    ended.is_ok_and(|status| status.success())
}

/// Starts a container that runs `program` in place of the image. `folder` has the Pod's token in `secrets` and gets an
/// empty folder for the root. The output is appended to `log`.
pub(super) fn start(spec: &ContainerSpec, program: &Path, folder: &Path, log: &Path) -> io::Result<Child> {
    let root = folder.join("root");
    fs::create_dir_all(&root)?;
    let log = File::options().create(true).append(true).open(log)?;
    let mode = if spec.has_read_only_root { "ro" } else { "rw" };
    let empty = spec.empty_folders.iter().map(|(name, path)| format!("{name}:{path}"));
    let empty: Vec<String> = empty.collect();
    Command::new("unshare")
        .args(["--mount", "sh", "-c", SCRIPT, "sh"])
        .args([&root, &folder.join("secrets")])
        .arg(program)
        .args([mode, &format!("{}:{}", spec.user, spec.group)])
        .arg(folder.join("volumes"))
        .arg(empty.join(" "))
        .args(&spec.command)
        .env_clear()
        .envs(spec.environment.iter().cloned())
        // An interrupt in the terminal reaches only the test.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
}
