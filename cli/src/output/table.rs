//! Columns for people.

use std::io::{self, Write};

pub(crate) use nrt_trace_export::printable;

/// How a column is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows under a heading, each column as wide as its widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, which has a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Writes heading and rows, without blanks at the ends of lines.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let heading: Vec<String> = self
            .columns
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|i| {
                let cells = self.rows.iter().chain([&heading]);
                cells.map(|row| row[i].chars().count()).max().unwrap_or(0)
            })
            .collect();
        for row in [&heading].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(&self.columns) {
                let pad = " ".repeat(width - cell.chars().count());
                let gap = if line.is_empty() { "" } else { "  " };
                match align {
                    Align::Left => line.extend([gap, cell, &pad]),
                    Align::Right => line.extend([gap, &pad, cell]),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("PID", Align::Right), ("NAME", Align::Left)]);
        table.row(vec!["7".to_owned(), "trainer".to_owned()]);
        table.row(vec!["12345".to_owned(), "é".to_owned()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "  PID  NAME\n    7  trainer\n12345  é\n"
        );
    }
}
