//! The shell commands of the report.
//!
//! A command names the Jobs of lost runs as their slots would have named them, so a run that started after all is not
//! started a second time: the API server refuses the name.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::observe::words::shell_word;

/// The words of each line.
pub(super) type Lines = Vec<Vec<String>>;

/// The command that starts Jobs for slots of a CronJob. It names the context of the report, if that is known: the current
/// context may be another cluster.
pub(super) fn start_command(context: Option<&str>, (namespace, name): (&str, &str), slots: &[Timestamp]) -> Lines {
    let create = |minute: &str| create(context, (namespace, name), minute);
    let minutes: BTreeSet<i64> = slots.iter().map(|slot| slot.as_second().div_euclid(60)).collect();
    let minutes: Vec<String> = minutes.iter().map(i64::to_string).collect();
    match minutes.as_slice() {
        [] => Vec::new(),
        [minute] => vec![create(minute)],
        minutes => {
            let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
            let mut head = words("for minute in");
            head.extend_from_slice(minutes);
            if let Some(last) = head.last_mut() {
                last.push(';');
            }
            head.push("do".to_owned());
            let mut body = create("$minute");
            if let Some(first) = body.first_mut() {
                first.insert_str(0, "  ");
            }
            vec![head, body, words("done")]
        }
    }
}

/// The lines as one text.
pub(super) fn joined(lines: &Lines) -> String {
    let lines: Vec<String> = lines.iter().map(|words| words.join(" ")).collect();
    lines.join("\n")
}

/// `-n` with its value is one word, so that no line breaks between them.
fn create(context: Option<&str>, (namespace, name): (&str, &str), minute: &str) -> Vec<String> {
    let quoted_name = shell_word(name);
    let mut words = vec![
        "kubectl".to_owned(),
        "create".to_owned(),
        "job".to_owned(),
        format!("{quoted_name}-{minute}"),
        format!("-n {}", shell_word(namespace)),
        format!("--from=cronjob/{quoted_name}"),
    ];
    words.extend(context.map(|context| format!("--context={}", shell_word(context))));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, slots: &[&str], expected: &str) {
        let slots: Vec<Timestamp> = slots.iter().map(|slot| slot.parse().unwrap()).collect();
        assert_eq!(joined(&start_command(None, ("reports", name), &slots)), expected);
    }

    #[test]
    fn the_job_has_the_name_of_its_slot() {
        check("close", &[], "");
        let slot = "2026-11-26T18:47:00Z";
        let job_name = crate::shard::naming::job_name("close", slot.parse().unwrap());
        let command = format!("kubectl create job {job_name} -n reports --from=cronjob/close");
        check("close", &[slot], &command);
        check("close", &[slot, "2026-11-26T18:47:30Z"], &command);
        check(
            "close",
            &[slot, "2026-11-26T18:48:00Z"],
            "for minute in 29928647 29928648; do\n  kubectl create job close-$minute -n reports --from=cronjob/close\ndone",
        );
    }

    #[test]
    fn the_context_is_named() {
        let slots = ["1970-01-01T00:01:00Z".parse().unwrap()];
        let command = joined(&start_command(Some("it's prod"), ("reports", "close"), &slots));
        let expected = r"kubectl create job close-1 -n reports --from=cronjob/close --context='it'\''s prod'";
        assert_eq!(command, expected);
    }

    #[test]
    fn what_is_no_name_is_quoted() {
        check(
            "a';reboot",
            &["1970-01-01T00:01:00Z"],
            r"kubectl create job 'a'\'';reboot'-1 -n reports --from=cronjob/'a'\'';reboot'",
        );
    }
}
