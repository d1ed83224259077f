# Converts the Deployment of a raw OSD on a PersistentVolumeClaim to that of an OSD on a volume of LVM on it: Rook's program
# activates the volume and starts the daemon. The shape is that of Rook (spec.go, CVMode "lvm"); the program is the lab's.
def with_bridge: map(if .name == $pvc + "-bridge" then {name, mountPath: "/mnt"} else . end);
def with_devices: with_bridge + [{name: "devices", mountPath: "/dev"}, {name: "rook-binaries", mountPath: "/rook"}];
def of_lvm:
  if .name == "blkdevmapper" then .command[-1] = "/mnt/" + $pvc | .volumeMounts |= with_bridge
  elif .name == "chown-container-data-dir" then .args |= map(select(startswith("/var/lib/ceph/osd/") | not)) | .volumeMounts |= with_devices
  else . end;
def copy_bins: {
  name: "copy-bins", image: .image,
  command: ["bash", "-c", "printf %s \"$0\" > /rook/disk && printf %s \"$1\" > /rook/rook && chmod +x /rook/rook", $disk, $rook],
  volumeMounts: [{name: "rook-binaries", mountPath: "/rook"}]
};
if .kind != "Deployment" or $lvm == "false" then . else
  .spec.template.spec |= (
    .initContainers |= ([(.[0] | copy_bins)] + map(select(.name != "activate" and .name != "expand-bluefs") | of_lvm))
    | .containers[0] |= (
        .command = ["/rook/rook"]
        | .args = ["ceph", "osd", "start", "--"] + .args
        | .env |= (map(if .name == "ROOK_CV_MODE" then .value = "lvm" else . end)
            + [{name: "ROOK_LV_BACKED_PV", value: "true"}, {name: "LAB_PVC", value: $pvc}])
        | .volumeMounts |= with_devices)
    | .volumes += [{name: "devices", hostPath: {path: "/dev"}}, {name: "rook-binaries", emptyDir: {}}])
end
