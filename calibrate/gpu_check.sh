#!/usr/bin/env bash
# On a machine with a GPU and nothing to download: tests the kernels, calibrates, executes plans
# and sets prediction beside measurement, in under ten minutes.
#
#   calibrate/gpu_check.sh [--build DIR] [--out FOLDER]
#
#   --build DIR   a build brought along: orrery, liborrery_cuda.so, tests/cuda_test. Without it one
#                 is made, with cmake and nvcc; ORRERY_DEPS may name folders of headers and
#                 libraries brought along (CMake's prefix path, separated by ;). Shared libraries
#                 in DIR/lib are found.
#   --out FOLDER  for all that is written (gpu-check)
#
# A step that fails is told and the rest goes on; the exit code is 1 then, and 2 where there is no
# GPU to run on. Every step's output lies beside the summary, in FOLDER.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
build='' out=gpu-check
while (($#)); do
  case $1 in
    --build | --out)
      [[ $# -ge 2 ]] || { echo "gpu_check: $1 needs a folder" >&2; exit 2; }
      if [[ $1 == --build ]]; then build=$2; else out=$2; fi
      shift 2
      ;;
    *)
      echo "gpu_check: expected --build DIR or --out FOLDER, found '$1'" >&2
      exit 2
      ;;
  esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
began=$SECONDS
limit_of_all=${ORRERY_CHECK_SECONDS:-570}
failed=()
rows=()

# step NAME LIMIT [to FILE] COMMAND...: its output goes to NAME.log, what it says to FILE. No step goes beyond the whole's limit.
step() {
  local name=$1 limit=$2 status=0 begin=$SECONDS left=$((limit_of_all - SECONDS + began))
  shift 2
  printf '%-28s' "$name"
  [[ $limit -le $left ]] || limit=$left
  if [[ $limit -lt 1 ]]; then
    limit=0 status=124
  else
    if [[ $1 == to ]]; then
      timeout "$limit" "${@:3}" >"$2" 2>"$out/$name.log" || status=$?
    else
      timeout "$limit" "$@" >"$out/$name.log" 2>&1 || status=$?
    fi
  fi
  local said="ok"
  case $status in
    0) ;;
    124) said="not done in the $limit s left to it" ;;
    *) said="failed ($status): $(tail -n 1 "$out/$name.log" | cut -c1-160)" ;;
  esac
  [[ $status -eq 0 ]] || failed+=("$name")
  printf '%4d s  %s\n' $((SECONDS - begin)) "$said"
  rows+=("| $name | $((SECONDS - begin)) | ${said//|/\\|} |")
  return 0
}
passed() { [[ " ${failed[*]-} " != *" $1 "* ]]; }

make_build() {
  local generator=()
  command -v ninja >/dev/null && generator=(-G Ninja)
  cmake -S "$here" -B "$1" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DORRERY_CUDA=ON \
    -DCMAKE_PREFIX_PATH="${ORRERY_DEPS-}" -DCMAKE_CUDA_ARCHITECTURES=native &&
    cmake --build "$1" -j "$(nproc)" --target orrery orrery_cuda cuda_test
}

if [[ -z $build ]]; then
  if ! command -v cmake >/dev/null || ! command -v nvcc >/dev/null; then
    echo "gpu_check: nothing to run: bring a build (--build DIR), or cmake and nvcc to make one" >&2
    exit 2
  fi
  build=$out/build
  step build 420 make_build "$build"
fi
orrery=$build/orrery
if [[ ! -x $orrery ]]; then
  echo "gpu_check: $orrery is not there; see $out" >&2
  exit 2
fi
[[ -d $build/lib ]] && export LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# PyTorch brings a cuDNN along, which serves where the loader finds no other.
if ! python3 -c 'import ctypes; ctypes.CDLL("libcudnn.so.9")' 2>/dev/null &&
  cudnn=$(python3 -c 'import nvidia.cudnn as of; print(of.__path__[0] + "/lib")' 2>/dev/null); then
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$cudnn
fi
# The first sentence of a calibration tells whether there is a GPU, before anything is measured.
if ! why=$(timeout 60 "$orrery" calibrate --backend cuda --budget 1s --widest 128 2>&1 >/dev/null); then
  if [[ $why == --backend:* ]]; then
    echo "gpu_check: no GPU to check: ${why#--backend: }" >&2
    exit 2
  elif [[ $why == *"error while loading shared libraries"* ]]; then
    echo "gpu_check: $orrery does not start: ${why##*: }; bring it in $build/lib" >&2
    exit 2
  fi
fi

gpu=unknown driver=unknown capability=0
if command -v nvidia-smi >/dev/null; then
  gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1) || gpu=unknown
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1) || true
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1) || true
fi
profile=$out/gpu.json
for word in ${gpu,,}; do
  case $word in a100* | h100* | h200* | b200* | b300* | l40s*) profile=$out/${word%%-*}.json ;; esac
done
echo "GPU: $gpu, driver $driver; writing to $out"

if [[ -x $build/tests/cuda_test ]]; then
  step cuda_test 240 "$build/tests/cuda_test"
else
  echo "cuda_test: not in $build"
  failed+=(cuda_test)
  rows+=("| cuda_test | 0 | not in the build |")
fi
step calibrate 180 "$orrery" calibrate --backend cuda --budget 120s --out "$profile"
[[ -s $profile ]] || profile=

# execute SCENARIO STEPS: the report, then predicted beside measured.
execute() {
  local plan=$1 steps=$2 detail=operations cluster=() scenario=$here/scenarios/local/$1.json
  [[ -n $profile ]] && cluster=(--cluster "$profile")
  # Two ranks on one GPU are predicted for two such GPUs, which would speak over PCIe.
  [[ -n $profile && $plan == *dp2* ]] &&
    cluster+=(--set /cluster/node/gpus=2 --set '/cluster/node/scale_up={"name":"pcie","kind":"pcie"}')
  step "execute-$plan" 120 to "$out/$plan.json" "$orrery" execute "$scenario" \
    --backend cuda --steps "$steps" "${cluster[@]}" --explain --json \
    --trace "$out/$plan.measured.trace.json"
  # Kernels of a CUDA graph have no times of their own.
  [[ $plan == *graphs* ]] && detail=instructions
  step "simulate-$plan" 30 to "$out/$plan.predicted.json" "$orrery" simulate \
    "$scenario" "${cluster[@]}" --json --trace "$out/$plan.predicted.trace.json" \
    --trace-detail "$detail"
  if ! passed "execute-$plan" || ! passed "simulate-$plan"; then return 0; fi
  step "compare-$plan" 30 "$orrery" compare "$out/$plan.predicted.trace.json" \
    "$out/$plan.measured.trace.json"
}
plans=(gpt-1gpu llama-1b-1gpu gpt-dp2-1gpu gpt-graphs-1gpu)
# From compute capability 8.9 on GPUs multiply in fp8.
if [[ $(awk -v of="${capability:-0}" 'BEGIN { print of >= 8.9 }') == 1 ]]; then
  plans+=(llama-1b-fp8-1gpu)
fi
for plan in "${plans[@]}"; do execute "$plan" 8; done
# Where cuDNN's attention ran, our own kernels in its place: measured alone, for the profile is of
# what was calibrated.
own=
if grep -q '"device": ".*attention by cuDNN' "$out/llama-1b-1gpu.json" 2>/dev/null; then
  own=llama-1b-1gpu-own-attention
  step "execute-$own" 120 to "$out/$own.json" env ORRERY_ATTENTION=own "$orrery" execute \
    "$here/scenarios/local/llama-1b-1gpu.json" --backend cuda --steps 8 \
    ${profile:+--cluster "$profile"} --json
fi

torch="torch is not there"
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  step torch 180 to "$out/torch.json" python3 "$here/calibrate/torch_step.py"
  torch="see below"
fi

# number FILE KEY: a number of one of our own JSON documents, at its top level.
number() {
  { sed -n 's/^  "'"$2"'": \([-0-9.e+]*\),\{0,1\}$/\1/p' "$1" 2>/dev/null || true; } | head -n 1
}

# Measured MFU: the predicted one belongs to the predicted step, both to the same FLOPs and peak.
table() {
  echo "| plan | measured step, s | predicted, s | predicted / measured | MFU measured | predicted |"
  echo "|---|---:|---:|---:|---:|---:|"
  local plan measured predicted mfu
  for plan in "${plans[@]}"; do
    measured=$(number "$out/$plan.json" median_step_time_s)
    predicted=$(number "$out/$plan.predicted.json" step_time_s)
    mfu=$(number "$out/$plan.predicted.json" mfu)
    awk -v plan="$plan" -v m="${measured:-0}" -v p="${predicted:-0}" -v u="${mfu:-0}" 'BEGIN {
      if (m > 0 && p > 0) printf "| %s | %.4g | %.4g | %.3f | %.1f %% | %.1f %% |\n", plan, m, p,
        p / m, 100 * u * p / m, 100 * u
      else printf "| %s | not measured | %s | | | |\n", plan, (p > 0 ? sprintf("%.4g", p) : "none")
    }'
  done
  measured=$(number "$out/$own.json" median_step_time_s)
  [[ -z $own ]] || echo "| $own | ${measured:-not measured} | | | | |"
}

# attention FILE: whose kernels an execution's report names.
attention() {
  { sed -n 's/^  "device": ".*, \(.*attention.*\)",$/\1/p' "$1" 2>/dev/null || true; } | head -n 1
}

summary=$out/comparison.md
{
  echo "# Predicted against measured"
  echo
  echo "$gpu, driver $driver; $("$orrery" --version 2>/dev/null | head -n 1); $(date -u +%Y-%m-%d)."
  [[ -s $out/calibrate.log ]] && head -n 1 "$out/calibrate.log"
  echo
  table
  echo
  echo "Of gpt-dp2-1gpu two ranks share one GPU, and the prediction is for two of them."
  echo
  whose=$(attention "$out/llama-1b-1gpu.json")
  echo "llama-1b-1gpu: ${whose:-no fused attention ran}."
  echo
  echo "PyTorch: $torch."
  [[ -s $out/torch.json ]] && cat "$out/torch.json"
  echo
  echo "| step | seconds | |"
  echo "|---|---:|---|"
  printf '%s\n' "${rows[@]}"
  for plan in "${plans[@]}"; do
    if ! passed "compare-$plan" || [[ ! -s $out/compare-$plan.log ]]; then continue; fi
    printf '\n## %s\n\n```\n' "$plan"
    cat "$out/compare-$plan.log"
    echo '```'
  done
} >"$summary"

echo
table
echo "PyTorch: $torch"
echo "$((SECONDS - began)) s; $summary"
if ((${#failed[@]})); then
  echo "gpu_check: failed: ${failed[*]}" >&2
  exit 1
fi
