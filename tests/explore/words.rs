//! Steps of a story in words.

use osd_migrate_core::domain::next::Next;

use super::search::Move;
use super::state::State;

pub(crate) fn words(step: &Move, decided: &Next, state: &State) -> String {
    match step {
        Move::Iteration => format!("the runner: {}", decision(decided)),
        Move::Cut(writes) => format!("the runner dies after {writes} writes of: {}", decision(decided)),
        Move::Keep => format!("the runner keeps what it saw: {}", decision(decided)),
        Move::Read => "the runner has read a part of what it decides by".to_owned(),
        Move::Turn(next) => format!("the runner, after that failed: {}", decision(next)),
        Move::ByParts(next) => format!("the runner, by parts: {}", decision(next)),
        Move::Freeze => format!("a runner freezes right before: {}", decision(decided)),
        Move::Thaw => match &state.frozen {
            Some((next, ..)) => format!("the frozen runner thaws: {}", decision(next)),
            None => "no runner thaws".to_owned(),
        },
        Move::Happens(what) => what.to_string(),
        Move::Fault(what) => format!("! {what}"),
        Move::Owner(what) => what.said().to_owned(),
        Move::Forget => "! a person deletes the ledger".to_owned(),
        Move::Leap(minutes) => format!("{minutes} minutes pass"),
        Move::Later => "a minute passes".to_owned(),
    }
}

pub(crate) fn decision(next: &Next) -> String {
    match next {
        Next::Save { why, .. } => format!("saves {}", why.code()),
        Next::Do(act) => {
            let value = serde_json::to_value(act).unwrap();
            let (name, fields) = value.as_object().unwrap().iter().next().unwrap();
            let osd = fields.get("osd").or(fields.get("request").and_then(|r| r.get("osd")));
            let task = fields.get("request").and_then(|r| r.get("task"));
            format!(
                "{name} {} {}",
                osd.map(ToString::to_string).unwrap_or_default(),
                task.map(ToString::to_string).unwrap_or_default()
            )
        }
        Next::Wait(wait) => format!("waits: {wait}"),
        Next::Finished(_) => "is finished".to_owned(),
        Next::Halt(halt) => format!("halts: {halt}"),
    }
}
