//! Files that are only read.

use super::*;

fn open(path: &Path) -> Result<HistoryReader, String> {
    HistoryReader::open(path, &cluster()).map_err(|error| error.to_string())
}

fn error(path: &Path) -> String {
    open(path).err().unwrap()
}

#[test]
fn reading_changes_nothing() {
    let folder = Folder::new("reader");
    let history = folder.open();
    history.record(vec![run(1, now()), observation(now(), now() + minutes(1))], now());
    history.close();
    let before = fs::read(folder.file()).unwrap();
    let mut records = Vec::new();
    let reader = open(&folder.file()).unwrap();
    reader
        .load(Timestamp::MIN, 1, &mut |record| records.push(record))
        .unwrap();
    drop(reader);
    assert_eq!(records, [run(1, now()), observation(now(), now() + minutes(1))]);
    assert_eq!(fs::read(folder.file()).unwrap(), before);
    assert_eq!(folder.names(), ["history.sqlite"]);
}

#[test]
fn a_file_that_is_no_history_is_named_and_left_alone() {
    let cases: [(&str, &[u8], &str); 3] = [
        ("notes", b"Ask Ann.", "another application wrote it"),
        ("empty", b"", "it is empty"),
        ("cut", b"SQLite format 3\0, but no more", "another application wrote it"),
    ];
    for (name, content, reason) in cases {
        let folder = Folder::new(&format!("reader-{name}"));
        fs::write(folder.file(), content).unwrap();
        let error = error(&folder.file());
        let path = folder.file().display().to_string();
        assert!(error.contains(&path) && error.contains(reason), "{error}");
        assert_eq!(fs::read(folder.file()).unwrap(), content, "{name}");
        assert_eq!(folder.names(), ["history.sqlite"], "{name}");
    }
}

#[test]
fn a_missing_file_is_not_created() {
    let folder = Folder::new("reader-missing");
    let error = error(&folder.0.join("folder/history.sqlite"));
    assert!(error.contains("No such file"), "{error}");
    assert!(folder.names().is_empty());
}

#[test]
fn a_file_in_use_and_one_of_another_cluster_are_refused() {
    let folder = Folder::new("reader-refused");
    let history = folder.open();
    let in_use = error(&folder.file());
    assert!(in_use.contains("another process has it open"), "{in_use}");
    history.close();
    let other = ClusterId::new("other", "https://10.0.0.9");
    let error = HistoryReader::open(&folder.file(), &other).err().unwrap().to_string();
    assert!(
        error.contains("history of the cluster https://127.0.0.1:6443"),
        "{error}"
    );
    assert_eq!(folder.names(), ["history.sqlite"]);
}
