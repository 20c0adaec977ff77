//! Files that cannot be used are set aside.

use rusqlite::Connection;

use super::*;

/// Makes a file that is not a usable history.
type Damage = fn(&Path);

/// A history with some hundred runs.
fn healthy(path: &Path) {
    let history = History::open(path, &cluster(), Limits::default(), now());
    history.record((0..500).map(|number| run(1, now() - minutes(number))).collect(), now());
    history.close();
}

fn edit(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    edit(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// A random sequence of bytes, the same each time.
fn noise() -> impl Iterator<Item = u8> {
    let step = |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    std::iter::successors(Some(1u64), step).map(|state| state.to_be_bytes()[0])
}

fn sqlite(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_file_that_cannot_be_used_is_set_aside() {
    let cases: [(&str, &str, Damage); 7] = [
        ("header", "damaged", |path| {
            healthy(path);
            edit(path, |bytes| bytes.truncate(100));
        }),
        ("half", "damaged", |path| {
            healthy(path);
            edit(path, |bytes| bytes.truncate(bytes.len() / 2));
        }),
        ("middle", "damaged", |path| {
            healthy(path);
            edit(path, |bytes| {
                let middle = bytes.len() / 2;
                bytes[middle..]
                    .iter_mut()
                    .zip(noise())
                    .take(5000)
                    .for_each(|(byte, noise)| *byte = noise);
            });
        }),
        ("table", "damaged", |path| {
            healthy(path);
            sqlite(path, "DROP TABLE history");
        }),
        ("begin", "damaged", |path| {
            healthy(path);
            edit(path, |bytes| bytes[..16].fill(0));
        }),
        ("zeros", "damaged", |path| fs::write(path, [0; 8_192]).unwrap()),
        ("newer", "newer version of cronwheel", |path| {
            healthy(path);
            sqlite(path, "PRAGMA user_version = 1000");
        }),
    ];
    for (name, reason, damage) in cases {
        let folder = Folder::new(name);
        damage(&folder.file());
        let before = fs::read(folder.file()).unwrap();
        let history = folder.open();
        let suffix = if name == "newer" { "newer" } else { "damaged" };
        let new_path = folder.0.join(format!("history.sqlite.{suffix}-20261127T120000Z"));
        let [banner] = &history.banners()[..] else {
            panic!("{name}: {:?}", history.banners())
        };
        for part in [
            reason,
            &format!("{}", folder.file().display()),
            &format!("renamed to {}", new_path.display()),
        ] {
            assert!(banner.sentence.contains(part), "{name}: {}", banner.sentence);
        }
        assert_eq!(fs::read(&new_path).unwrap(), before, "{name}");
        history.record(vec![run(1, now())], now());
        history.close();
        assert_eq!(load(&folder.open()), [run(1, now())], "{name}");
    }
}

#[test]
fn a_file_of_another_application_is_left_alone() {
    let files: [(&str, Damage); 4] = [
        ("noise", |path| {
            fs::write(path, noise().take(100_000).collect::<Vec<_>>()).unwrap();
        }),
        ("notes", |path| fs::write(path, "Ask Ann.").unwrap()),
        ("other", |path| sqlite(path, "CREATE TABLE bookmarks (url TEXT)")),
        ("id", |path| {
            sqlite(
                path,
                "PRAGMA application_id = 7; PRAGMA user_version = 1; CREATE TABLE runs (id INTEGER)",
            );
        }),
    ];
    for (name, write) in files {
        let folder = Folder::new(&format!("foreign-{name}"));
        write(&folder.file());
        let before = fs::read(folder.file()).unwrap();
        let history = folder.open();
        history.record(vec![run(1, now())], now());
        assert!(history.flush());
        let [banner] = &history.banners()[..] else {
            panic!("{name}: {:?}", history.banners())
        };
        for part in ["in memory only", "another application wrote it"] {
            assert!(banner.sentence.contains(part), "{name}: {}", banner.sentence);
        }
        history.close();
        assert_eq!(fs::read(folder.file()).unwrap(), before, "{name}");
        assert_eq!(folder.names(), ["history.sqlite"], "{name}");
    }
}

/// A file under the name that cronwheel itself gives is one of cronwheel, whatever is left of it.
#[test]
fn a_file_under_the_default_name_is_set_aside() {
    let cases: [(&str, Damage); 7] = [
        ("noise", |path| {
            fs::write(path, noise().take(100_000).collect::<Vec<_>>()).unwrap();
        }),
        ("zeros", |path| fs::write(path, [0; 8_192]).unwrap()),
        ("short", |path| fs::write(path, "SQL").unwrap()),
        ("sixteen", |path| {
            healthy(path);
            edit(path, |bytes| bytes[..16].fill(7));
        }),
        ("hundred", |path| {
            healthy(path);
            edit(path, |bytes| bytes[..100].fill(7));
        }),
        ("id", |path| {
            healthy(path);
            edit(path, |bytes| bytes[68..72].fill(7));
        }),
        ("other", |path| sqlite(path, "CREATE TABLE bookmarks (url TEXT)")),
    ];
    for (name, damage) in cases {
        let folder = Folder::new(&format!("default-{name}"));
        let path = folder.default_file();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        damage(&path);
        let before = fs::read(&path).unwrap();
        let history = History::open(&path, &cluster(), Limits::default(), now());
        let [banner] = &history.banners()[..] else {
            panic!("{name}: {:?}", history.banners())
        };
        let new_path = location::with_suffix(&path, ".damaged-20261127T120000Z");
        assert!(
            banner.sentence.contains(&new_path.display().to_string()),
            "{name}: {}",
            banner.sentence
        );
        assert_eq!(fs::read(&new_path).unwrap(), before, "{name}");
        history.record(vec![run(1, now())], now());
        history.close();
        let again = History::open(&path, &cluster(), Limits::default(), now());
        assert_eq!(load(&again), [run(1, now())], "{name}");
    }
}

#[test]
fn a_wal_that_is_cut_anywhere_loses_only_its_end() {
    let folder = Folder::new("wal");
    let history = folder.open();
    for number in 0..50 {
        history.record(vec![run(1, now() + minutes(number))], now());
        assert!(history.flush());
    }
    let database = fs::read(folder.file()).unwrap();
    let wal = fs::read(location::with_suffix(&folder.file(), "-wal")).unwrap();
    history.close();
    let mut numbers = Vec::new();
    for length in [0, 10, 32, 5000, wal.len() / 2, wal.len() - 1, wal.len()] {
        for is_noisy in [false, true] {
            let copy = Folder::new("wal-copy");
            let mut cut = wal[..length].to_owned();
            if is_noisy {
                cut.extend(noise().take(wal.len() - length));
            }
            fs::write(copy.file(), &database).unwrap();
            fs::write(location::with_suffix(&copy.file(), "-wal"), cut).unwrap();
            let history = copy.open();
            assert_eq!(history.banners(), [], "{length}");
            let records = load(&history);
            let expected = (0..50)
                .map(|number| run(1, now() + minutes(number)))
                .take(records.len());
            assert_eq!(records, expected.collect::<Vec<_>>(), "{length}");
            numbers.push(records.len());
        }
    }
    assert_eq!((numbers.first(), numbers.last()), (Some(&0), Some(&50)));
    assert!(numbers.is_sorted(), "{numbers:?}");
}

#[test]
fn damage_that_appears_later_is_set_aside_when_it_is_read() {
    let folder = Folder::new("later");
    let history = folder.open();
    history.record(vec![run(1, now())], now());
    assert!(history.flush());
    let sql = "UPDATE runs SET created = 9223372036854775807";
    change_file(&history, |connection| connection.execute_batch(sql).unwrap());
    assert_eq!(load(&history), []);
    assert!(
        history.banners()[0].sentence.contains("column created"),
        "{:?}",
        history.banners()
    );
    history.record(vec![run(2, now())], now());
    history.close();
    assert_eq!(load(&folder.open()), [run(2, now())]);
}

#[test]
fn files_are_not_set_aside_for_ever() {
    let folder = Folder::new("again");
    let history = folder.open();
    for _ in 0..5 {
        change_file(&history, |connection| {
            connection.execute_batch("DROP TABLE runs").unwrap();
        });
        assert_eq!(load(&history), []);
    }
    let n_files = fs::read_dir(&folder.0).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
        name.contains("damaged") && !name.contains("-wal")
    });
    assert_eq!(n_files.count(), 3);
    assert!(history.banners().last().unwrap().sentence.contains("in memory only"));
}

/// Changes the open file behind the back of the history.
fn change_file(history: &History, change: impl FnOnce(&mut Connection)) {
    lock(&history.shared.file).read(now(), |store| {
        change(store.connection());
        Ok(())
    });
}
