//! Commands to copy.

use maud::{Markup, html};

use crate::observe::{
    missed::{BackfillCommand, Meant},
    slot::{Slot, SlotOutcome},
    view::{CronJobName, Detail},
    words::shell_word,
};

/// What each command is for, and the command.
pub(super) fn list(detail: &Detail, context: Option<&str>) -> Markup {
    html! {
        dl.commands {
            @for (purpose, command) in commands(&detail.row.cron_job, last_job_name(detail), context) {
                dt { (purpose) }
                dd { code { (command) } }
            }
            @if let Some(slots) = lost(&detail.slots) {
                dt { "Start the lost runs" }
                dd { code { (backfill(context).line(&detail.row.cron_job, slots)) } }
            }
        }
    }
}

/// They name the context, so that they ask the cluster of the page, whatever the current context is.
fn commands(cron_job: &CronJobName, job_name: Option<&str>, context: Option<&str>) -> Vec<(&'static str, String)> {
    let [namespace, name] = [&cron_job.namespace, &cron_job.name].map(|word| shell_word(word));
    let context = context.map(|context| format!(" --context {}", shell_word(context)));
    let context = context.unwrap_or_default();
    let kubectl = |rest: &str| format!("kubectl{context} -n {namespace} {rest}");
    let mut commands = Vec::new();
    if let Some(job_name) = job_name.map(shell_word) {
        commands.push((
            "Logs of the last Job",
            kubectl(&format!("logs job/{job_name} --all-containers")),
        ));
        commands.push(("The last Job", kubectl(&format!("describe job/{job_name}"))));
    }
    commands.push((
        "The Jobs of its namespace",
        kubectl("get jobs --sort-by=.metadata.creationTimestamp"),
    ));
    commands.push(("The CronJob", kubectl(&format!("describe cronjob/{name}"))));
    commands.push((
        "What would happen now",
        format!("cronwheel explain{context} -n {namespace} {name}"),
    ));
    commands
}

/// The lost slots.
fn lost(slots: &[Slot]) -> Option<Meant> {
    let mut lost = slots
        .iter()
        .filter(|slot| matches!(slot.outcome, SlotOutcome::Lost(_)))
        .map(|slot| slot.at);
    let from = lost.next()?;
    Some(Meant {
        from,
        to: lost.next_back().unwrap_or(from),
        has_unknown: false,
    })
}

fn backfill(context: Option<&str>) -> BackfillCommand {
    let command = BackfillCommand::default();
    match context {
        Some(context) => command.with("--context", context.to_owned()),
        None => command,
    }
}

/// The Job that was created last, of a slot or not.
fn last_job_name(detail: &Detail) -> Option<&str> {
    let of_slots = detail.slots.iter().filter_map(|slot| match &slot.outcome {
        SlotOutcome::Started { job_name, created, .. } => Some((*created, job_name.as_ref())),
        SlotOutcome::Open
        | SlotOutcome::Lost(_)
        | SlotOutcome::Skipped(_)
        | SlotOutcome::NotObserved
        | SlotOutcome::Undecided(_) => None,
    });
    let others = detail.other_runs.iter().map(|run| (run.created, run.job_name.as_ref()));
    of_slots.chain(others).max().map(|(_, job_name)| job_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_other_characters_are_quoted() {
        let cron_job = CronJobName {
            namespace: "a; rm -rf /".into(),
            name: "it's".into(),
        };
        let of = |context| -> Vec<String> {
            let commands = commands(&cron_job, Some("$(x)"), context).into_iter();
            commands.map(|(_, command)| command).collect()
        };
        assert_eq!(
            of(None),
            [
                "kubectl -n 'a; rm -rf /' logs job/'$(x)' --all-containers",
                "kubectl -n 'a; rm -rf /' describe job/'$(x)'",
                "kubectl -n 'a; rm -rf /' get jobs --sort-by=.metadata.creationTimestamp",
                r"kubectl -n 'a; rm -rf /' describe cronjob/'it'\''s'",
                r"cronwheel explain -n 'a; rm -rf /' 'it'\''s'",
            ]
        );
        let with_context = of(Some("it's prod"));
        assert_eq!(
            with_context[1],
            r"kubectl --context 'it'\''s prod' -n 'a; rm -rf /' describe job/'$(x)'"
        );
        assert!(with_context[4].starts_with(r"cronwheel explain --context 'it'\''s prod' -n "));
    }
}
