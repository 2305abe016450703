//! Folders that cannot be used are refused in a sentence, and never with a panic.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use evenhand_coordinator::store::{FILE, Store, StoreError};
use evenhand_program::exit::Exit;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use redb::{Database, TableDefinition};
use tempfile::TempDir;

use super::run::{StoreHarness, new_federation, rules};

type StoreCommand = fn(&Store, &Path) -> Result<(), StoreError>;

fn short() -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut harness = StoreHarness::start(folder.path(), &rules(), 0);
    harness.enrol(&["a", "b", "c", "d"]);
    harness.play(4);
    folder
}

#[test]
fn a_folder_in_use_is_refused() {
    let folder = short();
    let _ours = Store::open(folder.path()).unwrap();
    let error = Store::open(folder.path()).unwrap_err();
    assert!(error.to_string().starts_with("another process uses the state in "), "{error}");
    assert_eq!(error.exit(), Exit::Busy);
}

#[test]
fn the_latest_model_is_for_its_keepers_eyes_only() {
    let around = TempDir::new().unwrap();
    let (state, copy) = (around.path().join("state"), around.path().join("back/up"));
    Store::open_or_create(&state).unwrap().resume(new_federation(&rules())).unwrap();
    Store::open(&state).unwrap().back_up(&copy).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in [&state, &copy] {
        assert_eq!((mode(folder), mode(&folder.join(FILE))), (0o700, 0o600), "{}", folder.display());
    }
}

#[test]
fn a_folder_that_others_can_read_is_closed_to_them() {
    let folder = short();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = folder.path().join(FILE);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(folder.path()).unwrap());
    assert_eq!((mode(folder.path()), mode(&file)), (0o700, 0o600));
}

#[test]
fn a_folder_without_a_federation_is_refused() {
    let folder = TempDir::new().unwrap();
    let error = Store::open(folder.path()).unwrap_err();
    assert!(error.to_string().starts_with("there is no federation in "), "{error}");
}

#[test]
fn a_newer_format_is_refused() {
    let folder = short();
    let database = Database::open(folder.path().join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    let table = TableDefinition::<&str, &[u8]>::new("federation");
    transaction.open_table(table).unwrap().insert("format", &[9, 0][..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = Store::open(folder.path()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the state has format 9, this program reads 4; use the program that wrote it"
    );
    assert_eq!(error.exit(), Exit::Data);
}

#[test]
fn fixed_settings_cannot_be_changed_by_a_new_configuration() {
    let folder = short();
    let mut changed = rules();
    changed.training.learning_rate = 0.25;
    let error = Store::open(folder.path()).unwrap().resume(new_federation(&changed)).unwrap_err();
    assert!(error.to_string().starts_with("[training] differs"), "{error}");
    assert_eq!(error.exit(), Exit::Config);
}

#[test]
fn a_file_that_is_no_store_is_damaged() {
    for content in [&b"something else altogether"[..], &[0; 8192]] {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(FILE), content).unwrap();
        let error = Store::open(folder.path()).unwrap_err();
        assert!(error.to_string().starts_with("the state is damaged: "), "{error}");
        assert_eq!(error.exit(), Exit::Data);
    }
}

#[test]
fn a_damaged_file_is_detected_or_makes_no_difference() {
    let folder = short();
    let sound = Store::open(folder.path()).unwrap().federation().unwrap().save();
    let bytes = fs::read(folder.path().join(FILE)).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut detected = 0;
    for _ in 0..300 {
        let folder = TempDir::new().unwrap();
        let mut damaged = bytes.clone();
        let place = rng.random_range(0..damaged.len());
        damaged[place] ^= rng.random_range(1..=255u8);
        fs::write(folder.path().join(FILE), damaged).unwrap();
        match Store::open(folder.path()).and_then(|store| store.federation()) {
            Ok(federation) => assert_eq!(federation.save(), sound, "byte {place}"),
            Err(error) => {
                assert_eq!(error.exit(), Exit::Data, "{error}");
                detected += 1;
            }
        }
    }
    assert!(detected > 0);
}

/// Pages of zeros and of other bytes, as a failing disk returns them.
#[test]
fn commands_that_read_damaged_pages_end_with_a_sentence() {
    let folder = short();
    let bytes = fs::read(folder.path().join(FILE)).unwrap();
    let mut damaged = 0;
    for page in 1..bytes.len() / 4096 {
        if bytes[page * 4096..][..4096].iter().all(|byte| *byte == 0) {
            continue;
        }
        for fill in [0, 0xff] {
            let folder = TempDir::new().unwrap();
            let mut changed = bytes.clone();
            changed[page * 4096..][..4096].fill(fill);
            fs::write(folder.path().join(FILE), changed).unwrap();
            let read =
                |read: StoreCommand| Store::open(folder.path()).and_then(|store| read(&store, folder.path()));
            let all: [StoreCommand; 4] = [
                |store, _| store.audit().map(drop),
                |store, folder| store.back_up(&folder.join("copy")),
                |store, _| store.federation().map(drop),
                |store, _| store.log()?.records()?.try_for_each(|record| record.map(drop)),
            ];
            for error in all.into_iter().filter_map(|command| read(command).err()) {
                assert_eq!(error.exit(), Exit::Data, "page {page}: {error}");
                damaged += 1;
            }
        }
    }
    assert!(damaged > 10, "{damaged}");
}

#[test]
fn a_truncated_file_is_damaged_or_an_earlier_state() {
    let folder = short();
    let bytes = fs::read(folder.path().join(FILE)).unwrap();
    for cut in [bytes.len() / 4, bytes.len() / 2, bytes.len() - 4096] {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(FILE), &bytes[..cut]).unwrap();
        match Store::open(folder.path()).and_then(|store| store.federation()) {
            Ok(_) => {}
            Err(error) => assert!(matches!(error, StoreError::Damaged(_)), "{error}"),
        }
    }
}

#[test]
fn a_store_is_created_as_a_whole_and_leaves_no_other_file() {
    let folder = TempDir::new().unwrap();
    // Left by a process that was killed while creating it.
    fs::write(folder.path().join(format!("{FILE}half")), b"half made").unwrap();
    drop(Store::open_or_create(folder.path()).unwrap());
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder.path()).unwrap().map(name).collect();
    names.sort();
    assert_eq!(names, [FILE.to_owned(), format!("{FILE}half")]);
    StoreHarness::start(folder.path(), &rules(), 0).enrol(&["a", "b", "c", "d"]);
    assert_eq!(Store::open(folder.path()).unwrap().federation().unwrap().members().len(), 4);
}
