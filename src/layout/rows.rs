//! Tables. A column that does not fit stands in a second table below the first.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width as ColumnWidth, presets};

use super::Width;

/// Columns around the text of each cell.
const PADDING: usize = 2;

/// Length up to which the text of a cell is never wrapped, such as `400.0 GiB`.
const SHORT: usize = 12;

/// Table with a header, whose first column names the rows.
#[derive(Debug, Clone)]
pub struct Rows {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// Creates a table without rows.
    pub fn new(header: &[&str]) -> Self {
        Self { header: header.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// Adds a row with one text for each column.
    pub fn add(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Returns the table as text.
    ///
    /// Texts are wrapped between words. As long as the longest words do not fit, the widest column moves to a
    /// table below, which repeats the first column. The last two columns stay, even if they are too wide.
    pub fn text(&self, width: Width) -> String {
        self.part((0..self.header.len()).collect(), width)
    }

    fn part(&self, mut columns: Vec<usize>, width: Width) -> String {
        let mut below = Vec::new();
        while self.least(&columns) > width.columns()
            && columns.len() > 2
            && let Some(widest) = columns.iter().skip(1).copied().max_by_key(|column| self.least_of(*column))
        {
            columns.retain(|column| *column != widest);
            below.push(widest);
        }
        let table = self.table(&columns, width.columns().max(self.least(&columns)));
        if below.is_empty() {
            return table;
        }
        below.push(0);
        below.sort_unstable();
        format!("{table}\n\n{}", self.part(below, width))
    }

    fn table(&self, columns: &[usize], width: usize) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        table.set_header(of(&self.header, columns));
        table.add_rows(self.rows.iter().map(|row| of(row, columns)));
        for (at, column) in columns.iter().enumerate() {
            let least = u16::try_from(self.least_of(*column) + PADDING).unwrap_or(u16::MAX);
            if let Some(column) = table.column_mut(at) {
                column.set_constraint(ColumnConstraint::LowerBoundary(ColumnWidth::Fixed(least)));
            }
        }
        table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// Returns the narrowest width of these columns.
    fn least(&self, columns: &[usize]) -> usize {
        columns.iter().map(|column| self.least_of(*column) + PADDING).sum()
    }

    /// Returns the narrowest width of a column: that of its longest word.
    fn least_of(&self, column: usize) -> usize {
        let length = |text: &str| text.chars().count();
        let of_cell = |text: &String| {
            if length(text) <= SHORT {
                length(text)
            } else {
                text.split_whitespace().map(length).max().unwrap_or_default()
            }
        };
        let rows = std::iter::once(&self.header).chain(&self.rows);
        rows.filter_map(|row| row.get(column)).map(of_cell).max().unwrap_or_default()
    }
}

/// Returns these columns of a row.
fn of(row: &[String], columns: &[usize]) -> Vec<String> {
    columns.iter().map(|column| row.get(*column).cloned().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: &str = "/dev/disk/by-id/ata-SAMSUNG_MZ7LH3T8HMLT";

    fn rows() -> Rows {
        let mut rows = Rows::new(&["OSD", "WHY", "DEVICE", "NOW"]);
        for osd in ["osd.0", "osd.1"] {
            let why = "Filestore on partitions of ceph-disk";
            rows.add([osd, why, DISK, "in progress"].map(str::to_owned));
        }
        rows
    }

    #[test]
    fn table_fits_every_width_and_cuts_no_name() {
        for columns in 40..=200 {
            let text = rows().text(Width::of(columns));
            assert_eq!(text.matches(DISK).count(), 2, "{columns}:\n{text}");
            assert_eq!(text.matches("in progress").count(), 2, "{columns}:\n{text}");
            let too_wide = |line: &&str| line.chars().count() > usize::from(columns) && !line.contains(DISK);
            assert_eq!(text.lines().find(too_wide), None, "{columns}:\n{text}");
        }
    }

    #[test]
    fn column_that_does_not_fit_stands_below() {
        let narrow = rows().text(Width::of(60));
        let headers: Vec<_> = narrow.lines().filter(|line| line.contains("OSD")).map(str::trim).collect();
        assert!(headers.len() == 2 && headers[1].contains("DEVICE"), "{narrow}");
        assert!(headers[0].contains("WHY") && headers[0].contains("NOW"), "{narrow}");
        assert_eq!(rows().text(Width::of(140)).lines().count(), 3);
    }
}
