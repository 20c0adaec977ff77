//! Splits lines of a shell into words and commands, as far as the pages need it.

/// Returns the words of a line without quotes, comments and redirections. The operators `|`, `;` and `&&` are words.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_word = false;
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => word.push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                is_word = true;
            }
            (None, '#') if !is_word => break,
            (None, ' ' | ';') => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
                if letter == ';' {
                    words.push(";".to_owned());
                }
            }
            (None, _) => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

/// Splits words at operators, and leaves out assignments, redirections and the word `do`.
pub(super) fn commands(words: &[String]) -> Vec<Vec<String>> {
    let is_operator = |word: &String| ["|", ";", "&&"].contains(&word.as_str());
    let mut found = Vec::new();
    for part in words.split(is_operator) {
        let begin = part
            .iter()
            .take_while(|word| *word == "do" || is_assignment(word))
            .count();
        let end = part.iter().position(|word| [">", "<", "2>"].contains(&word.as_str()));
        let command = &part[begin..end.unwrap_or(part.len())];
        if !command.is_empty() {
            found.push(command.to_vec());
        }
    }
    found
}

/// Whether a word sets a variable for the command after it.
pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
    })
}

#[test]
fn lines_are_split_into_commands() {
    let split = |line: &str| commands(&words(line));
    assert_eq!(split("A=1 make a B=2  # why"), [["make", "a", "B=2"]]);
    assert_eq!(split("echo 'a b' > file"), [["echo", "a b"]]);
    assert_eq!(
        split("for n in 1; do echo \"x;y\"; done | kubectl apply"),
        [
            vec!["for", "n", "in", "1"],
            vec!["echo", "x;y"],
            vec!["done"],
            vec!["kubectl", "apply"],
        ]
    );
}
