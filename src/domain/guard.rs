//! The guards by name. Each condition that keeps the program from harm is asked through [`holds`]; in test builds one guard
//! at a time can be taken out, and the exploration must then find the harm (`tests/suite/mutants.rs`). What each protects
//! stands in `docs/concepts/safety.md`.

/// Whether a guard lets pass: its condition. In a test build (feature `failpoint`), a guard that was taken out lets everything
/// pass.
#[inline]
pub fn passes(guard: Guard, condition: bool) -> bool {
    condition || is_out(guard)
}

/// Whether a guard was taken out: never, but in a test build.
#[cfg(not(feature = "failpoint"))]
pub const fn is_out(_: Guard) -> bool {
    false
}

#[cfg(feature = "failpoint")]
pub use out::{is_out, without};

#[cfg(feature = "failpoint")]
mod out {
    use std::cell::Cell;

    use super::Guard;

    thread_local! {
        static OUT: Cell<Option<Guard>> = const { Cell::new(None) };
    }

    /// Whether this thread runs without the guard.
    pub fn is_out(guard: Guard) -> bool {
        OUT.get() == Some(guard)
    }

    /// Runs something on this thread with a guard taken out.
    pub fn without<T>(guard: Option<Guard>, run: impl FnOnce() -> T) -> T {
        let before = OUT.replace(guard);
        let result = run();
        OUT.set(before);
        result
    }
}

macro_rules! guards {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A condition without which data, an id or somebody else's work could be lost.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Guard { $($(#[doc = $doc])+ $name,)+ }

        impl Guard {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Its name, as `docs/concepts/safety.md` lists it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

guards! {
    // The gates (domain/gate/), each by its reason.
    /// The mgr knows every PG.
    StatisticsComplete,
    /// Every PG concerned has reported since its OSDs last came or went.
    StatisticsFresh,
    /// All PGs are active+clean before a stop, and before a free disk becomes an OSD.
    AllClean,
    /// But for those that lack OSDs to lie on, of which every one that could be is up.
    OnlyShortOfOsds,
    /// Ceph says `ok-to-stop`.
    OkToStop,
    /// Without the OSD, one loss more is survivable.
    Redundancy,
    /// After the stop, no other copy lacks.
    OnlyOursMissing,
    /// No PG is on its way to another state.
    Peered,
    /// What the old OSD holds fits into the new one.
    EnoughSpace,
    /// Nothing is nearly full.
    NotFull,
    /// No flag of the cluster stands in the way.
    NoFlag,
    /// No upgrade goes on.
    NoUpgrade,
    /// Rook prepares no OSDs.
    RookPreparesNone,
    /// Rook's operator is at 0, or can be fenced.
    OperatorAway,
    /// One that runs has said that it leaves the fenced CephCluster alone.
    FenceAcknowledged,
    /// The fence stays where Rook, which runs, would begin with a migration of its own.
    FenceStays,
    /// No fence of somebody else is up.
    NotFencedExternally,
    /// Rook lets no domain be drained.
    NotDraining,
    /// Deployments and pods can be told apart.
    NothingAmbiguous,
    /// One OSD restarts after the other.
    RolledOutFirst,
    /// The node is Ready.
    NodeReady,
    /// The node is not cordoned.
    NodeNotCordoned,
    /// All mons are in quorum.
    MonQuorum,
    /// The CephCluster is not external.
    NotExternal,
    /// Rook removes no OSD that is out.
    RemovesNoOutOsds,
    /// The owner has confirmed.
    Confirmed,
    /// Nobody has paused.
    NotPaused,
    /// Nobody has cancelled.
    NotCancelled,
    /// The time is inside a window.
    InWindow,
    /// Not more OSDs failed than the budget allows.
    WithinFailureLimit,
    // Preconditions of acts (domain/expect.rs).
    /// `osd destroy`: the slot holds the fsid that is meant.
    DestroyFsid,
    /// Stop: the Deployment is the very one that was looked at, and its OSD up with the fsid that is meant.
    StopExpects,
    /// Deploy of a new OSD, Adopt: the Deployment in its place is the very one that was looked at, or none is there as before.
    DeployReplaces,
    /// Deploy of a new OSD, Adopt: the slot holds the fsid that is meant, and is down.
    StartExpects,
    /// Tolerate: an OSD that was down when it was decided is down.
    TolerateExpects,
    /// Stop: all PGs are clean, asked again right before.
    RecheckAllClean,
    /// Destroy and wipe of the old OSD: no other copy lacks, asked again right before.
    RecheckOnlyOursMissing,
    /// Removal of an old directory: the new OSD has its data, asked again right before.
    RecheckBackfilled,
    /// A CRUSH weight is set only where the one from before is there: others' stays.
    WeighExpects,
    /// An upmap is put back only where its PG has none: the balancer's and people's stay.
    UpmapsOfOthersStay,
    /// The label comes off only with our value.
    UnfenceOurs,
    /// The label goes on only where nobody wrote the CephCluster since it was looked at.
    ClusterVersion,
    /// The operator and the OSDs' budget are written only as they were looked at.
    OperatorVersion,
    /// Fence and flags: the record is still open.
    RecordOpen,
    /// Before `noin` is lifted, the mark `new` is taken off, so that the next boot keeps the reweight.
    UnsetFlagsKeepsReweight,
    // The phase table, the steps, the plan (domain/phase/, domain/step/, domain/plan/).
    /// A slot is the old one only by the fsid recorded.
    SlotIsOld,
    /// A slot is the new one's only by the fsid saved, or by a claim: the id may have been given to another.
    SlotIsOurs,
    /// An OSD is stopped by us only by our annotation with this record.
    StoppedByUs,
    /// Nothing is destroyed while the OSD is up or its pod is there.
    AtRest,
    /// No second agent is made while one is at work.
    OneAgent,
    /// The proof is in the record before Stop.
    ProvenFirst,
    /// An OSD in a directory is stopped only where the disk that it goes to was found free.
    DiskAvailableFirst,
    /// The weight follows the new disk's size before the new OSD is started.
    WeighedFirst,
    /// An OSD on device-mapper is an encrypted one only if a key, an init container or the name of its mapping says so.
    OnlyKnownEncryption,
    /// Not past Stop, what is no longer wanted as recorded is given up.
    StillWanted,
    /// A free disk is recorded on a node that still is to get new OSDs.
    NodeStillChosen,
    /// A free disk is recorded once: not while a record is about it, nor after it became an OSD.
    DiskOnce,
    /// An OSD that nothing starts is started only where its slot holds its fsid.
    AdoptsItsOwn,
    /// A disk that is a PersistentVolume, or may be one, becomes no OSD, and an OSD on it is not started as one of the host's.
    NoPersistentVolume,
    /// A record that was given up is open again where its agent took the id all the same.
    StartedIsFinished,
    /// An OSD is done only when the PGs that it is to hold are clean with it.
    CleanAtTheEnd,
    /// And have reported since it came up.
    ReportedAtTheEnd,
    /// An OSD is done only when its metadata is as recorded.
    ConformsAtTheEnd,
    /// The Deployment is kept before Stop.
    BackedUpFirst,
    /// PGs and intent are saved before Stop.
    IntentSavedFirst,
    /// The fence is up before every act from Stop to Deploy.
    FencedFirst,
    /// The fence is in the ledger before it is put up.
    FenceSavedFirst,
    /// How the operator was is in the ledger before it is scaled.
    OperatorSavedFirst,
    /// No drain may take another OSD down when one is stopped.
    DrainsLimitedFirst,
    /// Nor while it is stopped, whatever becomes of Rook's budget.
    DrainsBlocked,
    /// How many it might take is in the ledger before it is limited.
    PdbSavedFirst,
    /// That client.bootstrap-osd was missing is in the ledger before it is made.
    BootstrapSavedFirst,
    /// It is removed only where we made it.
    BootstrapOurs,
    /// An attempt is saved before its Job is made.
    AttemptSavedFirst,
    /// That upmaps were lost is saved before the place is put back.
    UpmapLossSavedFirst,
    /// The new fsid is saved before Deploy.
    NewSavedFirst,
    /// The record is closed only when nothing of it is left.
    CleanedUpFirst,
    /// An agent that fails again and again is given up.
    FailuresEnd,
    /// A mark of ours without its record halts the run.
    LedgerNotLost,
    /// What a frozen runner made for a closed record is swept.
    OrphansDeleted,
    /// Ceph may heal without an OSD that was left alone past Stop.
    QuarantineLiftsNoout,
    /// The Secret with the bootstrap-osd key of an OSD that was quarantined is deleted.
    QuarantineKeyDeleted,
    /// The flags of an OSD are lifted before its record closes.
    FlagsUnsetFirst,
    /// `noout` and `noin` are on the OSD before it stops, and before a new one boots.
    FlagsSetFirst,
    /// An OSD that somebody started again after our stop is not destroyed.
    StaysStopped,
    // The rules of progress (ADR 0025): without them a sick part holds up the healthy rest.
    /// An OSD whose own gate is shut is skipped, and the next one begun.
    SkipsSickCandidate,
    /// An OSD that is down is not begun.
    DownIsNoCandidate,
    /// The API server admits the Deployment of the new OSD before the old one is stopped.
    AdmittedFirst,
    /// Only failures past a stop count towards the failure limit.
    LimitPastStopOnly,
    /// An OSD that stays down loses `noout` after a while, and before the run halts.
    NooutHasAnEnd,
    /// A new daemon that does not come up in time is quarantined.
    StartHasALimit,
    /// The quota of a pool does not count as full.
    PoolQuotaIsNoFull,
    /// An intent to stop holds however long an iteration takes.
    IntentOutlivesSlowIterations,
    /// What passes by itself after a stop is waited for.
    PassingStatesWait,
    /// Rook's operator is given back while a run waits.
    OperatorRestored,
    /// Attempts of a node agent past the stop are spaced.
    AgentRetriesSpaced,
    // Preconditions of the node agent (node/, and as the simulated agent has them).
    /// Its report is there when it begins: else its record was closed.
    AgentExpected,
    /// No agent begins after one of a later attempt has been there.
    AgentsInOrder,
    /// The slot is destroyed when the wipe begins.
    AgentSlotDestroyed,
    /// What was read is proven again under the exclusive open.
    AgentProvesAgain,
    /// Fsid, id and cluster of the old OSD, and how it was made, are on the disk as recorded.
    ProofNames,
    /// A store that is not the old one is wiped only if its fsid is a claim.
    ProofIssuedFsid,
    /// A claimed store names this OSD and this cluster.
    ProofIssuedToThis,
    /// A free disk is made an OSD only where nothing is on it.
    DiskAvailable,
    /// A blank disk that nothing names (no serial number) is the recorded one only where that was plugged in.
    BlankByPlace,
    /// The device for a database can take it: before Stop, and again before the old data goes.
    DatabaseFits,
    /// The claim is on the node's disk before `osd new` goes out.
    FsidWrittenFirst,
    /// ceph-volume's rollback may not purge the id.
    ShimRefusesPurge,
    /// ceph-volume may ask for no other id.
    ShimOneId,
    /// An act begins only with the ledger that it was decided by.
    ActByLedger,
    /// A save: nobody wrote the ledger since it was read.
    LedgerVersion,
}
