//! The end of the output: a full disk, and a reader that leaves. The program runs against a server that
//! answers with fixed objects.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Time in which the program ends after its reader has gone.
const SOON: Duration = Duration::from_secs(20);

#[expect(clippy::disallowed_methods, reason = "the exit code of the whole program is tested")]
fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_osd-migrate"));
    command.args(args).env_remove("COLUMNS").env_remove("POD_NAME").env_remove("POD_NAMESPACE");
    command
}

fn finished(args: &[&str], stdout: Stdio) -> Output {
    program(args).stdout(stdout).stderr(Stdio::piped()).output().unwrap()
}

#[test]
fn full_disk_ends_with_one_line_and_exit_code_1() {
    for args in
        [&["rehearse", "-q"][..], &["version"], &["--help"], &["explain", "down"], &["completion", "bash"]]
    {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = finished(args, full.into());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
        assert!(
            text.contains("the output could not be written: No space left on device"),
            "{args:?}: {text}"
        );
        assert!(!text.contains('\u{1b}'), "colours in a file: {text}");
    }
}

#[test]
fn closed_pipe_ends_silently() {
    for args in [&["rehearse"][..], &["explain"], &["--help-all"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = finished(args, writer.into());
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{args:?}: {output:?}");
    }
}

/// Returns the answer of the server to a path; a log has no end.
fn answer(path: &str) -> (u16, Value) {
    let list =
        |items: Value| (200, json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}));
    let pod = json!({"metadata": {"name": "look-x", "creationTimestamp": "2026-03-01T03:00:00Z"},
        "spec": {"containers": []}, "status": {"phase": "Running", "containerStatuses": [{"name": "osd-migrate",
        "image": "i", "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-03-01T03:00:00Z"}}}]}});
    if path.contains("/cephclusters") {
        return list(json!([{"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
            "metadata": {"name": "store", "namespace": "ceph-a", "uid": "u"}, "spec": {}}]));
    }
    if path.contains("/jobs/look") {
        return (
            200,
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "look", "uid": "j"}}),
        );
    }
    if path.contains("/pods?") {
        return list(json!([pod]));
    }
    (
        404,
        json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "not found"}),
    )
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut header = String::new();
        while reader.read_line(&mut header)? > 2 {
            header.clear();
        }
        let path = request.split(' ').nth(1).unwrap_or_default();
        if path.contains("/log") {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")?;
            stream.write_all(b"2026-03-01T03:00:01Z osd.0: a line\n2026-03-01T03:00:02Z osd.0: another\n")?;
            return reader.read_to_end(&mut Vec::new()).map(drop);
        }
        let (code, body) = answer(path);
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
    }
}

/// Starts a server, and returns a kubeconfig that names it.
fn kubeconfig() -> tempfile::NamedTempFile {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(
        file,
        "clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n\
         contexts: [{{name: lab, context: {{cluster: c}}}}]\ncurrent-context: lab\n"
    )
    .unwrap();
    file
}

/// Waits until the program ends, and returns its exit code.
fn end(child: &mut Child) -> Option<i32> {
    #[expect(clippy::disallowed_methods, reason = "the program has a limited time")]
    let began = Instant::now();
    while began.elapsed() < SOON {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::yield_now();
    }
    child.kill().unwrap();
    None
}

#[test]
fn commands_that_print_again_and_again_end_when_nobody_reads() {
    let config = kubeconfig();
    let access = ["--kubeconfig", config.path().to_str().unwrap(), "-n", "ceph-a"];
    for (args, first) in [
        (&["status", "--watch"][..], "CephCluster store in namespace ceph-a\n"),
        (&["follow", "look"], "osd.0: a line\n"),
    ] {
        let mut command = program(&[&access[..], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, first, "{args:?}");
        let code = end(&mut child);
        let mut text = String::new();
        child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((code, text.as_str()), (Some(141), ""), "{args:?}");
    }
}

#[test]
fn commands_in_messages_repeat_how_the_cluster_was_reached() {
    let config = kubeconfig();
    let file = config.path().to_str().unwrap();
    let args = ["--kubeconfig", file, "--context", "lab", "-n", "ceph-a", "follow"];
    let output = finished(&args, Stdio::piped());
    let text = String::from_utf8_lossy(&output.stderr);
    let expected = format!("osd-migrate --context lab --kubeconfig {file} -n ceph-a status");
    assert!(output.status.code() == Some(3) && text.contains(&expected), "{text}");
}

#[test]
fn proxy_of_the_environment_is_not_used_for_an_exempt_server() {
    let config = kubeconfig();
    let mut command = program(&["--kubeconfig", config.path().to_str().unwrap(), "-n", "ceph-a", "follow"]);
    command.env("HTTPS_PROXY", "http://proxy.example:3128").env("NO_PROXY", "localhost,127.0.0.0/8");
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && !text.contains("proxy"), "{text}");
}
