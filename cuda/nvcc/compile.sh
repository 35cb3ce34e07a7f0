#!/bin/sh
# compile.sh LOG COMMAND...: runs the compiler; what it says is shown if it fails, and kept in LOG.
log=$1
shift
"$@" >"$log" 2>&1 || {
  cat "$log" >&2
  exit 1
}
