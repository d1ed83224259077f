//! Complete answers of a cluster to the commands of an observation, as JSON.

use std::collections::BTreeMap;

use osd_migrate::ceph::Answers;
use serde_json::{Value, json};

use super::cluster::{CLUSTER, Cluster, Layout, OBJECT, Osd, Pool, State, fsid};
use super::pg::{self, Detail};

/// Epoch of the osdmap.
const EPOCH: u64 = 48_213;

/// Size of a disk: 18 TB, in the mgr's unit.
const DISK_KB: u64 = 17_578_130_432;

pub(crate) fn answers(cluster: &Cluster, detail: Detail) -> Answers {
    let text = |value: &Value| serde_json::to_vec(value).unwrap();
    Answers {
        osd_dump: text(&osd_dump(cluster)),
        osd_crush_dump: text(&crush_dump(cluster)),
        osd_metadata: text(&cluster.osds.iter().map(|osd| metadata(cluster, osd)).collect()),
        health: text(&health(cluster)),
        versions: text(&versions(cluster)),
        osd_df: text(&osd_df(cluster)),
        pg_dump: pg_dump(cluster, detail).into_bytes(),
        config_key_ls: text(&config_keys(cluster)),
    }
}

pub(crate) fn pg_dump(cluster: &Cluster, detail: Detail) -> String {
    let mut out = r#"{"pg_ready":true,"pg_stats":["#.to_owned();
    for (number, one) in cluster.pgs.iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        pg::write(&mut out, one, EPOCH, cluster.release, detail);
    }
    out.push_str("]}");
    out
}

fn osd_dump(cluster: &Cluster) -> Value {
    let stamp = "2026-11-24T07:30:11.302114+0000";
    json!({
        "epoch": EPOCH, "fsid": CLUSTER, "created": stamp, "modified": stamp, "last_up_change": stamp,
        "last_in_change": stamp,
        "flags": "sortbitwise,recovery_deletes,purged_snapdirs,pglog_hardlimit", "flags_num": 5_799_936,
        "flags_set": ["pglog_hardlimit", "purged_snapdirs", "recovery_deletes", "sortbitwise"],
        "crush_version": 913, "full_ratio": 0.949_999_988_079_071,
        "backfillfull_ratio": 0.899_999_976_158_142_1,
        "nearfull_ratio": 0.850_000_023_841_857_9, "cluster_snapshot": "", "pool_max": cluster.pools.len(),
        "max_osd": cluster.osds.len(), "require_min_compat_client": "luminous",
        "min_compat_client": "luminous",
        "require_osd_release": cluster.release.name,
        "pools": cluster.pools.iter().map(pool).collect::<Vec<_>>(),
        "osds": cluster.osds.iter().map(osd).collect::<Vec<_>>(),
        "osd_xinfo": cluster.osds.iter().map(|osd| json!({
            "osd": osd.id, "down_stamp": "0.000000", "laggy_probability": 0, "laggy_interval": 0,
            "features": 4_540_138_320_759_226_367_u64,
            "old_weight": 0, "last_purged_snaps_scrub": stamp, "dead_epoch": 0,
        })).collect::<Vec<_>>(),
        "pg_upmap": [], "pg_temp": [], "primary_temp": [],
        "pg_upmap_items": cluster.upmaps.iter().map(|(pg, from, to)| json!({
            "pgid": pg, "mappings": [{"from": from, "to": to}],
        })).collect::<Vec<_>>(),
        "blocklist": {}, "removed_snaps_queue": [], "new_removed_snaps": [], "new_purged_snaps": [],
        "erasure_code_profiles": {
            "default": {"k": "2", "m": "2", "plugin": "jerasure", "technique": "reed_sol_van"},
            "ec-4-2": {"crush-failure-domain": "host", "k": "4", "m": "2", "plugin": "jerasure",
            "technique": "reed_sol_van"},
        },
        "crush_node_flags": {}, "device_class_flags": {}, "stretch_mode": {"stretch_mode_enabled": false},
    })
}

fn pool(pool: &Pool) -> Value {
    let (kind, profile) = pool.data_chunks.map_or((1, ""), |_| (3, "ec-4-2"));
    json!({
        "pool": pool.id, "pool_name": pool.name, "create_time": "2021-03-02T10:11:14.287732+0000",
        "flags": 8193,
        "flags_names": "hashpspool,selfmanaged_snaps", "type": kind, "size": pool.size,
        "min_size": pool.min_size, "crush_rule": pool.id,
        "peering_crush_bucket_count": 0, "object_hash": 2, "pg_autoscale_mode": "warn", "pg_num": pool.pgs,
        "pg_placement_num": pool.pgs, "pg_placement_num_target": pool.pgs, "pg_num_target": pool.pgs,
        "pg_num_pending": pool.pgs,
        "last_pg_merge_meta": {"source_pgid": "0.0", "ready_epoch": 0, "last_epoch_started": 0,
        "last_epoch_clean": 0,
            "source_version": "0'0", "target_version": "0'0"},
        "last_change": "31201", "last_force_op_resend": "0", "auid": 0, "snap_mode": "selfmanaged",
        "snap_seq": 3, "snap_epoch": 412,
        "pool_snaps": [], "removed_snaps": "[]", "quota_max_bytes": 0, "quota_max_objects": 0, "tiers": [],
        "tier_of": -1,
        "read_tier": -1, "write_tier": -1, "cache_mode": "none", "target_max_bytes": 0,
        "target_max_objects": 0,
        "erasure_code_profile": profile, "stripe_width": 0, "expected_num_objects": 0, "fast_read": false,
        "options": {"pg_num_min": 1}, "application_metadata": {"rbd": {}},
    })
}

fn osd(osd: &Osd) -> Value {
    let (up, is_in, words) = match osd.state {
        State::Up => (1, 1, json!(["exists", "up"])),
        State::Dead => (0, 0, json!(["autoout", "exists"])),
        State::Down => (0, 1, json!(["exists"])),
        State::NeverBooted => (0, 0, json!(["exists", "new"])),
    };
    let booted = osd.has_metadata();
    let port = 6800 + osd.disk * 8;
    let address = |kind: &str, port: u32| {
        json!({"type": kind, "addr": format!("10.20.{}.{}:{port}",
    osd.host / 250, osd.host % 250 + 1), "nonce": 3_446_573_067_u32})
    };
    let addresses = || {
        json!({"addrvec": if booted { json!([address("v2", port), address("v1",
    port + 1)]) } else { json!([]) }})
    };
    json!({
        "osd": osd.id, "uuid": fsid(osd.id), "up": up, "in": is_in,
        "weight": if is_in == 1 { 1.0 } else { 0.0 }, "primary_affinity": 1.0,
        "last_clean_begin": 0, "last_clean_end": 0, "up_from": if booted { 31_200 } else { 0 },
        "up_thru": if booted { 48_100 } else { 0 },
        "down_at": match osd.state { State::Up | State::NeverBooted => 0, State::Dead => 40_111,
        State::Down => 48_001 }, "lost_at": 0,
        "public_addrs": addresses(), "cluster_addrs": addresses(), "heartbeat_back_addrs": addresses(),
        "heartbeat_front_addrs": addresses(), "state": words,
    })
}

/// Returns a root, racks, hosts, their OSDs, and the shadow tree of the device class.
fn crush_dump(cluster: &Cluster) -> Value {
    let weight_of_osd = 16 * 65_536 + 24_000_u64;
    let mut racks: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    let host_id = |number: usize| -(100 + 2 * i64::try_from(number).unwrap());
    for (number, host) in cluster.hosts.iter().enumerate() {
        racks.entry(&host.rack).or_default().push(host_id(number));
    }
    let mut of_host: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for osd in &cluster.osds {
        of_host.entry(osd.host).or_default().push(i64::from(osd.id));
    }
    let items = |ids: &[i64], weight: u64| -> Vec<Value> {
        ids.iter().enumerate().map(|(pos, id)| json!({"id": id, "weight": weight, "pos": pos})).collect()
    };
    let bucket = |id: i64, name: &str, kind: (u32, &str), items: Vec<Value>| {
        json!({"id": id, "name": name, "type_id": kind.0, "type_name": kind.1,
            "weight": items.iter().map(|item| item["weight"].as_u64().unwrap()).sum::<u64>(),
            "alg": "straw2", "hash": "rjenkins1", "items": items})
    };
    let host_weight = of_host.values().next().map_or(0, |osds| osds.len() as u64 * weight_of_osd);
    let mut buckets = Vec::new();
    for (shadow, suffix) in [(0, ""), (1, "~hdd")] {
        let rack_ids: Vec<i64> =
            (0..racks.len()).map(|number| -(10 + 2 * i64::try_from(number).unwrap()) - shadow).collect();
        buckets.push(bucket(
            -1 - shadow,
            &format!("default{suffix}"),
            (11, "root"),
            items(&rack_ids, 8 * host_weight),
        ));
        for (id, (rack, hosts)) in rack_ids.iter().zip(&racks) {
            let hosts: Vec<i64> = hosts.iter().map(|id| id - shadow).collect();
            buckets.push(bucket(*id, &format!("{rack}{suffix}"), (3, "rack"), items(&hosts, host_weight)));
        }
        for (number, host) in cluster.hosts.iter().enumerate() {
            let osds = of_host.get(&number).map(Vec::as_slice).unwrap_or_default();
            let name = format!("{}{suffix}", host.name);
            buckets.push(bucket(host_id(number) - shadow, &name, (1, "host"), items(osds, weight_of_osd)));
        }
    }
    let types = [
        "osd",
        "host",
        "chassis",
        "rack",
        "row",
        "pdu",
        "pod",
        "room",
        "datacenter",
        "zone",
        "region",
        "root",
    ];
    json!({
        "devices": cluster.osds.iter().map(|osd| json!({"id": osd.id, "name": format!("osd.{}", osd.id),
        "class": "hdd"})).collect::<Vec<_>>(),
        "types": types.iter().enumerate().map(|(id, name)| json!({"type_id": id,
        "name": name})).collect::<Vec<_>>(),
        "buckets": buckets,
        "rules": cluster.pools.iter().map(rule).collect::<Vec<_>>(),
        "tunables": {"choose_local_tries": 0, "choose_total_tries": 50, "chooseleaf_stable": 1,
        "profile": "jewel", "require_feature_tunables": 1},
        "choose_args": {},
    })
}

fn rule(pool: &Pool) -> Value {
    let op = if pool.data_chunks.is_some() { "chooseleaf_indep" } else { "chooseleaf_firstn" };
    json!({"rule_id": pool.id, "rule_name": pool.name, "type": if pool.data_chunks.is_some() { 3 } else { 1 },
    "steps": [
        {"op": "take", "item": -2, "item_name": "default~hdd"}, {"op": op, "num": 0, "type": "host"},
        {"op": "emit"},
    ]})
}

fn metadata(cluster: &Cluster, osd: &Osd) -> Value {
    if !osd.has_metadata() {
        return json!({"id": osd.id});
    }
    let (host, disk, release) = (&cluster.host_of(osd).name, osd.kernel_name(), cluster.release);
    let mut all = json!({
        "id": osd.id, "arch": "x86_64",
        "back_addr": "[v2:10.20.0.1:6802/3446573067,v1:10.20.0.1:6803/3446573067]",
        "ceph_release": release.name, "ceph_version": release.long, "ceph_version_short": release.number,
        "ceph_version_when_created": "ceph version 14.2.22 (ca74598065096e6fcbd8433c8779a2be0c889351) nautilus (stable)",
        "container_hostname": format!("rook-ceph-osd-{}-7d9f6c8b5c-x2x7k", osd.id),
        "container_image": image(cluster),
        "cpu": "Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz", "created_at": "2021-03-02T10:24:45.220657Z",
        "default_device_class": "hdd",
        "distro": "centos", "distro_description": "CentOS Stream 8", "distro_version": "8",
        "front_iface": "bond0",
        "hostname": host, "journal_rotational": "1", "kernel_version": "5.14.0-427.13.1.el9_4.x86_64",
        "mem_swap_kb": "0",
        "mem_total_kb": "394772348", "network_numa_unknown_ifaces": "back_iface,front_iface", "os": "Linux",
        "osd_data": format!("/var/lib/ceph/osd/ceph-{}", osd.id),
        "pod_name": format!("rook-ceph-osd-{}-7d9f6c8b5c-x2x7k", osd.id), "pod_namespace": "rook-ceph",
        "rotational": "1",
        "devices": disk, "device_ids": format!("{disk}=ATA_ST18000NM000J-2TV_ZR5{:05}", osd.id),
        "device_paths": format!("{disk}=/dev/disk/by-path/pci-0000:18:00.0-scsi-0:0:{}:0", osd.disk),
    });
    let own = if osd.layout == Layout::Filestore { filestore(&disk) } else { bluestore(osd, &disk) };
    for (key, value) in own.as_object().unwrap() {
        all[key] = value.clone();
    }
    all
}

fn filestore(disk: &str) -> Value {
    json!({
        "osd_objectstore": "filestore", "filestore_backend": "xfs", "filestore_f_type": "0x58465342",
        "backend_filestore_dev_node": disk, "backend_filestore_partition_path": format!("/dev/{disk}1"),
        "backend_filestore_journal_dev_node": disk,
        "backend_filestore_journal_partition_path": format!("/dev/{disk}2"),
        "osd_journal": "/var/lib/ceph/osd/ceph/journal",
    })
}

fn bluestore(osd: &Osd, disk: &str) -> Value {
    let (is_mapped, second) = match osd.layout {
        Layout::Multipath => (true, Some(format!("sdb{disk}"))), // the other path to the same disk
        Layout::HostLuks | Layout::Lvm | Layout::LvmCrypt => (true, None),
        Layout::Filestore | Layout::ByHand | Layout::Raw | Layout::NoSerial => (false, None),
    };
    let node = if is_mapped { format!("/dev/dm-{}", osd.disk) } else { format!("/dev/{disk}") };
    let mut all = json!({
        "osd_objectstore": "bluestore", "bluefs": "1", "bluefs_dedicated_db": "0",
        "bluefs_dedicated_wal": "0", "bluefs_single_shared_device": "1",
        "bluestore_bdev_access_mode": "blk", "bluestore_bdev_block_size": "4096",
        "bluestore_bdev_dev_node": node,
        "bluestore_bdev_driver": "KernelDevice", "bluestore_bdev_partition_path": node,
        "bluestore_bdev_rotational": "1",
        "bluestore_bdev_size": (DISK_KB * 1024).to_string(), "bluestore_bdev_support_discard": "0",
        "bluestore_bdev_type": "hdd",
        "bluestore_min_alloc_size": "4096", "objectstore_numa_unknown_devices": disk,
    });
    if let Some(second) = second {
        let id = format!("3600508b400105e210000900000{:05}", osd.id);
        all["devices"] = json!(format!("{disk},{second}"));
        all["device_ids"] = json!(format!("{disk}={id},{second}={id}"));
        all["device_paths"] = json!("");
    }
    if osd.layout == Layout::NoSerial {
        all["device_ids"] = json!("");
        all["device_paths"] =
            json!(format!("{disk}=/dev/disk/by-path/virtio-pci-0000:00:{:02x}.0", osd.disk + 6));
    }
    all
}

pub(crate) fn image(cluster: &Cluster) -> String {
    format!("quay.io/ceph/ceph:v{}", cluster.release.number)
}

fn health(cluster: &Cluster) -> Value {
    let check = |code: &&str| {
        let check = json!({"severity": "HEALTH_WARN", "summary": {"message": format!("{code}, in words"),
        "count": 1}, "muted": false});
        ((*code).to_owned(), check)
    };
    let checks: serde_json::Map<String, Value> = cluster.health.iter().map(check).collect();
    let status = if checks.is_empty() { "HEALTH_OK" } else { "HEALTH_WARN" };
    json!({"status": status, "checks": checks, "mutes": []})
}

fn versions(cluster: &Cluster) -> Value {
    let up = cluster.osds.iter().filter(|osd| osd.state == State::Up).count();
    let of = |count: usize| json!({cluster.release.long: count});
    json!({"mon": of(5), "mgr": of(2), "osd": of(up), "mds": {}, "overall": of(up + 7)})
}

fn osd_df(cluster: &Cluster) -> Value {
    let mut stored: BTreeMap<u32, u64> = BTreeMap::new();
    for pg in &cluster.pgs {
        for osd in &pg.acting {
            *stored.entry(*osd).or_default() += pg.objects * OBJECT / 1024;
        }
    }
    let nodes = cluster.osds.iter().map(|osd| {
        let data = stored.get(&osd.id).copied().unwrap_or(0);
        let known = osd.has_metadata();
        let (meta, omap) = if osd.layout == Layout::Filestore { (0, 0) } else { (2_097_152, 1024) };
        json!({
            "id": osd.id, "device_class": "hdd", "name": format!("osd.{}", osd.id), "type": "osd",
            "type_id": 0, "crush_weight": 16.366,
            "depth": 3, "pool_weights": {}, "reweight": if matches!(osd.state,
            State::Up | State::Down) { 1.0 } else { 0.0 }, "kb": if known { DISK_KB } else { 0 },
            "kb_used": data + meta + omap,
            "kb_used_data": data, "kb_used_omap": omap, "kb_used_meta": meta, "kb_avail": DISK_KB - data,
            "utilization": 12.5, "var": 1.0,
            "pgs": 100, "status": if osd.state == State::Up { "up" } else { "down" },
        })
    });
    let nodes: Vec<Value> = nodes.collect();
    json!({"nodes": nodes, "stray": [], "summary": {"total_kb": DISK_KB, "average_utilization": 12.5,
    "min_var": 1, "max_var": 1, "dev": 0}})
}

/// Returns the config keys: the mons keep the keys of encrypted OSDs, but know nothing of those that the host
/// opens.
fn config_keys(cluster: &Cluster) -> Value {
    let encrypted = cluster.osds.iter().filter(|osd| osd.layout == Layout::LvmCrypt);
    let keys = encrypted.map(|osd| format!("dm-crypt/osd/{}/luks", fsid(osd.id)));
    json!(
        ["config-history/1/", "mgr/devicehealth/last_scrape"]
            .map(str::to_owned)
            .into_iter()
            .chain(keys)
            .collect::<Vec<_>>()
    )
}
