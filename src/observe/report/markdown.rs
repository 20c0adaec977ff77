//! The report as GitHub-flavoured Markdown.

use std::fmt::Write as _;

use super::{
    bars,
    document::{Block, Document, Head},
    text,
};
use crate::observe::words::harmless;

pub(super) fn render(document: &Document) -> String {
    let mut markdown = format!("# {}\n", escaped(&document.title));
    write_blocks(&mut markdown, &document.opening);
    for section in &document.sections {
        let _ = writeln!(markdown, "\n## {}", section.title);
        write_blocks(&mut markdown, &section.blocks);
    }
    markdown
}

fn write_blocks(markdown: &mut String, blocks: &[Block]) {
    for block in blocks {
        markdown.push('\n');
        write_block(markdown, block);
    }
}

fn write_block(markdown: &mut String, block: &Block) {
    match block {
        Block::Paragraph(text) => {
            let _ = writeln!(markdown, "{}", escaped(text));
        }
        Block::List(points) => {
            for (text, more) in points {
                let more = more.as_ref().map(|more| format!("<br>{}", escaped(more)));
                let _ = writeln!(markdown, "- {}{}", escaped(text), more.unwrap_or_default());
            }
        }
        Block::Table { heads, rows } => *markdown += &table(heads, rows),
        Block::Bars(values) => *markdown += &fenced(&bars::lines(values), ""),
        Block::Entry(title) => {
            let _ = writeln!(markdown, "### {}", escaped(title));
        }
        Block::Command(words) => *markdown += &fenced(&text::command(words), "sh"),
    }
}

fn table(heads: &[Head], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut table = line(heads.iter().map(|head| escaped(head.text())).collect());
    let rule = |head: &Head| if head.is_number() { "---:" } else { "---" }.to_owned();
    table += &line(heads.iter().map(rule).collect());
    for row in rows {
        table += &line(row.iter().map(|cell| escaped(cell)).collect());
    }
    table
}

/// A block of code. Its fence is longer than any run of backticks in it.
fn fenced(lines: &[String], language: &str) -> String {
    let text = lines.join("\n");
    let longest = text
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}{language}\n{text}\n{fence}\n")
}

/// Escapes what Markdown or HTML would read as markup.
fn escaped(text: &str) -> String {
    let mut markdown = String::with_capacity(text.len());
    // A text that begins with a bullet is no list.
    if text.starts_with(['-', '+']) {
        markdown.push('\\');
    }
    for letter in harmless(text).chars() {
        match letter {
            '&' => markdown += "&amp;",
            '<' => markdown += "&lt;",
            '>' => markdown += "&gt;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                markdown.push('\\');
                markdown.push(letter);
            }
            // Otherwise a name could address an account of the tracker that shows the report.
            '@' => markdown += "&#64;",
            letter => markdown.push(letter),
        }
    }
    markdown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(
            escaped("a|b `c` <script>*x*</script> [d](e) @f &amp; \\ # g_h\n- i"),
            "a\\|b \\`c\\` &lt;script&gt;\\*x\\*&lt;/script&gt; \\[d\\](e) &#64;f &amp;amp; \\\\ \\# g\\_h\u{fffd}- i"
        );
    }

    #[test]
    fn a_text_that_begins_with_a_bullet_is_no_list() {
        assert_eq!(escaped("- a - b"), "\\- a - b");
        assert_eq!(escaped("+"), "\\+");
    }

    #[test]
    fn a_fence_is_longer_than_the_backticks_in_it() {
        assert_eq!(fenced(&["a".to_owned()], "sh"), "```sh\na\n```\n");
        assert_eq!(fenced(&["````".to_owned()], ""), "`````\n````\n`````\n");
    }
}
