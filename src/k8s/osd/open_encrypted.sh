# In an init container: opens an encrypted volume, unless it is still open since the last start of the OSD. A mapping of a
# device that no longer exists is replaced.
set -e
if [ -b "$ROOK_ENCRYPTION_DM_PATH" ]; then
  for number in $(dmsetup table "$ROOK_ENCRYPTION_DM_NAME" | grep -oE '\b[0-9]+:[0-9]+\b'); do
    [ -e "/sys/dev/block/$number" ] || dmsetup remove --force "$ROOK_ENCRYPTION_DM_NAME"
  done
fi
if [ -b "$ROOK_ENCRYPTION_DM_PATH" ]; then
  echo "$ROOK_ENCRYPTION_DM_NAME is open"
else
  cryptsetup open --verbose --disable-keyring --allow-discards --key-file "$ROOK_ENCRYPTION_KEY_FILE_PATH" \
    "$ROOK_ENCRYPTION_BLOCK_PATH" "$ROOK_ENCRYPTION_DM_NAME"
fi
cryptsetup config "$ROOK_ENCRYPTION_BLOCK_PATH" --subsystem "ceph_fsid=$ROOK_CEPH_FSID" --label "pvc_name=$ROOK_PVC_NAME"
