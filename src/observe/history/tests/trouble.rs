//! Files that cannot be written for a time.

use std::process::{Command, Stdio};

use super::*;

/// The text of the only banner.
fn banner(history: &History) -> String {
    let banners = history.banners();
    assert_eq!(banners.len(), 1, "{banners:?}");
    banners[0].sentence.clone()
}

/// Sets the maximum size of the file. A size below that of the file is the file's.
fn set_n_pages_max(history: &History, n_pages: i64) {
    lock(&history.shared.file).read(now(), |store| {
        let connection = store.connection();
        Ok(connection.pragma_update_and_check(None, "max_page_count", n_pages, |_| Ok(()))?)
    });
}

#[test]
fn a_full_disk_delays_the_records_until_there_is_space() {
    let folder = Folder::new("full");
    let history = folder.open();
    history.record(vec![run(1, now())], now());
    assert!(history.flush());
    set_n_pages_max(&history, 1);
    let later: Vec<_> = (2..1000).map(|number| run(number, now())).collect();
    history.record(later.clone(), now());
    history.record(vec![observation(now(), now() + minutes(1))], now());
    for _ in 0..2 {
        assert!(history.flush());
        let sentence = banner(&history);
        let path = folder.file().display().to_string();
        for part in ["in memory only", &path, "the disk is full", "every 10 seconds"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert_eq!(load(&history), [run(1, now())], "no part of a transaction is stored");
    }
    set_n_pages_max(&history, 1000);
    history.record(vec![run(1000, now())], now());
    assert!(history.flush());
    assert_eq!(history.banners(), []);
    history.close();
    let records = load(&folder.open());
    assert_eq!(records.len(), 1001);
    for record in later {
        assert!(records.contains(&record));
    }
}

/// A file system in memory, which is unmounted when the test ends.
struct Disk(Folder);

impl Disk {
    /// `None` without the right to mount.
    fn mount(size: &str) -> Option<Disk> {
        let folder = Folder::new("disk");
        if mount(&["-t", "tmpfs", "-o", size, "tmpfs"], &folder) {
            return Some(Disk(folder));
        }
        eprintln!("skipped: a test of a full disk needs root and the right to mount");
        None
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0.0).status();
    }
}

fn mount(arguments: &[&str], folder: &Folder) -> bool {
    let mut command = Command::new("mount");
    command.args(arguments).arg(&folder.0).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn a_disk_without_space_delays_the_records_until_it_has_some() {
    let Some(disk) = Disk::mount("size=200k") else { return };
    let history = disk.0.open();
    let runs: Vec<_> = (1..2000).map(|number| run(number, now())).collect();
    history.record(runs.clone(), now());
    for _ in 0..2 {
        assert!(history.flush());
        assert!(banner(&history).contains("the disk is full"), "{}", banner(&history));
    }
    assert!(mount(&["-o", "remount,size=8m"], &disk.0));
    assert!(history.flush());
    assert_eq!(history.banners(), []);
    history.close();
    assert_eq!(load(&disk.0.open()).len(), runs.len());
    // A disk may be full from the start.
    fs::remove_file(disk.0.file()).unwrap();
    let filler = disk.0.0.join("filler");
    assert!(fs::write(&filler, vec![1; 9 << 20]).is_err(), "larger than the disk");
    let history = disk.0.open();
    history.record(runs.clone(), now());
    assert!(history.flush());
    assert!(banner(&history).contains("in memory only"), "{}", banner(&history));
    fs::remove_file(&filler).unwrap();
    assert!(history.flush());
    assert_eq!(history.banners(), []);
    assert_eq!(load(&history).len(), runs.len());
}

#[test]
fn a_folder_that_cannot_be_created_is_retried() {
    let folder = Folder::new("blocked");
    let blocker = folder.0.join("blocker");
    fs::write(&blocker, "a file, where a folder is needed").unwrap();
    let path = blocker.join("history.sqlite");
    let history = History::open(&path, &cluster(), Limits::default(), now());
    let sentence = banner(&history);
    assert!(sentence.contains("in memory only"), "{sentence}");
    assert!(
        sentence.contains(&format!("{} cannot be written: it cannot be created", path.display())),
        "{sentence}"
    );
    history.record(vec![run(1, now())], now());
    assert!(history.flush());
    assert_eq!(load(&history), []);
    fs::remove_file(&blocker).unwrap();
    assert!(history.flush());
    assert_eq!(history.banners(), []);
    assert_eq!(load(&history), [run(1, now())]);
}

#[test]
fn a_folder_without_permission_to_write_means_memory_only() {
    use std::os::unix::fs::PermissionsExt;

    if rustix::process::geteuid().is_root() {
        // Root may write everywhere.
        return;
    }
    let folder = Folder::new("read-only");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o500)).unwrap();
    let history = folder.open();
    assert!(banner(&history).contains("Permission denied"), "{}", banner(&history));
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_path_that_is_a_folder_means_memory_only() {
    let folder = Folder::new("folder");
    fs::create_dir(folder.file()).unwrap();
    let history = folder.open();
    assert!(banner(&history).contains("in memory only"), "{}", banner(&history));
    assert!(folder.file().is_dir());
}

#[test]
fn a_second_history_of_one_file_is_in_memory_until_the_first_one_closes() {
    let folder = Folder::new("second");
    let first = folder.open();
    let second = folder.open();
    assert!(
        banner(&second).contains("another process has it open"),
        "{}",
        banner(&second)
    );
    second.record(vec![run(2, now())], now());
    first.record(vec![run(1, now())], now());
    assert!(first.flush() && second.flush());
    assert_eq!(load(&first), [run(1, now())]);
    assert_eq!(first.banners(), []);
    first.close();
    assert!(second.flush());
    assert_eq!(second.banners(), []);
    assert_eq!(load(&second), [run(1, now()), run(2, now())]);
}

#[test]
fn a_file_of_another_cluster_is_not_touched() {
    let folder = Folder::new("cluster");
    let history = folder.open();
    history.record(vec![run(1, now())], now());
    history.close();
    let other = ClusterId::new("other", "https://10.0.0.9");
    let history = History::open(&folder.file(), &other, Limits::default(), now());
    let sentence = banner(&history);
    assert!(
        sentence.contains("history of the cluster https://127.0.0.1:6443"),
        "{sentence}"
    );
    history.record(vec![run(2, now())], now());
    history.close();
    assert_eq!(load(&folder.open()), [run(1, now())]);
}
