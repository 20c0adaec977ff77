//! The report as text for a terminal, a mail or a ticket.

use std::fmt::Write as _;

use super::{
    bars,
    document::{Block, Document, Head},
};
use crate::observe::words::harmless;

/// Width of the text in characters.
const WIDTH: usize = 100;

/// Indentation of tables, commands and bars.
const INDENT: &str = "  ";

/// Columns of a table do not become narrower than this.
const COLUMN_MIN: usize = 8;

pub(super) fn render(document: &Document) -> String {
    let mut text = heading(&document.title, "=");
    write_blocks(&mut text, &document.opening);
    for section in &document.sections {
        text.push('\n');
        text += &heading(section.title, "-");
        write_blocks(&mut text, &section.blocks);
    }
    text
}

fn heading(title: &str, line: &str) -> String {
    let title = shortened(&harmless(title), WIDTH);
    let line = line.repeat(title.chars().count());
    format!("{title}\n{line}\n")
}

/// An empty line stands between blocks that do not belong together.
fn write_blocks(text: &mut String, blocks: &[Block]) {
    let mut before: Option<&Block> = None;
    for block in blocks {
        if !matches!(before, None | Some(Block::Entry(_))) && !matches!(block, Block::Command(_)) {
            text.push('\n');
        }
        write_block(text, block);
        before = Some(block);
    }
}

fn write_block(text: &mut String, block: &Block) {
    match block {
        Block::Paragraph(paragraph) => *text += &wrapped(paragraph, "", ""),
        Block::List(points) => {
            for (point, more) in points {
                *text += &wrapped(point, "- ", INDENT);
                if let Some(more) = more {
                    *text += &wrapped(more, INDENT, INDENT);
                }
            }
        }
        Block::Table { heads, rows } => *text += &table(heads, rows),
        Block::Bars(values) => write_indented(text, &bars::lines(values)),
        Block::Entry(title) => {
            let _ = writeln!(text, "{}", shortened(&harmless(title), WIDTH));
        }
        Block::Command(words) => write_indented(text, &command(words)),
    }
}

fn write_indented(text: &mut String, lines: &[String]) {
    for line in lines {
        let _ = writeln!(text, "{INDENT}{line}");
    }
}

/// Breaks a text into lines at spaces. A word that is longer than a line is broken.
fn wrapped(text: &str, first_indent: &str, indent: &str) -> String {
    let words = harmless(text);
    let (mut text, mut line, mut is_first) = (String::new(), first_indent.to_owned(), true);
    for word in words.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for part in letters.chunks(WIDTH - indent.chars().count()) {
            let part: String = part.iter().collect();
            let separator = if is_first { "" } else { " " };
            is_first = false;
            if line.chars().count() + separator.len() + part.chars().count() <= WIDTH {
                line = line + separator + &part;
            } else {
                text += &line;
                text.push('\n');
                line = format!("{indent}{part}");
            }
        }
    }
    text + &line + "\n"
}

/// Breaks a command between its words, so that the whole can be pasted into a shell.
pub(super) fn command(words: &[String]) -> Vec<String> {
    // For the indentation and for ` \`.
    const PLACE: usize = WIDTH - INDENT.len() - 2;
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in words {
        let word = harmless(word);
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > PLACE {
            lines.push(line + " \\");
            line = format!("    {word}");
        } else if line.is_empty() {
            line = word;
        } else {
            line = format!("{line} {word}");
        }
    }
    lines.push(line);
    lines
}

fn table(heads: &[Head], rows: &[Vec<String>]) -> String {
    let head_row: Vec<String> = heads.iter().map(|head| head.text().to_uppercase()).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| harmless(cell)).collect())
        .collect();
    let width_of = |column: usize| {
        let cells = std::iter::once(&head_row)
            .chain(&rows)
            .filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths = fitted((0..heads.len()).map(width_of).collect());
    let mut text = String::new();
    for row in std::iter::once(&head_row).chain(&rows) {
        let cells = row.iter().zip(&widths).zip(heads).map(|((cell, width), head)| {
            let cell = shortened(cell, *width);
            if head.is_number() {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(text, "{INDENT}{}", cells.join("  ").trim_end());
    }
    text
}

/// Takes from the widest column until the table fits.
fn fitted(mut widths: Vec<usize>) -> Vec<usize> {
    let separators = INDENT.len() + 2 * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + separators > WIDTH {
        match widths.iter_mut().max() {
            Some(widest) if *widest > COLUMN_MIN => *widest -= 1,
            _ => break,
        }
    }
    widths
}

/// Takes from the middle of a text: both ends of a name tell it from others.
fn shortened(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let n_last = width.saturating_sub(1) / 2;
    let n_first = width.saturating_sub(1) - n_last;
    let (first, last) = (&letters[..n_first], &letters[letters.len() - n_last..]);
    first.iter().chain(&['…']).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_broken_at_spaces_and_long_words_anywhere() {
        let word = "a".repeat(60);
        assert_eq!(
            wrapped(&format!("{word} {word} b"), "- ", "  "),
            format!("- {word}\n  {word} b\n")
        );
        let long = "c".repeat(150);
        assert_eq!(
            wrapped(&long, "", ""),
            format!("{}\n{}\n", "c".repeat(100), "c".repeat(50))
        );
        assert_eq!(wrapped("", "", ""), "\n");
        assert_eq!(wrapped("a\nb \u{1b}[31m", "", ""), "a\u{fffd}b \u{fffd}[31m\n");
    }

    #[test]
    fn a_long_command_goes_on_after_a_backslash() {
        let words = ["kubectl".to_owned(), "x".repeat(60), "y".repeat(60)];
        let expected = [
            format!("kubectl {} \\", "x".repeat(60)),
            format!("    {}", "y".repeat(60)),
        ];
        assert_eq!(command(&words), expected);
    }

    #[test]
    fn a_wide_table_loses_the_middle_of_its_widest_cells() {
        let heads = [Head::Text("name"), Head::Number("runs")];
        let name = format!("{}-{}", "a".repeat(100), "z".repeat(100));
        let text = table(&heads, &[vec![name, "7".to_owned()]]);
        let expected = format!(
            "  NAME{}RUNS\n  {}…{}     7\n",
            " ".repeat(90),
            "a".repeat(46),
            "z".repeat(45)
        );
        assert_eq!(text, expected);
    }
}
