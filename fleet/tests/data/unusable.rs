//! Missing and unreadable files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use clap::ValueEnum;
use evenhand_fleet::data::{self, Dataset};
use tempfile::tempdir;

use crate::fixtures::*;

#[test]
fn without_files_their_publisher_is_named() {
    assert_eq!(
        data::load(Dataset::Mnist, None, &PAPER).unwrap_err().to_string(),
        "mnist needs files: name their folder with --data DIR or EVENHAND_DATA, or take --dataset synthetic; \
         it is published at http://yann.lecun.com/exdb/mnist"
    );
    let folder = tempdir().unwrap();
    assert_eq!(
        complaint(Dataset::Cifar10, folder.path()),
        "cifar10 is not in DIR: no file data_batch_1.bin there nor in a folder cifar10, cifar-10-batches-bin; \
         get it from https://www.cs.toronto.edu/~kriz/cifar.html (binary version)"
    );
    for &dataset in Dataset::value_variants().iter().filter(|dataset| **dataset != Dataset::Synthetic) {
        let said = complaint(dataset, folder.path());
        assert!(said.starts_with(&dataset.name()) && said.ends_with(dataset.home()), "{said}");
    }
}

#[test]
fn unusable_files_are_not_reported_as_missing() {
    const IMAGES: &str = "mnist/train-images-idx3-ubyte";
    let said = |lay: &dyn Fn(&Path)| {
        let folder = tempdir().unwrap();
        let (images, labels) = mnist(3);
        put_mnist(folder.path(), &images, &labels);
        let path = folder.path().join(IMAGES);
        fs::remove_file(&path).unwrap();
        lay(&path);
        complaint(Dataset::Mnist, folder.path())
    };
    let instead = |found: &str| {
        format!(
            "DIR/{IMAGES}: here is {found}, where a file of mnist should be; \
             remove it, and get the file from http://yann.lecun.com/exdb/mnist"
        )
    };
    assert_eq!(said(&|path| fs::create_dir(path).unwrap()), instead("a folder"));
    assert_eq!(said(&|path| symlink("/nowhere", path).unwrap()), instead("a link to nothing"));
    let fifo = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    assert_eq!(said(&fifo), instead("a pipe, a socket or a device"));
    let unreadable = |path: &str, cause: &str| {
        format!(
            "DIR/{path}: cannot be read ({cause}); mend that, or get mnist again from http://yann.lecun.com/exdb/mnist"
        )
    };
    assert_eq!(
        said(&|path| symlink(path, path).unwrap()),
        unreadable(IMAGES, "Too many levels of symbolic links (os error 40)")
    );

    let folder = tempdir().unwrap();
    put(folder.path(), "mnist", b"a file");
    assert_eq!(
        complaint(Dataset::Mnist, folder.path()),
        unreadable("mnist", "Not a directory (os error 20)")
    );
    let (images, labels) = mnist(3);
    put(folder.path(), "train-images-idx3-ubyte", &images);
    put(folder.path(), "train-labels-idx1-ubyte", &labels);
    assert_eq!(load(Dataset::Mnist, folder.path()).unwrap().len(), 3, "what is beside it is sound");

    assert_eq!(
        complaint(Dataset::Mnist, &folder.path().join("nowhere")),
        "the data folder DIR cannot be read: No such file or directory (os error 2); \
         name another with --data DIR or EVENHAND_DATA"
    );
}
