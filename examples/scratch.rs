use osd_migrate::node::{self, Host};
#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mut host =
        Host::of_pod(osd_migrate::domain::osd::NodeName("n1".into()), std::env::var("PATH").unwrap())
            .unwrap();
    host.state = std::env::var("STATE").unwrap_or("/tmp/wtnode/state".into()).into();
    if let Ok(p) = std::env::var("SYS_BLOCK") {
        host.sys_block = p.into();
    }
    host.scratch = "/tmp/wtnode/scratch".into();
    host.ceph_conf = std::env::var("CEPH_CONF_AT").unwrap_or("/tmp/wtnode/ceph.conf".into()).into();
    host.keyring = std::env::var("KEYRING_AT").unwrap_or("/tmp/wtnode/keyring".into()).into();
    if let Ok(p) = std::env::var("BINARY") {
        host.binary = p.into();
    }
    let text = std::fs::read_to_string(&args[2]).unwrap();
    if args[1] == "look" {
        let report = node::look(&serde_json::from_str(&text).unwrap(), &host).await;
        println!("{}", serde_json::to_string_pretty(&report).unwrap());
    } else {
        let report = node::agent(&serde_json::from_str(&text).unwrap(), &host).await;
        println!("{}", serde_json::to_string_pretty(&report).unwrap());
    }
}
