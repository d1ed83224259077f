# shellcheck shell=bash
# Objects with known content, a client that runs continuously, and the history of OSD maps.
cmd_write() { # [N] [KIB] [POOL]
  local f pool=${3:-$POOL}
  args_at_most 3 "$@"
  need_number "${1:-300}"
  need_number "${2:-256}"
  f="$DIR/manifest.$pool.$(date +%s%N).json"
  rados_py objects write "$pool" "${1:-300}" "${2:-256}" > "$f.tmp" && mv "$f.tmp" "$f"
}
cmd_verify() {
  local f pool rc=0 any=
  args_at_most 0 "$@"
  for f in "$DIR"/manifest.*.json; do
    [ -e "$f" ] || continue
    any=1
    pool=${f##*/manifest.}
    rados_py objects verify "${pool%%.*}" < "$f" || rc=1
  done
  [ -n "$any" ] || die "nothing was written yet"
  return $rc
}

cmd_client() { # start [POOLS]|stop
  [ $# = 1 ] || [ "$#/${1:-}" = 2/start ] || usage "client start [POOLS] | client stop"
  case $1 in
    start)
      pid_of client > /dev/null && die "the client is already running"
      rm -f "$DIR/client.json"
      local p
      p=$(pid_of adm) || die "host adm is not running"
      OSD_LAB=$LAB_ID setsid nsenter -t "$p" -m -n "$DIR/h/adm/bin/in-release" /usr/bin/python3 "$SRC/py/client.py" "${2:-$POOL}" "$DIR/client.json" < /dev/null > "$DIR/log/client.log" 2>&1 &
      save_pid client $!
      poll 100 0.1 grep -q started "$DIR/log/client.log" || { cat "$DIR/log/client.log" >&2; die "the client did not start"; }
      ;;
    stop)
      pid_of client > /dev/null || die "the client is not running (see $DIR/log/client.log)"
      end_pid client
      poll 700 0.1 test -e "$DIR/client.json" || die "the client did not end (see $DIR/log/client.log)"
      grep -v started "$DIR/log/client.log" >&2
      cat "$DIR/client.json"
      rm -f "$DIR/pids/client"
      jq -e '.failed == 0 and .slow == 0' "$DIR/client.json" > /dev/null
      ;;
    *) usage "client start [POOLS] | client stop" ;;
  esac
}

cmd_epochs() { # [FROM] | --now
  args_at_most 1 "$@"
  [ "${1:-}" = --now ] || need_number "${1:-1}"
  rados_py epochs "${1:-$(cat "$DIR/ready" 2> /dev/null || echo 1)}"
}
