# shellcheck shell=bash
# The image with the program of osd-migrate, as image/Dockerfile builds it. The cached images of the labs do not depend on this file.
TOOL_IMAGE=lab.local/osd-migrate:dev

cmd_image() { # BIN: with osd-migrate-install next to it
  local t n jobs=() rc=0 installer
  [ $# = 1 ] || usage "image BIN"
  installer=$(dirname "$1")/osd-migrate-install
  [ -f "$1" ] || die "no such file: $1"
  [ -f "$installer" ] || die "no such file: $installer (build/binary builds it next to the program)"
  t=$(mktemp -d "$DIR/image.XXXXXX")
  install -D -m 755 "$1" "$t/tree/osd-migrate"
  install -m 755 "$installer" "$t/tree/install"
  tar -C "$t/tree" --owner=0 --group=0 -cf "$t/top.layer" install osd-migrate
  oci_archive "$t/image.tar" "$TOOL_IMAGE" - '{"User":"167:167", "Entrypoint":["/install"]}' "$t/top.layer" || die "no image"
  for n in $NODES; do
    on "$n" ctr -n k8s.io images import "$t/image.tar" > "$t/$n.log" 2>&1 &
    jobs+=($!)
  done
  for n in "${jobs[@]}"; do wait "$n" || rc=1; done
  [ $rc = 0 ] || { cat "$t"/*.log >&2; rm -rf "$t"; die "the import failed"; }
  rm -rf "$t"
  note "$TOOL_IMAGE is on $NODES"
}
