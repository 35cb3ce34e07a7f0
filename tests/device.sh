#!/usr/bin/env bash
# One script for a machine with a GPU, at most eight minutes with its build: every kernel and the
# ring before the judge, compute-sanitizer where it is, the answers of the attention libraries that
# are importable, and times beside theirs. Writes build/device/device.json and a table.
#   tests/device.sh            builds for the GPU it finds
#   tests/device.sh --host     the same logic with the emulated devices; measures nothing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=build/device
mkdir -p "$out"
if [[ ${1:-} == --host ]]; then
  ./run build >"$out/build.log" 2>&1 || { tail -20 "$out/build.log" >&2; exit 1; }
  exec python3 tests/device/device.py --programs build/bin --cuda build/bin/ringproof-cuda \
    --device "emulated devices" --out "$out" "${@:2}"
fi

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
  echo "device: no GPU here: nothing is measured; --host runs the logic without one"
  exit 77
fi
query() { nvidia-smi --query-gpu="$1" --format=csv,noheader | head -1; }
architecture=$(query compute_cap | tr -d '. ')
echo "device: $(query name), compute capability $architecture, driver $(query driver_version)"
cmake -S . -B build -G Ninja -DRINGPROOF_GPU_ARCHITECTURES="$architecture" \
  -DRINGPROOF_TESTS=OFF -DRINGPROOF_TUTORIALS=OFF >"$out/build.log" 2>&1
cmake --build build --target ringproof ringproof-cuda-gpu ringproof-cuda-bench \
  >>"$out/build.log" 2>&1 ||
  { tail -20 "$out/build.log" >&2; exit 1; }
exec python3 tests/device/device.py --programs build/bin --cuda build/bin/ringproof-cuda-gpu \
  --bench build/bin/ringproof-cuda-bench --device "$(query name)" \
  --gpus "$(nvidia-smi -L | wc -l)" \
  --out "$out" "$@"
