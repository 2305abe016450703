//! Pictures of a game, small enough for a record.

use evenhand_agents::FrameShape;
use serde::{Deserialize, Serialize};

/// Rows and columns of a picture, at most; larger frames are thinned.
const SIDE_MAX: usize = 42;

/// A picture of a game: a digit for each cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GamePicture {
    /// Columns.
    pub columns: usize,
    /// Cells row by row: 0 for nothing; in a grid game the number of the last channel with a thing, counted from 1; in others
    /// the brightness, as a hexadecimal digit.
    pub cells: String,
}

impl GamePicture {
    /// The picture of a frame.
    pub fn of(frame: &[u8], shape: FrameShape) -> Self {
        let FrameShape { channels, rows, columns, .. } = shape;
        let stride = rows.max(columns).div_ceil(SIDE_MAX).max(1);
        let digit = |row: usize, column: usize| -> u32 {
            let at =
                |channel: usize| frame.get((channel * rows + row) * columns + column).copied().unwrap_or(0);
            if channels == 1 {
                // The brightest of the cells that are left out: balls are small.
                let near =
                    |row: usize, column: usize| frame.get(row * columns + column).copied().unwrap_or(0);
                let cells = (row..(row + stride).min(rows)).flat_map(|row| {
                    (column..(column + stride).min(columns)).map(move |column| (row, column))
                });
                u32::from(cells.map(|(row, column)| near(row, column)).max().unwrap_or(0) >> 4)
            } else {
                (0..channels).rev().find(|channel| at(*channel) > 127).map_or(0, |channel| channel as u32 + 1)
            }
        };
        let cells = (0..rows)
            .step_by(stride)
            .flat_map(|row| (0..columns).step_by(stride).map(move |column| (row, column)))
            .map(|(row, column)| char::from_digit(digit(row, column).min(15), 16).unwrap_or('0'))
            .collect();
        Self { columns: columns.div_ceil(stride), cells }
    }

    /// The digits of each row.
    pub fn rows(&self) -> Vec<Vec<u32>> {
        let digits: Vec<u32> = self.cells.chars().map(|cell| cell.to_digit(16).unwrap_or(0)).collect();
        digits.chunks(self.columns.max(1)).map(<[u32]>::to_vec).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_shows_its_last_thing_and_a_large_frame_is_thinned() {
        let grid = FrameShape { channels: 2, rows: 1, columns: 3, stacked: 1 };
        let picture = GamePicture::of(&[255, 0, 255, 0, 0, 255], grid);
        assert_eq!((picture.cells.as_str(), picture.rows()), ("102", vec![vec![1, 0, 2]]));
        let atari = FrameShape { channels: 1, rows: 84, columns: 84, stacked: 4 };
        let mut frame = vec![0; 84 * 84];
        frame[84 + 3] = 255;
        let picture = GamePicture::of(&frame, atari);
        assert_eq!((picture.columns, picture.cells.len(), picture.rows()[0][1]), (42, 42 * 42, 15));
    }
}
