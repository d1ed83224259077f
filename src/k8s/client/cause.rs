//! The cause of an error of the client: the innermost error that says something, in a few words.

use std::error::Error;
use std::io;

use kube::client::AuthError;

/// Returns the cause of an error, on one line.
///
/// kube and hyper wrap the error of a socket several times, and their own texts say only that it failed.
pub(crate) fn cause(error: &(dyn Error + 'static)) -> String {
    let chain = chain(error);
    let telling = chain.iter().find_map(|error| {
        let of_tls = error.downcast_ref::<rustls::Error>().map(tls);
        of_tls.or_else(|| error.downcast_ref::<AuthError>().map(|error| auth(error, None)))
    });
    let text = telling.unwrap_or_else(|| {
        // hyper-util 0.1, client/legacy/connect/http.rs, `ConnectError::dns`: the type is private.
        let is_dns = chain.iter().any(|error| error.to_string() == "dns error");
        let innermost = chain.last().map(|error| words(*error)).unwrap_or_default();
        if is_dns { format!("dns error: {innermost}") } else { innermost }
    });
    one_line(&text)
}

/// Returns the error and the errors inside it, the innermost last.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| inner(*error)).collect()
}

/// Returns the error inside an error.
///
/// The `source` of an I/O error that wraps another error is that of the wrapped error, which it leaves out.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped as &(dyn Error + 'static)))
}

fn words(error: &(dyn Error + 'static)) -> String {
    let of_system = error.downcast_ref::<io::Error>().filter(|error| error.raw_os_error().is_some());
    match of_system.map(|error| error.kind().to_string()) {
        // Without the number: "connection refused".
        Some(kind) if !kind.starts_with("uncategorized") => kind,
        Some(_) | None => error.to_string(),
    }
}

fn tls(error: &rustls::Error) -> String {
    // rustls' enum is foreign and grows; all other errors are reported unchanged
    #[allow(clippy::wildcard_enum_match_arm)]
    match error {
        rustls::Error::InvalidCertificate(_) => error.to_string(),
        rustls::Error::InvalidMessage(_) => format!("tls: the server does not speak TLS ({error})"),
        _ => format!("tls: {error}"),
    }
}

/// Returns the error of the credentials.
///
/// `plugin` is the program that returns the credentials, if its name is known. kube's texts contain the
/// environment and the output of the plugin, with a token in it: only its error output is shown.
pub(super) fn auth(error: &AuthError, plugin: Option<&str>) -> String {
    let plugin =
        plugin.map_or_else(|| "credential plugin".to_owned(), |name| format!("credential plugin {name}"));
    // kube's enum is foreign and grows; all other errors are reported unchanged
    #[allow(clippy::wildcard_enum_match_arm)]
    match error {
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no error output");
            format!("the {plugin} failed ({}): {said}", out.status)
        }
        AuthError::AuthExecStart(error) => format!("the {plugin} could not be started: {error}"),
        AuthError::AuthExecParse(_) => format!("the output of the {plugin} cannot be read"),
        _ => error.to_string(),
    }
}

/// Returns the text on one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    use super::*;

    #[test]
    fn cause_of_wrapped_errors_is_the_innermost_one() {
        let refused = io::Error::from_raw_os_error(111);
        let wrapped = kube::Error::Service(Box::new(io::Error::other(refused)));
        assert_eq!(cause(&wrapped), "connection refused");
        let of_tls = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let wrapped = kube::Error::Service(Box::new(io::Error::other(of_tls)));
        assert_eq!(cause(&wrapped), "invalid peer certificate: UnknownIssuer");
        let alert = rustls::Error::AlertReceived(rustls::AlertDescription::CertificateRequired);
        let wrapped = kube::Error::Service(Box::new(io::Error::other(alert)));
        assert_eq!(cause(&wrapped), "tls: received fatal alert: CertificateRequired");
    }

    #[test]
    fn credential_plugin_output_and_environment_are_not_shown() {
        let out = Output {
            status: ExitStatus::from_raw(256),
            stdout: b"{\"status\": {\"token\": \"secret\"}}".to_vec(),
            stderr: b"first line\nsession expired\n\n".to_vec(),
        };
        let error = AuthError::AuthExecRun { cmd: "KEY=\"secret\" \"aws\"".to_owned(), out: Box::new(out) };
        let named = auth(&error, Some("aws"));
        assert_eq!(named, "the credential plugin aws failed (exit status: 1): session expired");
        let text = cause(&kube::Error::Service(Box::new(error)));
        assert_eq!(text, "the credential plugin failed (exit status: 1): session expired");
    }
}
