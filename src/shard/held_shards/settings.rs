//! What a replica tells its shards at start, and what they share.

use super::HeldShards;
#[cfg(test)]
use crate::shard::state::PanicsOn;
use crate::{
    schedule::options::Freeze,
    shard::{
        calendars::Calendars,
        catch_up_pace::CatchUpPace,
        namespaces::ManagedNamespaces,
        panics::ContainedPanic,
        run_log::{EndedRuns, LoggedRuns},
        template_memory::TemplateMemory,
    },
};

impl HeldShards {
    /// The memory for the templates and the metadata of all CronJobs.
    pub fn template_memory(&self) -> &TemplateMemory {
        &self.template_memory
    }

    /// The pace of missed runs.
    pub fn catch_up_pace(&self) -> &CatchUpPace {
        &self.catch_up_pace
    }

    /// The panics on CronJobs that were contained since the last call.
    pub fn take_panics(&self) -> Vec<ContainedPanic> {
        self.panics.take()
    }

    /// Selects the runs that are logged; none at first. Call before the first fact.
    pub fn log_runs(&mut self, logged: LoggedRuns) {
        self.ended_runs = EndedRuns::new(logged);
        for held in self.held.values_mut() {
            held.state.ended_runs = self.ended_runs.clone();
        }
    }

    /// The selected runs that have ended.
    pub fn ended_runs(&self) -> &EndedRuns {
        &self.ended_runs
    }

    /// Tells the shards on which CronJobs to panic.
    #[cfg(test)]
    pub(crate) fn panic_on(&mut self, panics_on: PanicsOn) {
        for held in self.held.values_mut() {
            held.state.panics_on = Some(panics_on);
        }
    }

    /// Manages these namespaces only. Call before the first fact.
    pub fn manage_only(&mut self, namespaces: ManagedNamespaces) {
        for held in self.held.values_mut() {
            held.state.namespaces = namespaces.clone();
        }
        self.namespaces = namespaces;
    }

    /// Lets nothing start before an instant. Call before the first fact.
    pub fn freeze(&mut self, freeze: Option<&Freeze>) {
        for held in self.held.values_mut() {
            held.state.freeze_all(freeze.cloned());
        }
    }

    /// Reads these calendars. Call before the first fact.
    pub fn read_calendars(&mut self, calendars: Calendars) {
        for held in self.held.values_mut() {
            held.state.calendars = calendars.clone();
        }
        self.calendars = calendars;
    }

    /// The managed namespaces.
    pub fn namespaces(&self) -> &ManagedNamespaces {
        &self.namespaces
    }
}
