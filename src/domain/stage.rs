//! Stage of an OSD's migration, by the milestones of its record: for the log, traces and the report.
//!
//! The phase of an OSD is computed from an observation, and is known only in the iteration that observed it.
//! The milestones are stored: the stage is the same after a restart.

use chrono::{DateTime, Utc};

use super::ledger::Record;

/// Stage of an OSD's migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Stage {
    /// A node Job inspects the disk.
    Inspect,
    /// The disk is proven, and the OSD waits for its stop.
    Wait,
    /// The OSD serves, and its data moves to other OSDs.
    Emptying,
    /// The OSD is stopped and destroyed.
    Stop,
    /// A node Job recreates the OSD on its disk.
    Rebuild,
    /// The new OSD is deployed, and starts.
    Start,
    /// The new OSD is up, and is backfilling.
    Backfill,
    /// The OSD is done, and its leftovers are removed.
    CleanUp,
    /// The OSD failed.
    Quarantine,
}

impl Stage {
    /// Returns the code.
    pub fn code(self) -> &'static str {
        self.into()
    }

    /// Returns the stage that a milestone leads to; the present one if it leads to none.
    fn after(self, milestone: &str) -> Self {
        match milestone {
            "proof" if self <= Self::Wait => Self::Wait,
            "emptying" => Self::Emptying,
            // The old OSD is started again, or is empty and waits for its stop.
            "revert-stop" | "emptied" | "stop-intent-cleared" => Self::Wait,
            "stop" | "down" if self <= Self::Stop => Self::Stop,
            "rebuild" | "restore-slot" => Self::Rebuild,
            "new" | "left-to-rook" => Self::Start,
            "up" if self == Self::Start => Self::Backfill,
            "closing" | "uncleared" | "clear" | "not-emptied" | "wipe" | "disk-left" | "host-left"
            | "removed" => Self::CleanUp,
            "quarantine" => Self::Quarantine,
            _ => self,
        }
    }

    /// Returns the stage of a record.
    pub fn of(record: &Record) -> Self {
        record.milestones.iter().fold(Self::Inspect, |stage, (milestone, _)| stage.after(milestone))
    }
}

/// Part of the milestones of a record that is one stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The stage.
    pub stage: Stage,
    /// Time of its first milestone.
    pub start: DateTime<Utc>,
    /// Time of the first milestone of the next stage; none for the present stage.
    pub end: Option<DateTime<Utc>>,
    /// Range of its milestones.
    pub milestones: std::ops::Range<usize>,
}

/// Returns the stages that a record passed, in order; a stage may come again.
pub fn passed(milestones: &[(String, DateTime<Utc>)]) -> Vec<Passed> {
    let mut passed: Vec<Passed> = Vec::new();
    for (number, (milestone, at)) in milestones.iter().enumerate() {
        let stage = passed.last().map_or(Stage::Inspect, |last| last.stage).after(milestone);
        if let Some(last) = passed.last_mut() {
            if last.stage == stage {
                last.milestones.end = number + 1;
                continue;
            }
            last.end = Some(*at);
        }
        passed.push(Passed { stage, start: *at, end: None, milestones: number..number + 1 });
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milestones(codes: &[&str]) -> Vec<(String, DateTime<Utc>)> {
        let at =
            |second: usize| DateTime::UNIX_EPOCH + chrono::TimeDelta::seconds(second.try_into().unwrap());
        codes.iter().enumerate().map(|(second, code)| ((*code).to_owned(), at(second))).collect()
    }

    fn stages(codes: &[&str]) -> Vec<(&'static str, i64, i64)> {
        let time = |at: DateTime<Utc>| at.timestamp();
        let of = |one: &Passed| (one.stage.code(), time(one.start), one.end.map_or(-1, time));
        passed(&milestones(codes)).iter().map(of).collect()
    }

    #[test]
    fn stages_follow_from_milestones() {
        let codes =
            ["record", "inspect", "proof", "stop", "down", "inspect", "rebuild", "new", "up", "closing"];
        let expected = [
            ("inspect", 0, 2),
            ("wait", 2, 3),
            ("stop", 3, 6),
            ("rebuild", 6, 7),
            ("start", 7, 8),
            ("backfill", 8, 9),
            ("clean-up", 9, -1),
        ];
        assert_eq!(stages(&codes), expected);
    }

    #[test]
    fn emptied_osd_waits_for_its_stop() {
        let codes = [
            "record",
            "proof",
            "emptying",
            "marked-out",
            "emptying-progress",
            "emptied",
            "emptying-progress",
            "stop",
        ];
        let expected =
            [("inspect", 0, 1), ("wait", 1, 2), ("emptying", 2, 5), ("wait", 5, 7), ("stop", 7, -1)];
        assert_eq!(stages(&codes), expected);
        let codes = ["record", "proof", "emptying", "marked-out", "not-emptied"];
        let expected = [("inspect", 0, 1), ("wait", 1, 2), ("emptying", 2, 4), ("clean-up", 4, -1)];
        assert_eq!(stages(&codes), expected);
    }

    #[test]
    fn reverted_stop_leads_back_to_the_wait() {
        let codes = ["record", "proof", "stop", "down", "revert-stop", "up", "stop", "quarantine"];
        let expected = [
            ("inspect", 0, 1),
            ("wait", 1, 2),
            ("stop", 2, 4),
            ("wait", 4, 6),
            ("stop", 6, 7),
            ("quarantine", 7, -1),
        ];
        assert_eq!(stages(&codes), expected);
    }
}
