//! The decision: from the facts about one CronJob and `now` to a Job or a named reason for none (B-6, B-9, B-10).
