# Converts the Deployment of a raw OSD to that of an OSD on volumes. Filestore's file system is mounted, so activation and
# daemon share a container, as in Rook up to 1.3.
def env($name; $value): map(if .name == $name then .value = $value else . end);
# ceph-volume reads mount options of Filestore from a ceph.conf, which must name the cluster. Argument 5 of the daemon is the fsid.
def conf: "export CEPH_CONF=/run/lab-ceph.conf\nprintf '[global]\\nfsid = %s\\n' \"$5\" > \"$CEPH_CONF\"\n";
def labels: .encrypted = $encrypted | .["osd-store"] = $store;
.metadata.labels |= labels
| .spec.template.metadata.labels |= labels
| .spec.template.spec |= (
    (.initContainers[0].env |= (env("ROOK_CV_MODE"; $mode) | env("ROOK_OSD_STORE_FLAG"; "--" + $store)
      + if $key == "" then [] else [{name: "LAB_SECRET", value: $key}, {name: "LAB_DISK", value: $disk}] end))
    | (.initContainers[0].command[2] = $activate)
    | (.containers[0].env |= env("ROOK_CV_MODE"; $mode))
    | if $store == "bluestore" then . else
        .containers[0].env += [.initContainers[0].env[] | select(.name == "ROOK_OSD_STORE_FLAG")]
        | .containers[0].command = ["bash", "-c", (conf + $activate + "\nchown ceph:ceph \"/var/lib/ceph/osd/ceph-$ROOK_OSD_ID\"\nexec ceph-osd \"$@\""), "--"]
        | .initContainers |= map(select(.name != "activate" and .name != "expand-bluefs"))
      end)
