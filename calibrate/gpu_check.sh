#!/usr/bin/env bash
# Runs on a machine with a GPU and without network: measures plans, tests the kernels, calibrates
# and compares predictions with measurements. The most valuable steps come first; a summary and one
# archive of all output are rewritten after every step, so that a run that is cut short loses
# nothing.
#
#   calibrate/gpu_check.sh [--build DIR] [--run N | --only A,B,C] [--from ARCHIVE] [--out FOLDER]
#                          [--results FOLDER] [--list]
#   calibrate/gpu_check.sh --build DIR --pack FOLDER
#
#   --build DIR      a prebuilt build: orrery, liborrery_cuda.so, tests/cuda_test. Without it one
#                    is made, with cmake and nvcc; ORRERY_DEPS may name folders of headers and
#                    libraries brought along (CMake's prefix path, separated by ;)
#   --run N          the groups of one run of under nine minutes: 1, 2 and 3 are all of them
#   --only A,B,C     these groups alone; --list names them
#   --from ARCHIVE   continues an earlier run from its gpu-check.tar.gz: profile and results
#   --out FOLDER     for all output (default: gpu-check)
#   --results FOLDER for summary.md and gpu-check.tar.gz (default: that of --out)
#   --pack FOLDER    checks nothing: packs DIR into FOLDER, small enough to be carried
#
# CUDA's libraries are looked for in DIR/lib, the toolkit and Python's packages. A step that fails
# is listed and the rest goes on; the exit code is then 1, or 2 if nothing can run. Every step's
# output is in FOLDER. ORRERY_CHECK_SECONDS (530) is the most that a run takes, without the build.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/calibrate/gpu_check/steps.sh"
source "$here/calibrate/gpu_check/libraries.sh"
source "$here/calibrate/gpu_check/summary.sh"
source "$here/calibrate/gpu_check/pack.sh"

# Run, group, time limit in seconds, description; the most valuable first.
groups=(
  "1 llama 150 a Llama of 1.3 B in bf16, untraced, with cuDNN's attention and with our own"
  "1 gpt 90 GPT-2 medium in bf16, as above"
  "1 torch 120 the same Llama by PyTorch, eager, with 16-bit and with fp32 states"
  "1 graphs 60 a small GPT-2, launched as CUDA graphs"
  "2 cuda-test 130 every kernel against the CPU's"
  "2 calibrate 210 this GPU's profile"
  "2 compare 110 the Llama and the GPT once more, traced, against their predictions"
  "3 fp8 80 the Llama in fp8"
  "3 torch-compiled 180 the same Llama by PyTorch, compiled"
  "3 blocks 45 a small GPT-2 in nvfp4, the host keeping what layers save"
  "3 sanitizer 90 compute-sanitizer over the smallest cases"
  "3 dp2 80 GPT-2 medium on two ranks that share the GPU, by way of the host"
)
group_names=()
for line in "${groups[@]}"; do
  read -r _ name _ <<<"$line"
  group_names+=("$name")
done

usage() {
  echo "gpu_check: $1" >&2
  exit 2
}
build='' out=gpu-check results='' only='' earlier='' packed=''
while (($#)); do
  case $1 in
    --list)
      printf '%s\n' "${groups[@]}"
      exit 0
      ;;
    --build | --out | --results | --only | --run | --from | --pack)
      [[ $# -ge 2 ]] || usage "$1 needs a value"
      case $1 in
        --build) build=$2 ;;
        --out) out=$2 ;;
        --results) results=$2 ;;
        --from) earlier=$2 ;;
        --pack) packed=$2 ;;
        --only) only=${2//,/ } ;;
        --run)
          only=$(printf '%s\n' "${groups[@]}" | awk -v run="$2" '$1 == run { print $2 }')
          [[ -n $only ]] || usage "--run: expected 1, 2 or 3, found '$2'"
          ;;
      esac
      shift 2
      ;;
    *) usage "expected --build, --run, --only, --from, --out, --results, --pack or --list, found '$1'" ;;
  esac
done
for name in $only; do
  [[ " ${group_names[*]} " == *" $name "* ]] ||
    usage "--only: no group '$name'; known: ${group_names[*]}"
done
if [[ -n $packed ]]; then
  pack "${build:-build}" "$packed"
  exit 0
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
[[ -z $results ]] || mkdir -p "$results"
results=$(cd "${results:-$out}" && pwd)
[[ -z $earlier ]] || tar -xzf "$earlier" -C "$out"
scenarios=${ORRERY_CHECK_SCENARIOS:-$here/scenarios/local}
steps_of_a_run=${ORRERY_CHECK_STEPS:-8}

make_build() {
  local generator=()
  command -v ninja >/dev/null && generator=(-G Ninja)
  cmake -S "$here" -B "$1" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DORRERY_CUDA=ON \
    -DCMAKE_PREFIX_PATH="${ORRERY_DEPS-}" -DCMAKE_CUDA_ARCHITECTURES=native &&
    cmake --build "$1" -j "$(nproc)" --target orrery orrery_cuda cuda_test
}
export -f make_build
export here

if [[ -z $build ]]; then
  if ! command -v cmake >/dev/null || ! command -v nvcc >/dev/null; then
    usage "nothing to run: bring a build (--build DIR), or cmake and nvcc to make one"
  fi
  build=$out/build
  ends=$((SECONDS + 560))
  [[ -x $build/orrery ]] || step build 560 make_build "$build"
fi
[[ -d $build ]] && build=$(cd "$build" && pwd)
orrery=$build/orrery
[[ -x $orrery ]] || usage "$orrery is not there; see $out"
ends=$((SECONDS + ${ORRERY_CHECK_SECONDS:-530}))
find_libraries

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

# The first step checks that the module loads and finds a GPU.
step module 60 "$orrery" execute "$scenarios/gpt-1gpu.json" --backend cuda --steps 1
if why=$(grep -m 1 '^--backend: ' "$out/module.log"); then
  usage "${why#--backend: cuda: }"
fi

# The cluster that plans are predicted for: this GPU's profile, once it exists.
cluster_of() {
  cluster=()
  [[ -s $profile ]] || return 0
  cluster=(--cluster "$profile")
  # Two ranks on one GPU are predicted as two such GPUs that communicate over PCIe.
  [[ $1 != *dp2* ]] || cluster+=(--set /cluster/node/gpus=2
    --set '/cluster/node/scale_up={"name":"pcie","kind":"pcie"}')
}

# execute NAME SCENARIO SECONDS [VARIABLE=VALUE]: a run without a trace, and its prediction.
execute() {
  local name=$1 plan=$2 limit=$3
  cluster_of "$plan"
  step "$name" "$limit" to "$out/$name.json" env "${@:4}" "$orrery" execute \
    "$scenarios/$plan.json" --backend cuda --steps "$steps_of_a_run" "${cluster[@]}" --json
  predict "$name" "$plan"
}

# predict NAME SCENARIO: a prediction with this GPU's profile, if it exists yet.
predict() {
  cluster_of "$2"
  echo "${cluster[1]-catalogue}" >"$out/$1.predicted.by"
  step "$1-predicted" 15 to "$out/$1.predicted.json" "$orrery" simulate "$scenarios/$2.json" \
    "${cluster[@]}" --json
}

# Repeats the predictions of runs measured before the calibration, for the attention kernels that it
# measured.
predict_again() {
  local of measured=' cudnn own ' name
  if grep -q '"default": "cudnn"' "$profile" 2>/dev/null; then measured=' cudnn '; fi
  if grep -q '"default": "orrery"' "$profile" 2>/dev/null; then measured=' own '; fi
  for name in llama-cudnn llama-own gpt-cudnn gpt-own; do
    of=${name%-*}-1gpu
    [[ $of == gpt* ]] || of=llama-1b-1gpu
    [[ ! -s $out/$name.json || $measured != *" ${name#*-} "* ]] || predict "$name" "$of"
  done
  [[ ! -s $out/graphs.json ]] || predict graphs gpt-graphs-1gpu
}

# One traced run, compared with its prediction.
compare() {
  local plan=$1 trace=$out/$1
  cluster_of "$plan"
  step "traced-$plan" 45 to "$out/$plan.traced.json" "$orrery" execute "$scenarios/$plan.json" \
    --backend cuda --steps 3 "${cluster[@]}" --explain --json --trace "$trace.measured.trace.json"
  step "simulate-$plan" 10 to "$out/$plan.predicted.json" "$orrery" simulate \
    "$scenarios/$plan.json" "${cluster[@]}" --json --trace "$trace.predicted.trace.json" \
    --trace-detail operations
  passed "traced-$plan" && passed "simulate-$plan" || return 0
  step "compare-$plan" 10 "$orrery" compare "$trace.predicted.trace.json" \
    "$trace.measured.trace.json"
}

torch() {
  if ! python3 -c 'import torch; assert torch.cuda.is_available()' 2>"$out/torch.log"; then
    note "torch-$1" "no PyTorch that sees a GPU: $(tail -n 1 "$out/torch.log" | cut -c1-120)"
    return 0
  fi
  step "torch-$1" "$2" to "$out/torch-$1.jsonl" python3 -u "$here/calibrate/torch_step.py" \
    --scenario "$scenarios/llama-1b-1gpu.json" --variants "${@:3}"
}

run_group() {
  case $1 in
    llama | gpt)
      local plan=$1-1gpu
      [[ $1 == gpt ]] || plan=llama-1b-1gpu
      execute "$1-cudnn" "$plan" 70 ORRERY_ATTENTION=cudnn
      execute "$1-own" "$plan" 70 ORRERY_ATTENTION=own
      ;;
    torch) torch eager 120 eager eager-fp32 ;;
    torch-compiled) torch compiled 180 compiled compiled-fp32 ;;
    graphs) execute graphs gpt-graphs-1gpu 50 ;;
    cuda-test) step cuda-test 130 "$build/tests/cuda_test" ;;
    calibrate)
      # shellcheck disable=SC2086
      step calibrate 210 "$orrery" calibrate --backend cuda \
        ${ORRERY_CHECK_CALIBRATION:---budget 100s} --out "$profile"
      ;;
    compare)
      predict_again
      compare llama-1b-1gpu
      compare gpt-1gpu
      ;;
    fp8)
      # GPUs have fp8 GEMMs from compute capability 8.9 on.
      if [[ $(awk -v of="${capability:-0}" 'BEGIN { print (of >= 8.9) }') == 1 ]]; then
        execute fp8 llama-1b-fp8-1gpu 65
      else
        note fp8 "compute capability $capability has none"
      fi
      ;;
    sanitizer)
      if command -v compute-sanitizer >/dev/null; then
        step sanitizer 90 compute-sanitizer --error-exitcode 9 "$build/tests/cuda_test" \
          "Activations and their gradients are the CPU's,Norms of rows of any length are the CPU's"
      else
        note sanitizer "compute-sanitizer is not there"
      fi
      ;;
    blocks) execute blocks gpt-nvfp4-1gpu 40 ;;
    dp2) execute dp2 gpt-dp2-1gpu 65 ;;
  esac
}

for line in "${groups[@]}"; do
  read -r _ name seconds _ <<<"$line"
  [[ -z $only || " ${only//$'\n'/ } " == *" $name "* ]] || continue
  group_ends=$((SECONDS + seconds))
  run_group "$name"
done

echo
table
echo "$SECONDS s; $results/summary.md"
failures=$(awk -F '\t' '$2 != 0 { print $1 }' "$out/steps.tsv" | tr '\n' ' ')
if [[ -n $failures ]]; then
  echo "gpu_check: failed: $failures" >&2
  exit 1
fi
