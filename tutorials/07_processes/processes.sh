#!/bin/sh
# The last commands of the chapter, as printed, in a folder that goes away. Four ranks on however
# many cores there are: Open MPI is told so by its environment.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
if ! command -v mpirun >/dev/null; then
  echo "skipped: no mpirun"
  case " ${RINGPROOF_REQUIRE:-} " in *" mpi "*) exit 1 ;; esac
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/build"
ln -s "$root/tests" "$folder/tests"
ln -s "$(dirname "$(command -v ringproof-mpi)")" "$folder/build/bin"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
cd "$folder"
sed -n '/^```sh$/,/^```$/p' "$here/README.md" | grep -e '^mpirun' -e '^build/bin' >commands
[ "$(wc -l <commands)" = 2 ]
sh -eux commands
