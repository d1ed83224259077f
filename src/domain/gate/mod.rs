//! Gates: conditions that must be true before an act, checked on a fresh view. Reasons are data, which
//! `status` shows.

mod answer;
mod begin;
mod clean;
mod data;
mod emptied;
mod latency;
mod mark_out;
mod missing;
mod new;
mod node;
mod own;
mod pg;
mod precondition;
mod pvc;
mod reason;
mod reason_kind;
mod removal;
mod rook;
mod space;
mod stop;
mod stopped_by;
mod surroundings;
mod words;

pub use answer::{Gate, first_not_open, first_of};
pub use begin::{begin, failure_limit, held, is_cancelled};
pub use clean::{
    accepted, is_clean, is_clean_state, is_only_faulty, is_whole, lacks_space, only_lacks_space_to_move,
    state_text, unclean_words,
};
pub use data::{
    all_known, gone, is_filled, is_short_of_osds, is_short_without, moved_unclean, pgs_of, served,
    unavailable_without, without_redundancy,
};
pub use emptied::{emptiable, emptied, peering, safe_to_destroy};
pub use latency::commit_latency;
pub use mark_out::before_mark_out;
pub use new::{before_adopt, before_new, of_node_for_new};
pub use node::{node_answers, of_node};
pub use own::{Own, passes_by_itself};
pub use pg::is_short;
pub use precondition::precondition;
pub use pvc::same_pvc;
pub use reason::Reason;
pub use removal::{
    before_any_removal, before_drop_weight, before_last_stop, before_last_wipe, can_begin, fits_place,
    removable, removed_together, weights_not_reset,
};
pub use rook::{
    Fenced, can_be_fenced, fenced, is_old_status, left_to_rooks_migration, migrates_none,
    needs_lasting_fence, reshaped_by_rook, rook_answers, stays_fenced,
};
pub use space::{enough_space, least_space, room, used_bytes};
pub use stop::{
    admitted, after_stop, around_any_stop, before_any_restart, before_any_stop, before_restart, before_stop,
    before_this_stop, data_before_stop,
};
pub use stopped_by::StoppedBy;
pub use surroundings::{flags, flags_of, may_come_up, not_ambiguous, one_deployment};
pub use words::{first_names, names, retries};
