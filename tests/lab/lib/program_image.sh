# shellcheck shell=bash
# The image with the program of osd-migrate, as image/Dockerfile builds it. The cached images of the labs do not depend on this file.
TOOL_IMAGE=lab.local/osd-migrate:dev

program_archive() { # BIN FOLDER: creates FOLDER/image.tar; osd-migrate-install is next to BIN
  local installer
  installer=$(dirname "$1")/osd-migrate-install
  [ -f "$1" ] || die "no such file: $1"
  [ -f "$installer" ] || die "no such file: $installer (build/binary builds it next to the program)"
  install -D -m 755 "$1" "$2/tree/osd-migrate"
  install -m 755 "$installer" "$2/tree/install"
  tar -C "$2/tree" --owner=0 --group=0 -cf "$2/top.layer" install osd-migrate
  oci_archive "$2/image.tar" "$TOOL_IMAGE" - '{"User":"167:167", "Entrypoint":["/install"]}' "$2/top.layer" || die "no image"
}

cmd_image() { # BIN
  local t n jobs=() rc=0
  [ $# = 1 ] || usage "image BIN"
  t=$(mktemp -d "$DIR/image.XXXXXX")
  program_archive "$1" "$t"
  for n in $NODES; do
    on "$n" ctr -n k8s.io images import "$t/image.tar" > "$t/$n.log" 2>&1 &
    jobs+=($!)
  done
  for n in "${jobs[@]}"; do wait "$n" || rc=1; done
  [ $rc = 0 ] || { cat "$t"/*.log >&2; rm -rf "$t"; die "the import failed"; }
  rm -rf "$t"
  note "$TOOL_IMAGE is on $NODES"
}
