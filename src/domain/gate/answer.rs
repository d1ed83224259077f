//! Answer of a gate, and how gates are combined.

use super::Reason;
use crate::domain::guard::is_out;

/// Answer to whether an act may be done now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Gate {
    /// The act may be done.
    Open,
    /// The act may not be done.
    Shut(Reason),
    /// The view is not fresh enough to decide: wait, and revert nothing.
    Unknown(Reason),
}

impl Gate {
    /// Returns the gate; in a test build, returns an open one if the guard of the gate was taken out.
    #[must_use]
    pub fn guarded(self) -> Self {
        match &self {
            Self::Shut(reason) | Self::Unknown(reason) if reason.guard().is_some_and(is_out) => Self::Open,
            Self::Open | Self::Shut(_) | Self::Unknown(_) => self,
        }
    }
}

/// Returns the first gate that is not open.
///
/// A shut gate comes before an unknown one: a known fault decides.
pub fn first_not_open<const N: usize>(gates: [Gate; N]) -> Gate {
    let mut first = Gate::Open;
    for gate in gates.map(Gate::guarded) {
        match (&first, &gate) {
            (Gate::Shut(_), _) | (_, Gate::Open) | (Gate::Unknown(_), Gate::Unknown(_)) => {}
            (Gate::Open | Gate::Unknown(_), Gate::Shut(_)) | (Gate::Open, Gate::Unknown(_)) => first = gate,
        }
    }
    first
}

/// Returns the first gate that is not open, whether it is shut or unknown.
pub fn first_of<const N: usize>(gates: [Gate; N]) -> Gate {
    gates.into_iter().find(|gate| *gate != Gate::Open).unwrap_or(Gate::Open)
}

pub(super) fn shut_if(condition: bool, reason: impl FnOnce() -> Reason) -> Gate {
    if condition { Gate::Shut(reason()) } else { Gate::Open }
}
