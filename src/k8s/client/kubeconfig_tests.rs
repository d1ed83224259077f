//! Kubeconfigs as kubectl reads them, and the errors of broken ones.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::k8s::client::kubeconfig::{Access, Environment};
use crate::k8s::{K8s, K8sError, Place, Server};

/// Two contexts: `lab` without a user is the current one, `prod` has a namespace and a user.
const TWO: &str = "
clusters:
- {name: a, cluster: {server: 'https://10.0.0.1:6443'}}
- {name: b, cluster: {server: 'https://me:secret@prod.example/k8s/c-1'}}
users:
- {name: jane, user: {token: secret}}
contexts:
- {name: lab, context: {cluster: a}}
- {name: prod, context: {cluster: b, user: jane, namespace: ceph-a}}
current-context: lab
";

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file
}

fn laptop(kubeconfig: Option<OsString>, home: Option<&Path>) -> Environment {
    Environment { kubeconfig, home: home.map(Path::to_owned), is_pod: false, no_proxy: String::new() }
}

fn named(file: Option<&Path>, context: Option<&str>) -> Access {
    Access { kubeconfig: file.map(Path::to_owned), context: context.map(str::to_owned) }
}

async fn server(access: &Access, around: &Environment) -> Server {
    K8s::connect_in(Place::new("rook-ceph"), access, around).await.unwrap().server().clone()
}

/// Returns the sentence of a configuration error.
async fn error(access: &Access, around: &Environment) -> String {
    match K8s::connect_in(Place::new("rook-ceph"), access, around).await {
        Err(K8sError::NoConfig(why)) => {
            assert!(!why.contains('\n') && !why.contains("secret"), "{why}");
            why
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it is a configuration"),
    }
}

/// Returns the sentence about a kubeconfig whose only context has this cluster and this user.
async fn error_of(cluster: &str, user: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "clusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\n\
         contexts: [{{name: lab, context: {{cluster: c, user: u}}}}]\ncurrent-context: lab\n"
    );
    let file = written(folder.path(), "config", &text);
    let text = error(&Access::default(), &laptop(Some(file.clone().into()), None)).await;
    text.replace(&file.display().to_string(), "FILE")
}

#[tokio::test]
async fn context_is_the_current_one_or_the_named_one() {
    let folder = tempfile::tempdir().unwrap();
    let around = laptop(Some(written(folder.path(), "config", TWO).into()), None);
    let lab = server(&Access::default(), &around).await;
    assert_eq!(
        (lab.to_string().as_str(), lab.namespace.as_str()),
        ("https://10.0.0.1:6443, context lab", "default")
    );
    let prod = server(&named(None, Some("prod")), &around).await;
    assert_eq!(prod.to_string(), "https://prod.example/k8s/c-1, context prod, user jane");
    assert_eq!((prod.namespace.as_str(), prod.kubectl().as_str()), ("ceph-a", "kubectl --context prod"));
    // kubectl takes an empty name for none.
    assert_eq!(server(&named(None, Some("")), &around).await, lab);
}

#[tokio::test]
async fn named_kubeconfig_takes_precedence_over_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let other = written(folder.path(), "other", &TWO.replace("10.0.0.1", "10.0.0.2"));
    let around = laptop(Some(written(folder.path(), "config", TWO).into()), None);
    let found = server(&named(Some(&other), None), &around).await;
    assert_eq!(found.url, "https://10.0.0.2:6443");
    assert_eq!(found.kubectl(), format!("kubectl --kubeconfig {} --context lab", other.display()));
}

#[tokio::test]
async fn kubeconfigs_are_merged_and_missing_ones_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let mine = "clusters: [{name: m, cluster: {server: 'https://mine'}}]\n\
                contexts: [{name: mine, context: {cluster: m}}]\ncurrent-context: mine\n";
    let files = [
        folder.path().join("absent"),
        written(folder.path(), "mine", mine),
        written(folder.path(), "config", TWO),
    ];
    let around = laptop(Some(std::env::join_paths(files).unwrap()), None);
    assert_eq!(server(&Access::default(), &around).await.url, "https://mine");
    assert_eq!(server(&named(None, Some("lab")), &around).await.url, "https://10.0.0.1:6443");
    // Without KUBECONFIG, or with an empty one, the file in the home folder is read.
    std::fs::create_dir(folder.path().join(".kube")).unwrap();
    written(&folder.path().join(".kube"), "config", TWO);
    for kubeconfig in [None, Some(OsString::new())] {
        let found = server(&Access::default(), &laptop(kubeconfig, Some(folder.path()))).await;
        assert_eq!(found.url, "https://10.0.0.1:6443");
    }
}

#[tokio::test]
async fn missing_kubeconfig_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = error(&Access::default(), &laptop(None, Some(folder.path()))).await;
    let default = folder.path().join(".kube/config");
    let expected = format!(
        "there is no kubeconfig at {}. Name one with --kubeconfig, or set KUBECONFIG",
        default.display()
    );
    assert_eq!(text, expected);
    let absent = folder.path().join("absent");
    let text = error(&named(Some(&absent), None), &laptop(None, None)).await;
    let expected = format!("kubeconfig {} cannot be read: No such file or directory", absent.display());
    assert!(text.starts_with(&expected), "{text}");
    // A pod has its ServiceAccount, but an option that is wrong is not ignored.
    let pod = Environment { is_pod: true, ..laptop(None, None) };
    assert_eq!(error(&named(Some(&absent), None), &pod).await, text);
}

#[tokio::test]
async fn unreadable_kubeconfig_is_named_without_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let text = error(&named(Some(folder.path()), None), &laptop(None, None)).await;
    assert!(text.contains("cannot be read: Is a directory"), "{text}");
    let broken = written(folder.path(), "broken", "users:\n- name: secret\n  user: [secret\nclusters: 1\n");
    let text = error(&named(Some(&broken), None), &laptop(None, None)).await;
    assert!(text.contains("/broken is not a kubeconfig: it is malformed at line "), "{text}");
    let typed = written(folder.path(), "typed", "users:\n- name: jane\n  user: secret\n");
    let text = error(&named(Some(&typed), None), &laptop(None, None)).await;
    assert!(text.contains("/typed is not a kubeconfig: it is malformed at line 3"), "{text}");
}

#[tokio::test]
async fn unknown_context_lists_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "config", TWO);
    let around = laptop(Some(file.clone().into()), None);
    let text = error(&named(None, Some("prd")), &around).await;
    let expected = format!(
        "kubeconfig {} has no context prd (it has lab, prod). See: kubectl config get-contexts",
        file.display()
    );
    assert_eq!(text, expected);
    written(folder.path(), "config", &TWO.replace("current-context: lab", ""));
    let text = error(&Access::default(), &around).await;
    assert!(
        text.contains("has no current context. Select a context with --context (it has lab, prod)"),
        "{text}"
    );
    written(folder.path(), "config", "");
    let text = error(&Access::default(), &around).await;
    assert!(text.contains("has no current context. Select a context with --context (it has none)"), "{text}");
}

#[tokio::test]
async fn broken_entry_of_a_kubeconfig_is_named() {
    let cases = [
        ("{server: 'https://bad host'}", "{}", "the address of its server is invalid: "),
        ("{}", "{}", "its cluster has no server"),
        (
            "{server: 'https://h', certificate-authority: /absent/ca.crt}",
            "{}",
            "its certificate-authority /absent/ca.crt cannot be read: No such file or directory",
        ),
        (
            "{server: 'https://h'}",
            "{client-certificate: /absent/me.crt, client-key: /absent/me.key}",
            "its client-certificate /absent/me.crt cannot be read: No such file or directory",
        ),
        ("{server: 'https://h'}", "{tokenFile: /absent/token}", "/absent/token"),
        (
            "{server: 'https://h'}",
            "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /absent/plugin, interactiveMode: Never}}",
            "the credential plugin /absent/plugin could not be started: No such file or directory",
        ),
        (
            "{server: 'https://h', proxy-url: 'http://me:secret@proxy:3128'}",
            "{}",
            "its proxy http://proxy:3128 cannot be used",
        ),
    ];
    for (cluster, user, expected) in cases {
        let text = error_of(cluster, user).await;
        assert!(text.starts_with("context lab") && text.contains(expected), "{text}");
        assert!(text.contains(". See: kubectl ") && text.contains(" config view"), "{text}");
    }
}

#[tokio::test]
async fn proxy_that_the_kubeconfig_names_is_never_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        TWO.replace("{server: 'https://10.0.0.1:6443'}", "{server: 'https://h', proxy-url: 'http://p:3128'}");
    let file = written(folder.path(), "config", &text);
    let around = Environment { no_proxy: "*".to_owned(), ..laptop(Some(file.into()), None) };
    let text = error(&Access::default(), &around).await;
    assert!(text.contains("its proxy http://p:3128 cannot be used"), "{text}");
}
