//! Code that the tests share.

use std::collections::{BTreeMap, BTreeSet};

use osd_migrate::domain::estimate::Rate;
use osd_migrate::domain::plan::Disks;
use osd_migrate::domain::preview::Line;
use osd_migrate::show::Plan;

pub(crate) mod build;

/// Asserts that a value has a shape, and prints the value if it has not.
macro_rules! check {
    ($value:expr, $pattern:pat $(if $guard:expr)? $(,)?) => {{
        let value = $value;
        assert!(
            matches!(&value, $pattern $(if $guard)?),
            "expected {}\n     got {value:#?}",
            stringify!($pattern $(if $guard)?)
        );
    }};
}
pub(crate) use check;

/// Prints a plan of which only the lines are known.
pub(crate) fn with_plan<T>(lines: &[Line], print: impl FnOnce(&Plan<'_>) -> T) -> T {
    let (devices, disks, unmatched) = (BTreeMap::new(), Disks::default(), BTreeSet::new());
    let plan = Plan {
        lines,
        devices: &devices,
        disks: &disks,
        places: &[],
        rate: Rate::of(None),
        hash: None,
        unmatched: &unmatched,
    };
    print(&plan)
}
