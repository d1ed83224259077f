use std::os::unix::fs::FileExt;

use super::*;
use crate::domain::inventory::Rejection;
use crate::domain::osd::NodeName;
use crate::node::samples::host;

fn request(node: &str) -> InventoryRequest {
    InventoryRequest {
        run: "job".into(),
        number: 4,
        node: NodeName(node.into()),
        cluster: "5f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap(),
        on_file: true,
    }
}

#[tokio::test]
async fn inventory_on_another_node_is_refused_and_writes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let report = inventory(&request("n2"), &host(root.path())).await;
    assert!(report.inventory.is_none() && report.problem.unwrap().contains("n2"));
    assert_eq!((report.number, report.run.as_str()), (4, "job"));
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn file_disk_absent_or_blank_is_available_and_not_created() {
    let root = tempfile::tempdir().unwrap();
    let host = host(root.path());
    let state = async || {
        let report = inventory(&request("n1"), &host).await;
        let inventory = report.inventory.unwrap_or_else(|| panic!("{:?}", report.problem));
        assert_eq!((inventory.disks.len(), inventory.osds.len()), (1, 0));
        assert_eq!(inventory.disks[0].identity.serial.as_deref(), Some("file:osd-on-file.img"));
        inventory.disks[0].state.clone()
    };
    assert_eq!(state().await, DiskState::Available);
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    std::fs::create_dir(&host.state).unwrap();
    let file = std::fs::File::create(host.state.join("osd-on-file.img")).unwrap();
    file.set_len(file_disk::BYTES).unwrap();
    assert_eq!(state().await, DiskState::Available);
    file.write_all_at(b"x", file_disk::BYTES - 1).unwrap();
    assert!(matches!(state().await, DiskState::Rejected { why: Rejection::Data { .. } }));
    file.set_len(1 << 30).unwrap();
    let report = inventory(&request("n1"), &host).await;
    assert!(report.problem.unwrap().contains("not a file of 10737418240 bytes"));
}
