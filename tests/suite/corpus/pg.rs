//! The statistics of one PG as a mgr prints them: `pg_stat_t::dump` and `object_stat_sum_t::dump` of
//! `osd_types.cc`.

use std::fmt::Write;

use super::cluster::{OBJECT, Pg, Release};

/// Amount of detail that is printed of a PG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Each field that a real mgr prints: 2.2 KB (16.2.15) to 2.6 KB (20.2.4).
    Whole,
    /// Only the fields that are read, for clusters that are too large to be printed whole.
    Read,
}

/// Counters that are 0 for a quiet PG, in the order of the source.
const ZEROS: [&str; 21] = [
    "num_scrub_errors",
    "num_shallow_scrub_errors",
    "num_deep_scrub_errors",
    "num_objects_recovered",
    "num_bytes_recovered",
    "num_keys_recovered",
    "num_objects_omap",
    "num_objects_hit_set_archive",
    "num_bytes_hit_set_archive",
    "num_flush",
    "num_flush_kb",
    "num_evict",
    "num_evict_kb",
    "num_promote",
    "num_flush_mode_high",
    "num_flush_mode_low",
    "num_evict_mode_some",
    "num_evict_mode_full",
    "num_objects_pinned",
    "num_legacy_snapsets",
    "num_large_omap_objects",
];

const STAMPS: [&str; 10] = [
    "last_fresh",
    "last_change",
    "last_active",
    "last_peered",
    "last_clean",
    "last_became_active",
    "last_became_peered",
    "last_unstale",
    "last_undegraded",
    "last_fullsized",
];

const STAMP: &str = "2026-11-24T07:31:08.412903+0000";

/// Writes one entry of `pg_stats`.
pub(crate) fn write(out: &mut String, pg: &Pg, epoch: u64, release: Release, detail: Detail) {
    let (id, state) = (&pg.id, &pg.state);
    write!(out, r#"{{"pgid":"{id}","version":"{epoch}'81123","reported_seq":91342,"reported_epoch":{epoch},"state":"{state}","#)
        .unwrap();
    if detail == Detail::Whole {
        history(out, epoch, release);
    }
    sums(out, pg, detail);
    write!(out, r#","up":{:?},"acting":{:?}"#, pg.up, pg.acting).unwrap();
    if detail == Detail::Whole {
        write!(
            out,
            r#","avail_no_missing":[],"object_location_counts":[],"blocked_by":[],"up_primary":{},"acting_primary":{},"purged_snaps":[]"#,
            pg.up[0], pg.acting[0]
        )
        .unwrap();
    }
    out.push('}');
}

fn history(out: &mut String, epoch: u64, release: Release) {
    for name in STAMPS {
        write!(out, r#""{name}":"{STAMP}","#).unwrap();
    }
    write!(
        out,
        r#""mapping_epoch":{epoch},"log_start":"{epoch}'71021","ondisk_log_start":"{epoch}'71021","created":214,"last_epoch_clean":{epoch},"parent":"0.0","parent_split_bits":0,"last_scrub":"{epoch}'80012","last_scrub_stamp":"{STAMP}","last_deep_scrub":"{epoch}'80012","last_deep_scrub_stamp":"{STAMP}","last_clean_scrub_stamp":"{STAMP}","#
    )
    .unwrap();
    let since_17 = release.number != "16.2.15";
    if since_17 {
        out.push_str(r#""objects_scrubbed":998,"#);
    }
    out.push_str(r#""log_size":10102,"#);
    if since_17 {
        out.push_str(r#""log_dups_size":3000,"#);
    }
    out.push_str(r#""ondisk_log_size":10102,"#);
    for name in [
        "stats",
        "dirty_stats",
        "omap_stats",
        "hitset_stats",
        "hitset_bytes_stats",
        "pin_stats",
        "manifest_stats",
    ] {
        write!(out, r#""{name}_invalid":false,"#).unwrap();
    }
    out.push_str(r#""snaptrimq_len":0,"#);
    if since_17 {
        out.push_str(
            r#""last_scrub_duration":311,"scrub_schedule":"periodic scrub scheduled @ 2026-11-25T14:02:11.934+0000","scrub_duration":310.482,"objects_trimmed":0,"snaptrim_duration":0,"#,
        );
    }
}

fn sums(out: &mut String, pg: &Pg, detail: Detail) {
    let Pg { objects, misplaced, degraded, .. } = pg;
    let bytes = objects * OBJECT;
    write!(out, r#""stat_sum":{{"num_bytes":{bytes},"num_objects":{objects},"#).unwrap();
    if detail == Detail::Whole {
        write!(out, r#""num_object_clones":0,"num_object_copies":{},"num_objects_missing_on_primary":0,"num_objects_missing":0,"#, objects * pg.up.len() as u64)
            .unwrap();
    }
    write!(out, r#""num_objects_degraded":{degraded},"num_objects_misplaced":{misplaced}"#).unwrap();
    if detail == Detail::Whole {
        write!(
            out,
            r#","num_objects_unfound":0,"num_objects_dirty":{objects},"num_whiteouts":0,"num_read":7120341,"num_read_kb":482301876,"num_write":8123981,"num_write_kb":391273810"#
        )
        .unwrap();
        for name in ZEROS {
            write!(out, r#","{name}":0"#).unwrap();
        }
        out.push_str(
            r#","num_objects_manifest":0,"num_omap_bytes":0,"num_omap_keys":0,"num_objects_repaired":0"#,
        );
    }
    out.push('}');
}
