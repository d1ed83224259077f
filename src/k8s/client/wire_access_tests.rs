//! Errors of access, with real sockets.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use crate::k8s::client::kubeconfig::{Access, Environment};
use crate::k8s::{K8s, Place};

/// Returns the access to this server, by a kubeconfig.
async fn connected(server: &str) -> K8s {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let config = format!(
        "clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: jane, user: {{token: secret}}}}]\n\
         contexts: [{{name: lab, context: {{cluster: c, user: jane}}}}]\ncurrent-context: lab\n"
    );
    std::fs::write(&file, config).unwrap();
    let around =
        Environment { kubeconfig: Some(file.into()), home: None, is_pod: false, no_proxy: String::new() };
    K8s::connect_in(Place::new("rook-ceph"), &Access::default(), &around).await.unwrap()
}

/// Returns the error of a read, after the call that it names.
async fn error_of_read(k8s: &K8s) -> String {
    let text = k8s.find_cluster().await.unwrap_err().to_string();
    assert!(!text.contains("outcome") && !text.contains('\n') && !text.contains("secret"), "{text}");
    let call = "list cephclusters.ceph.rook.io in namespace rook-ceph: ";
    text.strip_prefix(call).unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// Returns a port on which nothing listens.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Answers each connection with `answer` once something was received; returns the port.
fn answering(answer: Option<&'static [u8]>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for mut socket in listener.incoming().flatten() {
            match answer {
                Some(answer) => {
                    let received = socket.read(&mut [0; 4096]);
                    received.and_then(|_| socket.write_all(answer)).expect("the client listens");
                }
                None => silent.push(socket),
            }
        }
    });
    port
}

#[tokio::test]
async fn closed_port_is_a_refused_connection() {
    let port = closed_port();
    let url = format!("https://127.0.0.1:{port}");
    let k8s = connected(&url).await;
    let expected = format!(
        "no answer from the API server ({url}, context lab, user jane): connection refused. To check: kubectl \
         --context lab cluster-info"
    );
    assert_eq!(error_of_read(&k8s).await, expected);
    let text = k8s.drop_agent("j", "u").await.unwrap_err().to_string();
    assert!(text.contains("connection refused; the outcome is unknown. To check: "), "{text}");
}

#[tokio::test]
async fn unknown_host_name_is_a_dns_error() {
    // A label of 64 characters is refused before any name server is asked.
    let text = error_of_read(&connected(&format!("http://{}.invalid:6443", "x".repeat(64))).await).await;
    assert!(text.contains("x.invalid:6443, context lab, user jane): dns error: "), "{text}");
    assert!(!text.contains("dns error: dns error"), "{text}");
}

#[tokio::test]
async fn server_without_tls_is_named_as_such() {
    let port = answering(Some(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
    let text = error_of_read(&connected(&format!("https://127.0.0.1:{port}")).await).await;
    assert!(text.contains(", user jane): tls: the server does not speak TLS ("), "{text}");
}

#[tokio::test]
async fn silent_server_is_a_timeout() {
    let url = format!("http://127.0.0.1:{}", answering(None));
    let k8s = connected(&url).await.with_call_limit(Duration::from_millis(200));
    let expected = format!(
        "no answer from the API server ({url}, context lab, user jane) within 0.2 s. To check: kubectl \
         --context lab cluster-info"
    );
    assert_eq!(error_of_read(&k8s).await, expected);
}

#[tokio::test]
async fn rejected_credentials_are_reported_over_a_real_connection() {
    let answer: &[u8] = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 12\r\n\r\nUnauthorized";
    let url = format!("http://127.0.0.1:{}", answering(Some(answer)));
    let text = error_of_read(&connected(&url).await).await;
    let expected = format!("the API server ({url}, context lab, user jane) rejects the credentials");
    assert!(text.starts_with(&expected) && text.ends_with("kubectl --context lab auth whoami"), "{text}");
}
