//! What may lie where our folder and its files belong.

use super::*;
use crate::scratch::Scratch;
use std::os::unix::fs::symlink;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// A path that belongs to somebody else: given away when we may, else one
/// of root's.
fn foreign(path: PathBuf, roots: &str) -> PathBuf {
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        return path;
    }
    PathBuf::from(roots)
}

fn fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo")
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
}

#[test]
fn the_folder_is_made_with_its_parents_and_is_ours_alone() {
    let scratch = Scratch::new();
    let path = scratch.join("a/b/watchdog");
    prepare(&path).unwrap();
    assert_eq!(mode(&path), 0o700);
    prepare(&path).unwrap();
    symlink(&path, scratch.join("link")).unwrap();
    prepare(&scratch.join("link")).unwrap();
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.join("watchdog");
    for bad in [0o770, 0o702, 0o1777] {
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(bad)).unwrap();
        let why = prepare(&path).unwrap_err();
        assert!(
            why.contains("others may write") && why.contains("watchdog"),
            "{why}"
        );
        fs::remove_dir(&path).unwrap();
    }
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    prepare(&path).unwrap();
}

#[test]
fn what_is_not_our_folder_is_refused() {
    let scratch = Scratch::new();
    fs::write(scratch.join("file"), "").unwrap();
    assert!(
        prepare(&scratch.join("file"))
            .unwrap_err()
            .contains("not a folder")
    );
    assert!(prepare(&scratch.join("file/below")).is_err());
    symlink(scratch.join("nowhere"), scratch.join("dangling")).unwrap();
    assert!(
        prepare(&scratch.join("dangling"))
            .unwrap_err()
            .contains("leads nowhere")
    );
    fs::create_dir(scratch.join("theirs")).unwrap();
    let theirs = foreign(scratch.join("theirs"), "/etc");
    assert!(prepare(&theirs).unwrap_err().contains("belongs to user"));
    symlink(&theirs, scratch.join("to-theirs")).unwrap();
    assert!(
        prepare(&scratch.join("to-theirs"))
            .unwrap_err()
            .contains("belongs to user")
    );
}

#[test]
fn a_file_is_replaced_whole() {
    let scratch = Scratch::new();
    let path = scratch.join("state.json");
    for (bytes, durable) in [(&b"one"[..], true), (b"two", false), (b"", true)] {
        write_atomic(&path, bytes, durable).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(mode(&path), 0o600);
    }
    fs::write(scratch.join(".state.json.tmp"), "left by a crash").unwrap();
    write_atomic(&path, b"three", true).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"three");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
}

#[test]
fn a_failed_replacement_leaves_the_old_file() {
    let scratch = Scratch::new();
    let path = scratch.join("state.json");
    write_atomic(&path, b"old", true).unwrap();
    fs::create_dir(scratch.join(".state.json.tmp")).unwrap();
    let error = write_atomic(&path, b"new", true).unwrap_err();
    assert!(error.to_string().contains("state.json.tmp"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert!(write_atomic(&scratch.join("no/folder"), b"", true).is_err());
}

#[test]
fn planted_things_are_refused_and_not_followed() {
    let scratch = Scratch::new();
    let victim = scratch.join("victim");
    fs::write(&victim, "precious").unwrap();
    let planted = scratch.join("planted");
    type Plant = fn(&Path, &Path);
    let plants: [(&str, Plant); 5] = [
        ("symbolic link", |victim, planted| {
            symlink(victim, planted).unwrap()
        }),
        ("hard link", |victim, planted| {
            fs::hard_link(victim, planted).unwrap()
        }),
        ("FIFO", |_, planted| fifo(planted)),
        ("folder", |_, planted| fs::create_dir(planted).unwrap()),
        ("anybody may write", |_, planted| {
            fs::write(planted, "").unwrap();
            fs::set_permissions(planted, Permissions::from_mode(0o666)).unwrap();
        }),
    ];
    for (what, plant) in plants {
        plant(&victim, &planted);
        for error in [
            read_small(&planted, 100).unwrap_err(),
            open_append(&planted).unwrap_err(),
            open_in_place(&planted).unwrap_err(),
            write_atomic(&planted, b"x", true).unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(
                text.contains(what) && text.contains("planted"),
                "{what}: {text}"
            );
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        let _ = fs::remove_file(&planted).or_else(|_| fs::remove_dir(&planted));
    }
    let theirs = scratch.join("theirs");
    fs::write(&theirs, "").unwrap();
    let theirs = foreign(theirs, "/etc/passwd");
    assert!(
        read_small(&theirs, 1 << 20)
            .unwrap_err()
            .to_string()
            .contains("belongs to user")
    );
}

#[test]
fn small_files_are_read_and_big_ones_are_not() {
    let scratch = Scratch::new();
    let path = scratch.join("f");
    assert_eq!(
        read_small(&path, 3).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    fs::write(&path, "abc").unwrap();
    assert_eq!(read_small(&path, 3).unwrap(), b"abc");
    assert!(
        read_small(&path, 2)
            .unwrap_err()
            .to_string()
            .contains("more than 2 bytes")
    );
}

#[test]
fn a_touch_sets_the_time_and_nothing_else() {
    let scratch = Scratch::new();
    let path = scratch.join("f");
    assert_eq!(touch(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    fs::write(&path, "abc").unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    touch(&path).unwrap();
    let age = fs::metadata(&path)
        .unwrap()
        .modified()
        .unwrap()
        .elapsed()
        .unwrap_or_default();
    assert!(age.as_secs() < 3600, "{age:?}");
    assert_eq!(fs::read(&path).unwrap(), b"abc");
}
