//! Handle of librados and its thread. This is the only unsafe code of the crate, and it knows nothing of the
//! meaning of Ceph's commands.
//!
//! librados is opened at run time, so that the binary starts if Ceph is absent (`--help`, `status` on a
//! laptop). Its calls block, so each handle has its own thread. Commands arrive by a channel, and answers
//! return by a oneshot.
#![allow(unsafe_code)] // librados speaks C; what this file offers is safe

use std::error::Error;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

/// `rados_t` of librados.
type Cluster = *mut c_void;
/// `rados_mon_command` and `rados_mgr_command` have the same shape.
type Command = unsafe extern "C" fn(
    Cluster,
    *mut *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut *mut c_char,
    *mut usize,
) -> c_int;

/// Daemon that answers a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Daemon {
    /// A monitor, by `rados_mon_command`.
    Mon,
    /// The active manager, by `rados_mgr_command`.
    Mgr,
}

/// Reply to a command.
#[derive(Debug)]
pub(super) struct Reply {
    /// 0, or a negated errno.
    pub(super) code: i32,
    /// Answer: JSON if the command requested it.
    pub(super) out: Buffer,
    /// Sentence for people (`outs`).
    pub(super) said: String,
}

/// Bytes that librados allocated, freed when dropped.
///
/// The statistics of 100,000 PGs are 250 MB: they are parsed without a copy.
#[derive(Debug)]
pub(super) struct Buffer {
    start: *mut c_char,
    len: usize,
    free: unsafe extern "C" fn(*mut c_char),
}

// SAFETY: the bytes come from `malloc` (`do_out_buffer` in librados_c.cc, 16-20) and belong to this value
// alone; `rados_buffer_free` is `free`, which any thread may call.
unsafe impl Send for Buffer {}
// SAFETY: shared access only reads the bytes.
unsafe impl Sync for Buffer {}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        if self.start.is_null() {
            return &[];
        }
        // SAFETY: librados says that `start` points to `len` bytes. Nothing writes to them, and they are
        // freed in `drop` only.
        unsafe { std::slice::from_raw_parts(self.start.cast::<u8>(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.start.is_null() {
            // SAFETY: librados allocated it, and nothing refers to it any more.
            unsafe { (self.free)(self.start) };
        }
    }
}

/// Reason why there is no connected handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotConnected {
    /// The library is missing, or a function of it is.
    NoLibrary(String),
    /// A value contains a NUL byte, or the library refuses the option of this name.
    BadOption(String),
    /// `rados_create2` or `rados_connect` failed with this negated errno.
    Failed(i32),
    /// The thread could not be started.
    NoThread(String),
}

struct Job {
    command: CString,
    input: Vec<u8>,
    answer: oneshot::Sender<Reply>,
}

/// Connected handle, used through its thread.
///
/// Commands run one after the other.
pub(super) struct Lane {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    busy: Arc<AtomicBool>,
}

impl Lane {
    /// Starts the thread and connects in it, with these options and no configuration file.
    pub(super) async fn connect(
        daemon: Daemon,
        user: &str,
        options: Vec<(&'static str, String)>,
    ) -> Result<Self, NotConnected> {
        let user = user.to_owned();
        let (jobs, inbox) = mpsc::channel();
        let (ready, connected) = oneshot::channel();
        let busy = Arc::new(AtomicBool::new(true));
        let at_work = Arc::clone(&busy);
        let work = move || match Handle::connect(&user, &options) {
            Ok(handle) => {
                drop(options); // one of them is the key
                at_work.store(false, Ordering::SeqCst);
                if ready.send(Ok(())).is_ok() {
                    serve(&handle, daemon, &inbox, &at_work);
                }
            }
            Err(reason) => drop(ready.send(Err(reason))),
        };
        let thread = std::thread::Builder::new()
            .name("librados".to_owned())
            .spawn(work)
            .map_err(|error| NotConnected::NoThread(error.to_string()))?;
        let lane = Self { jobs: Some(jobs), thread: Some(thread), busy };
        match connected.await {
            Ok(result) => result.map(|()| lane),
            Err(_) => Err(NotConnected::NoThread("the thread of librados ended".to_owned())),
        }
    }

    /// Queues a command.
    ///
    /// The receiver fails if the thread has ended. A command whose receiver was dropped before the command
    /// was run is never sent.
    pub(super) fn send(&self, command: CString, input: Vec<u8>) -> oneshot::Receiver<Reply> {
        let (answer, reply) = oneshot::channel();
        if let Some(jobs) = &self.jobs {
            drop(jobs.send(Job { command, input, answer }));
        }
        reply
    }
}

impl Drop for Lane {
    /// Waits for `rados_shutdown` of an idle handle.
    ///
    /// A handle that is stuck in a call is not waited for: it shuts down when the call returns.
    fn drop(&mut self) {
        self.jobs = None;
        if let (false, Some(thread)) = (self.busy.load(Ordering::SeqCst), self.thread.take()) {
            drop(thread.join());
        }
    }
}

fn serve(handle: &Handle, daemon: Daemon, inbox: &mpsc::Receiver<Job>, busy: &AtomicBool) {
    while let Ok(job) = inbox.recv() {
        busy.store(true, Ordering::SeqCst);
        if !job.answer.is_closed() {
            drop(job.answer.send(handle.run(daemon, &job.command, &job.input)));
        }
        busy.store(false, Ordering::SeqCst);
    }
}

/// Functions of librados that are used, as declared in `rados/librados.h` (same from Pacific to Tentacle).
struct Functions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int),
    create2: unsafe extern "C" fn(*mut Cluster, *const c_char, *const c_char, u64) -> c_int,
    conf_set: unsafe extern "C" fn(Cluster, *const c_char, *const c_char) -> c_int,
    connect: unsafe extern "C" fn(Cluster) -> c_int,
    mon_command: Command,
    mgr_command: Command,
    buffer_free: unsafe extern "C" fn(*mut c_char),
    shutdown: unsafe extern "C" fn(Cluster),
}

/// Functions, opened once for the process and never closed: librados leaves threads and static objects
/// behind.
static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();

fn functions() -> Result<&'static Functions, NotConnected> {
    let open = || {
        Functions::open()
            .map_err(|error| error.source().map_or_else(|| error.to_string(), ToString::to_string))
    };
    FUNCTIONS.get_or_init(open).as_ref().map_err(|reason| NotConnected::NoLibrary(reason.clone()))
}

impl Functions {
    fn open() -> Result<Self, libloading::Error> {
        // SAFETY: librados' initialisers are ordinary C++ static constructors; no code of this crate depends
        // on their order.
        let library = unsafe { libloading::Library::new("librados.so.2") }?;
        // SAFETY: the types are those of `rados/librados.h`, whose functions keep their signature within
        // `.so.2`.
        let functions = unsafe {
            Self {
                version: *library.get(c"rados_version")?,
                create2: *library.get(c"rados_create2")?,
                conf_set: *library.get(c"rados_conf_set")?,
                connect: *library.get(c"rados_connect")?,
                mon_command: *library.get(c"rados_mon_command")?,
                mgr_command: *library.get(c"rados_mgr_command")?,
                buffer_free: *library.get(c"rados_buffer_free")?,
                shutdown: *library.get(c"rados_shutdown")?,
            }
        };
        std::mem::forget(library); // the function pointers stay valid as long as it is loaded
        Ok(functions)
    }
}

/// Returns the version of librados (`rados_version`), which is not the release of Ceph.
pub(super) fn version() -> Result<String, NotConnected> {
    let functions = functions()?;
    let (mut major, mut minor, mut extra) = (0, 0, 0);
    // SAFETY: three valid pointers to int, which is all the function writes to.
    unsafe { (functions.version)(&raw mut major, &raw mut minor, &raw mut extra) };
    Ok(format!("{major}.{minor}.{extra}"))
}

/// `rados_t`, created, used and shut down in one thread (the raw pointer prevents sending it to another
/// thread).
struct Handle {
    functions: &'static Functions,
    cluster: Cluster,
}

impl Handle {
    fn connect(user: &str, options: &[(&'static str, String)]) -> Result<Self, NotConnected> {
        let functions = functions()?;
        let name = c_string("name", user)?;
        let mut cluster = ptr::null_mut();
        // SAFETY: `cluster` is written on success only; both strings end in NUL and outlive the call.
        let code = unsafe { (functions.create2)(&raw mut cluster, c"ceph".as_ptr(), name.as_ptr(), 0) };
        if code < 0 {
            return Err(NotConnected::Failed(code));
        }
        let handle = Self { functions, cluster }; // shut down on every way out from here
        for (option, value) in options {
            handle.set(option, value)?;
        }
        // SAFETY: the handle was created by `rados_create2` and is not shut down yet.
        match unsafe { (functions.connect)(handle.cluster) } {
            code if code < 0 => Err(NotConnected::Failed(code)),
            _ => Ok(handle),
        }
    }

    fn set(&self, option: &'static str, value: &str) -> Result<(), NotConnected> {
        let (name, value) = (c_string(option, option)?, c_string(option, value)?);
        // SAFETY: a live handle and two strings that end in NUL; librados copies both.
        match unsafe { (self.functions.conf_set)(self.cluster, name.as_ptr(), value.as_ptr()) } {
            code if code < 0 => Err(NotConnected::BadOption(option.to_owned())),
            _ => Ok(()),
        }
    }

    fn run(&self, daemon: Daemon, command: &CStr, input: &[u8]) -> Reply {
        let call = match daemon {
            Daemon::Mon => self.functions.mon_command,
            Daemon::Mgr => self.functions.mgr_command,
        };
        let mut commands = [command.as_ptr()];
        let (mut out, mut out_len) = (ptr::null_mut(), 0);
        let (mut said, mut said_len) = (ptr::null_mut(), 0);
        // SAFETY: the handle is connected; `commands` contains one string that ends in NUL; `input` is valid
        // for its length; the four out-pointers are valid. librados allocates the buffers it stores there. It
        // has finished with all of them when it returns: no `rados_mon_op_timeout` is set on a handle used
        // for the mgr (see `Connection::options`).
        let code = unsafe {
            call(
                self.cluster,
                commands.as_mut_ptr(),
                commands.len(),
                input.as_ptr().cast(),
                input.len(),
                &raw mut out,
                &raw mut out_len,
                &raw mut said,
                &raw mut said_len,
            )
        };
        let free = self.functions.buffer_free;
        let out = Buffer { start: out, len: out_len, free };
        let said = Buffer { start: said, len: said_len, free };
        Reply { code, out, said: String::from_utf8_lossy(&said).trim().to_owned() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle was created by `rados_create2` and is shut down here only; the thread makes no
        // call afterwards.
        unsafe { (self.functions.shutdown)(self.cluster) };
    }
}

fn c_string(option: &str, value: &str) -> Result<CString, NotConnected> {
    CString::new(value).map_err(|_| NotConnected::BadOption(option.to_owned()))
}
