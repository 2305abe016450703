//! `evenhand-fleet data`.

use std::io::{self, Write};
use std::path::PathBuf;

use evenhand_program::exit::Exit;

use crate::data;
use crate::data::catalogue::Catalogue;

/// The layout of a folder of data sets.
pub(super) const HELP: &str = "\
The folder holds one folder for each data set, or the files themselves, packed with gzip or plain:
  mnist/           train-images-idx3-ubyte, train-labels-idx1-ubyte
  cifar10/         data_batch_1.bin to data_batch_5.bin, at least one of them; also cifar-10-batches-bin/
  pathmnist/       pathmnist.npz
  fi2010/          Train_Dst_NoAuction_ZScore_CF_3.txt; also hft/
  electricity_de/  time_series_15min_singleindex.csv; also electricity/
  meters/          MAC*.csv, block_*.csv, LCL*.csv, CC_LCL*.csv; also smartmeters_london/, smartmeters_london/csv/

Checksums are those of the unpacked files.

  EVENHAND_DATA=~/data evenhand-fleet data
  evenhand-fleet data --data ~/data --json | jq '.datasets[] | select(.state == \"missing\").home'

Exit codes:
  0    no data set is broken; that some are missing is no failure
  64   the command line is wrong
  65   a data set is BROKEN, or the folder cannot be read; the list is printed all the same
  70   a defect, or the list cannot be written";

/// Flags of `evenhand-fleet data`
#[derive(Debug, clap::Args)]
pub(crate) struct DataArgs {
    /// The folder of all data sets; the default is what EVENHAND_DATA names
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Writes the catalogue to `stdout`; the exit code is a failure where something is broken.
pub(super) fn run(args: DataArgs, mut stdout: impl Write) -> io::Result<Exit> {
    let catalogue = Catalogue::of(data::folder(args.data));
    let text = if args.json { serde_json::to_string_pretty(&catalogue)? + "\n" } else { catalogue.text() };
    stdout.write_all(text.as_bytes())?;
    Ok(catalogue.exit())
}
