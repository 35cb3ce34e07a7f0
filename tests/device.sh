#!/usr/bin/env bash
# One script for a machine with a GPU, at most eight minutes with its build: every kernel and the
# ring before the judge, compute-sanitizer where it is, the answers of the attention libraries that
# are importable, and times beside theirs. Writes build/device/device.json and a table.
#   tests/device.sh            builds for the GPU it finds, in a folder of its own
#   tests/device.sh --host     the same logic with the emulated devices; measures nothing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=build/device seconds=470
mkdir -p "$out"
# logged COMMAND...: its output goes to build.log, whose end is shown if it fails.
logged() {
  "$@" >>"$out/build.log" 2>&1 || {
    tail -20 "$out/build.log" >&2
    exit 1
  }
}
: >"$out/build.log"
if [[ ${1:-} == --host ]]; then
  logged ./run build
  exec python3 tests/device/device.py --programs build/bin --cuda build/bin/ringproof-cuda \
    --device "emulated devices" --out "$out" "${@:2}"
fi

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
  echo "device: no GPU here: nothing is measured; --host runs the logic without one"
  exit 77
fi
if ! command -v nvcc /usr/local/cuda/bin/nvcc >/dev/null; then
  echo "device: no nvcc here: nothing can be built"
  exit 77
fi
query() { nvidia-smi --query-gpu="$1" --format=csv,noheader | sed -n 1p; }
architecture=$(query compute_cap | tr -d '. ')
echo "device: $(query name), compute capability $architecture, driver $(query driver_version)"
if ((architecture < 80)); then
  echo "device: the tensor core steps need compute capability 8.0"
  exit 77
fi
build=$out/build
logged cmake -S . -B "$build" -G Ninja -DRINGPROOF_GPU_ARCHITECTURES="$architecture" \
  -DRINGPROOF_TESTS=OFF -DRINGPROOF_TUTORIALS=OFF
logged cmake --build "$build" --target ringproof ringproof-cuda-gpu ringproof-cuda-bench
echo "device: built after $SECONDS s"
exec python3 tests/device/device.py --programs "$build/bin" --cuda "$build/bin/ringproof-cuda-gpu" \
  --bench "$build/bin/ringproof-cuda-bench" --device "$(query name)" \
  --gpus "$(nvidia-smi -L | wc -l)" --seconds "$((seconds - SECONDS))" --out "$out" "$@"
