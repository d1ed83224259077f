//! Guards by name.
//!
//! Each condition that keeps the program from harm is asked through [`passes`]. In test builds one guard at a
//! time can be taken out, and the exploration must then find the harm (`tests/explore/mutants.rs`).
//! `docs/concepts/safety.md` says what each guard protects.

/// Returns whether a guard passes, which is its condition.
///
/// In a test build (feature `failpoint`), a guard that was taken out always passes.
#[inline]
pub fn passes(guard: Guard, condition: bool) -> bool {
    condition || is_out(guard)
}

/// Returns whether a guard was taken out, which only a test build can do.
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

    /// Returns whether this thread runs without the guard.
    pub fn is_out(guard: Guard) -> bool {
        OUT.get() == Some(guard)
    }

    /// Runs a function on this thread with a guard taken out.
    pub fn without<T>(guard: Option<Guard>, run: impl FnOnce() -> T) -> T {
        let before = OUT.replace(guard);
        let result = run();
        OUT.set(before);
        result
    }
}

macro_rules! guards {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A condition that protects data, an id or the work of another client.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Guard { $($(#[doc = $doc])+ $name,)+ }

        impl Guard {
            /// All guards.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the name of the guard, as listed in `docs/concepts/safety.md`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

guards! {
    // Gates (domain/gate/), each by its reason.
    /// The mgr knows every PG.
    StatisticsComplete,
    /// Every PG concerned has reported since its OSDs last came up or went down.
    StatisticsFresh,
    /// All PGs are active+clean before a stop, and before an available disk becomes an OSD.
    AllClean,
    /// PGs that are not clean for lack of OSDs are allowed only if every OSD that is in is up.
    OnlyShortOfOsds,
    /// Ceph answers `ok-to-stop`, and its statistics agree.
    OkToStop,
    /// Without the OSD, one more loss is survivable.
    Redundancy,
    /// Emptying: the PGs that move have reported since the last start or end of their OSDs.
    StatisticsOfThisMap,
    /// An OSD is marked out to be emptied only if each of its PGs finds another OSD, with space for it.
    CanBeEmptied,
    /// An emptied OSD is stopped, and given up, only if CRUSH places no data on it.
    GetsNoData,
    /// An OSD whose disk the CephCluster selects is not removed.
    NotSelectedAgain,
    /// While other OSDs of a node are emptied, PGs may be moving, and in no other unclean state.
    OnlyMoving,
    /// OSDs that leave together are stopped when all of them are empty.
    EmptiedTogether,
    /// OSDs that leave together are stopped one after the other.
    OneStopAtATime,
    /// OSDs that are migrated in parallel are on one host.
    BatchOneHost,
    /// OSDs that are migrated in parallel share no PG.
    BatchNoCommonPg,
    /// OSDs that are migrated in parallel have no more of the data than the run allows.
    BatchShare,
    /// A kind of OSD is first migrated alone, before several of it are in parallel.
    CanaryFirst,
    /// The first OSD of a kind serves for a time before others of the kind are in parallel.
    CanarySoaks,
    /// No OSD is emptied by its CRUSH weight while Rook would reset the weight.
    WeightsNotReset,
    /// After the stop, no other replica is missing.
    OnlyOursMissing,
    /// No PG is on its way to another state.
    Peered,
    /// The old OSD's data fits into the new one.
    EnoughSpace,
    /// No OSD is full or nearly full.
    NotFull,
    /// No flag of the cluster, or of the OSD and the groups that contain it, prevents the act.
    NoFlag,
    /// No upgrade is in progress.
    NoUpgrade,
    /// Rook is preparing no OSDs.
    RookPreparesNone,
    /// Rook's operator is at 0, or can be fenced.
    OperatorAway,
    /// A running operator has acknowledged the fence.
    FenceAcknowledged,
    /// The fence stays if a running Rook would start its own migration.
    FenceStays,
    /// The fence stays if a running Rook would give an OSD on a PVC another shape than its device has.
    SetsFenced,
    /// No fence is set externally.
    NotFencedExternally,
    /// Rook allows no failure domain to be drained.
    NotDraining,
    /// Deployments and pods of the OSD are not ambiguous.
    NothingAmbiguous,
    /// OSDs restart one after the other.
    RolledOutFirst,
    /// The PVC of an OSD is the recorded one, on the recorded PersistentVolume.
    PvcSame,
    /// Rook is not rotating the key of the OSD's encryption.
    NoRotation,
    /// The node is Ready.
    NodeReady,
    /// The node is not cordoned.
    NodeNotCordoned,
    /// All mons are in quorum.
    MonQuorum,
    /// The CephCluster is not external.
    NotExternal,
    /// Rook does not remove OSDs that are out.
    RemovesNoOutOsds,
    /// The owner has confirmed.
    Confirmed,
    /// With `--approve`, an OSD is started only as the approved plan describes it.
    ApprovedOnly,
    /// No person has paused the runs.
    NotPaused,
    /// No person has cancelled the runs.
    NotCancelled,
    /// The time is inside a window.
    InWindow,
    /// OSDs commit writes in the time that the run allows.
    CommitLatency,
    /// The number of failed OSDs is within the failure limit.
    WithinFailureLimit,
    // Preconditions of acts (domain/expect.rs).
    /// `osd destroy`: the slot holds the expected fsid.
    DestroyFsid,
    /// Stop: the Deployment is the observed one, and its OSD is up with the expected fsid.
    StopExpects,
    /// Deploy of a new OSD, Adopt: the Deployment in its place is the observed one, or is still absent.
    DeployReplaces,
    /// Deploy of a new OSD, Adopt: the slot holds the expected fsid, and is down.
    StartExpects,
    /// Deploy of an OSD on PVCs: they are the recorded ones, on the recorded PersistentVolumes.
    StartsOnPvc,
    /// Tolerate: an OSD that was down at the decision is still down.
    TolerateExpects,
    /// Stop: all PGs are clean, checked again right before.
    RecheckAllClean,
    /// Destroy and wipe of the old OSD: no other replica is missing, checked again right before.
    RecheckOnlyOursMissing,
    /// Stop of an emptied OSD: no PG needs it, checked again right before.
    RecheckEmptied,
    /// The data of an OSD that is emptied still finds a place right before it moves.
    RecheckPlace,
    /// Removal of an old directory: the new OSD has its data, checked again right before.
    RecheckBackfilled,
    /// A CRUSH weight is set only if the former weight is found: a weight set externally stays.
    WeighExpects,
    /// An upmap is restored only if its PG has none: upmaps of the balancer and of people stay.
    UpmapsOfOthersStay,
    /// The label is removed only if it has the value of osd-migrate.
    UnfenceOurs,
    /// The label is set only if the CephCluster was not written since it was observed.
    ClusterVersion,
    /// The operator and the OSDs' PodDisruptionBudget are written only if unchanged since they were observed.
    OperatorVersion,
    /// Fence and flags: the record is still open.
    RecordOpen,
    /// Before `noin` is lifted, the mark `new` is removed, so that the next boot keeps the reweight.
    UnsetFlagsKeepsReweight,
    // Phase table, steps, plan (domain/phase/, domain/step/, domain/plan/).
    /// By a partial observation, a run only waits.
    OnlyWaitsByParts,
    /// Deployments and pods of OSDs in progress are read each time, whatever the watches report.
    InProgressIsRead,
    /// A slot is the old OSD's only if it holds the recorded fsid.
    SlotIsOld,
    /// A slot is the new OSD's only if it holds the saved fsid or an issued one: the id may have been
    /// assigned to another OSD.
    SlotIsOurs,
    /// An OSD is stopped by osd-migrate only if its Deployment has the annotation with this record.
    StoppedByUs,
    /// No OSD is destroyed while it is up or its pod exists.
    AtRest,
    /// No second agent is created while one is at work.
    OneAgent,
    /// The record has the proof before Stop.
    ProvenFirst,
    /// The parts that an OSD has on PVCs by its Deployment were found there before Stop.
    PartsFoundFirst,
    /// An OSD in a directory is stopped only if the disk that it moves to was found available.
    DiskAvailableFirst,
    /// The weight follows the size of the new disk before the new OSD is started.
    WeighedFirst,
    /// An OSD on device-mapper counts as encrypted only if a key, an init container or its name shows it.
    OnlyKnownEncryption,
    /// Before Stop, a record is given up if the migration is no longer wanted as recorded.
    StillWanted,
    /// An OSD is removed only if a person requested the removal of this fsid.
    RequestStands,
    /// An OSD in a directory is removed without a request only if its node has no disk for it.
    NoDiskForDirectory,
    /// An OSD is removed without a request only if it has been down and out for the configured time.
    OutForLong,
    /// An available disk is recorded only on a node that is still to get new OSDs.
    NodeStillChosen,
    /// An available disk is recorded once: not while a record uses it, nor after it became an OSD.
    DiskOnce,
    /// A PVC that an OSD's Deployment names does not become another OSD.
    PvcUnused,
    /// A PVC is recorded once: not while a record uses it.
    PvcOnce,
    /// An OSD that nothing starts is started only if its slot holds its fsid.
    AdoptsItsOwn,
    /// A disk that is a PersistentVolume, or may be one, does not become an OSD, and an OSD on it is not
    /// started as a host OSD.
    NoPersistentVolume,
    /// A record that was given up is opened again if its agent took the id nevertheless.
    StartedIsFinished,
    /// An OSD is finished only when the PGs that it is to hold are clean with it.
    CleanAtTheEnd,
    /// An OSD is finished only when these PGs have reported since it came up.
    ReportedAtTheEnd,
    /// An OSD is finished only when its metadata is as recorded.
    ConformsAtTheEnd,
    /// A backup of the Deployment exists before Stop.
    BackedUpFirst,
    /// PGs and intent are saved before Stop.
    IntentSavedFirst,
    /// The ledger has the intent before an OSD is marked out to be emptied.
    EmptyingSavedFirst,
    /// An OSD that was marked out to be emptied is marked in before its record closes, and when it is up in
    /// quarantine.
    MarkedInAgain,
    /// The record of an OSD that was emptied, and is in again, closes when the statistics show its PGs, or
    /// after a minute.
    ReturnSeenFirst,
    /// The fence is set before every act from Stop to Deploy.
    FencedFirst,
    /// The fence that the owner ordered stays until the OSDs are as the edited CephCluster declares.
    OwnersFenceStays,
    /// The ledger has the fence before it is set.
    FenceSavedFirst,
    /// The ledger has the former state of the operator before it is scaled.
    OperatorSavedFirst,
    /// The ledger says that the operator is being restored before it is scaled up.
    OperatorRestoreSavedFirst,
    /// When an OSD is stopped, no drain can take another OSD down.
    DrainsLimitedFirst,
    /// While an OSD is stopped, no drain can take another OSD down, whatever happens to Rook's
    /// PodDisruptionBudget.
    DrainsBlocked,
    /// The ledger has the former `maxUnavailable` before the PodDisruptionBudget is limited.
    PdbSavedFirst,
    /// The ledger has noscrub and nodeep-scrub before they are set.
    ScrubSavedFirst,
    /// noscrub and nodeep-scrub of another client stay set, and stay unset.
    ScrubOfOthersStays,
    /// The ledger has the options about recovery before they are set.
    RecoverySavedFirst,
    /// Options about recovery that have a value of another client are not changed.
    RecoveryOfOthersStays,
    /// The ledger records that client.bootstrap-osd was missing before the key is created.
    BootstrapSavedFirst,
    /// client.bootstrap-osd is deleted only if osd-migrate created it.
    BootstrapOurs,
    /// An attempt is saved before its Job is created.
    AttemptSavedFirst,
    /// The loss of upmaps is saved before the CRUSH item is restored.
    UpmapLossSavedFirst,
    /// The new fsid is saved before Deploy.
    NewSavedFirst,
    /// The record is closed only when none of its objects are left.
    CleanedUpFirst,
    /// An agent that fails repeatedly is given up.
    FailuresEnd,
    /// A mark of osd-migrate without its record halts the run.
    LedgerNotLost,
    /// Objects that a frozen runner created for a closed record are deleted.
    OrphansDeleted,
    /// Ceph may heal without an OSD that was quarantined after its stop.
    QuarantineLiftsNoout,
    /// The Secret with the bootstrap-osd key of an OSD that was quarantined is deleted.
    QuarantineKeyDeleted,
    /// The flags of an OSD are unset before its record closes.
    FlagsUnsetFirst,
    /// `noout` and `noin` are set on the OSD before it stops, and before a new one boots.
    FlagsSetFirst,
    /// An OSD that was started externally after the stop is not destroyed.
    StaysStopped,
    // Rules of progress (ADR 0025): without them a faulty part blocks the healthy rest.
    /// An OSD whose own gate is shut is skipped, and work on the next one starts.
    SkipsSickCandidate,
    /// Work on an OSD that is down does not start.
    DownIsNoCandidate,
    /// The API server admits the Deployment of the new OSD before the old one is stopped.
    AdmittedFirst,
    /// Only failures after a stop count towards the failure limit.
    LimitPastStopOnly,
    /// An OSD that stays down loses `noout` after a time limit, and before the run halts.
    NooutHasAnEnd,
    /// A new daemon that does not come up in time is quarantined.
    StartHasALimit,
    /// The stop of an OSD whose pod does not end, or that counts as up without one, is reverted at a limit.
    StopHasALimit,
    /// The quota of a pool does not count as full.
    PoolQuotaIsNoFull,
    /// An intent to stop stays valid however long an iteration takes.
    IntentOutlivesSlowIterations,
    /// A run waits for PG states after a stop that end without help.
    PassingStatesWait,
    /// PGs that CRUSH places on a stopped OSD since its stop may be without its replica too.
    PlacedSinceExcused,
    /// PGs that are short of an OSD report, or have the time to, before an OSD is called settled.
    ShortPgsReport,
    /// An OSD that still serves is given up if another one of its batch was quarantined after its stop.
    BatchEndsWithQuarantine,
    /// A run that waits observes everything again in time.
    PartsExpire,
    /// All OSDs are listed again in time.
    ListExpires,
    /// Rook's operator is restored while a run waits.
    OperatorRestored,
    /// Attempts of a node agent after the stop are spaced.
    AgentRetriesSpaced,
    // Preconditions of the node agent (node/, and the simulated agent).
    /// The agent's report exists when it begins: otherwise its record was closed.
    AgentExpected,
    /// No agent begins after an agent of a later attempt.
    AgentsInOrder,
    /// The slot is destroyed when the wipe begins.
    AgentSlotDestroyed,
    /// The data that was read is proven again under the exclusive open.
    AgentProvesAgain,
    /// Fsid, id, cluster and format of the old OSD are on the disk as recorded.
    ProofNames,
    /// A store other than the old one is wiped only if its fsid is an issued one.
    ProofIssuedFsid,
    /// A store with an issued fsid names this OSD and this cluster.
    ProofIssuedToThis,
    /// An available disk becomes an OSD only if it is empty.
    DiskAvailable,
    /// A blank disk without a serial number is the recorded one only if it is plugged in at the recorded
    /// place.
    BlankByPlace,
    /// The device for a database can take it: checked before Stop, and again before the old data is wiped.
    DatabaseFits,
    /// The Secret with the key of an OSD on a PVC exists before an agent formats its device.
    KeyFirst,
    /// A key of an OSD on a PVC that exists is not replaced.
    KeyStays,
    /// The key of an encrypted OSD on a PVC opens the OSD before the OSD is stopped. A lost key is not
    /// replaced.
    KeyOfOld,
    /// The device of a PVC for a database or log is cleared only if it carries a part of this OSD.
    PvcPartProven,
    /// Mappings on the device of a PVC are closed before the agent opens the device.
    MappingsClosed,
    /// The issued fsid is on the node's disk before `osd new` is sent.
    FsidWrittenFirst,
    /// The rollback of ceph-volume may not purge the id.
    ShimRefusesPurge,
    /// ceph-volume may request no other id.
    ShimOneId,
    /// An act begins only with the ledger that it was decided by.
    ActByLedger,
    /// Save: the ledger was not written since it was read.
    LedgerVersion,
}
