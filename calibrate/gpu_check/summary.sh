# The summary of gpu_check.sh and its archive, rewritten after every step.

# number FILE KEY: prints a top-level number of one of our own JSON documents.
number() {
  { sed -n 's/^  "'"$2"'": \([-0-9.e+]*\),\{0,1\}$/\1/p' "$1" 2>/dev/null || true; } | head -n 1
}

# Measured MFU: predicted MFU times predicted over measured step time, as FLOPs and peak are the
# same.
table() {
  local name file
  echo "| run | measured step, s | predicted, s | by | predicted / measured | MFU measured |" \
    "memory, predicted / measured |"
  echo "|---|---:|---:|---|---:|---:|---:|"
  for name in llama-cudnn llama-own gpt-cudnn gpt-own graphs fp8 blocks dp2; do
    file=$out/$name
    [[ -s $file.json ]] || continue
    awk -v name="$name" -v by="$(basename "$(cat "$file.predicted.by" 2>/dev/null)")" -v m="$(number "$file.json" median_step_time_s)" \
      -v p="$(number "$file.predicted.json" step_time_s)" \
      -v u="$(number "$file.predicted.json" mfu)" \
      -v gib="$(number "$file.json" peak_memory_bytes)" \
      -v of="$(number "$file.json" predicted_peak_memory_bytes)" 'BEGIN {
      if (m > 0 && p > 0) printf "| %s | %.4g | %.4g | %s | %.3f | %.1f %% | %s |\n", name, m, p,
        by, p / m, 100 * u * p / m, (gib > 0 ? sprintf("%.3f", of / gib) : "")
      else printf "| %s | not measured | %s | %s | | | |\n", name,
        (p > 0 ? sprintf("%.4g", p) : "none"), by
    }'
  done
  torch_rows
}

# PyTorch computes the same model: its MFU is ours at its step time.
torch_rows() {
  local predicted mfu
  predicted=$(number "$out/llama-own.predicted.json" step_time_s)
  mfu=$(number "$out/llama-own.predicted.json" mfu)
  { cat "$out"/torch-*.jsonl 2>/dev/null || true; } |
    sed -n 's/.*"variant": "\([^"]*\)".*"median_step_time_s": \([0-9.e+-]*\).*/\1 \2/p' |
    awk -v p="${predicted:-0}" -v u="${mfu:-0}" '{
      printf "| PyTorch, %s | %.4g | | | | %.1f %% | |\n", $1, $2, 100 * u * p / $2 }'
}

# attention FILE: prints whose attention kernels an execution's report names.
attention() {
  { sed -n 's/^  "device": ".*, \(.*attention.*\)",$/\1/p' "$1" 2>/dev/null || true; } | head -n 1
}

summary() {
  local name whose
  echo "# Predicted against measured"
  echo
  echo "${gpu-unknown}, driver ${driver-unknown};" \
    "$("$orrery" --version 2>/dev/null | head -n 1); $(date -u +%Y-%m-%d)."
  [[ ! -s $out/calibrate.log ]] || sed -n '/^left out: /!{p;q}' "$out/calibrate.log"
  echo
  table
  echo
  echo "All of these runs are untraced. Of dp2 two ranks share one GPU, and the prediction is for" \
    "two of them."
  echo
  for name in llama-cudnn llama-own; do
    whose=$(attention "$out/$name.json")
    [[ -z $whose ]] || echo "$name: $whose."
  done
  echo
  echo "| step | seconds | |"
  echo "|---|---:|---|"
  awk -F '\t' '{ gsub(/\|/, "\\|", $4); printf "| %s | %s | %s |\n", $1, $3, $4 }' "$out/steps.tsv"
  if grep -q '^left out: ' "$out/calibrate.log" 2>/dev/null; then
    printf '\nPoints that the calibration left out:\n\n'
    sed -n 's/^left out: /- /p' "$out/calibrate.log" | cut -c1-200 | head -n 20
  fi
  for name in "$out"/compare-*.log; do
    [[ -s $name ]] || continue
    printf '\n## %s\n\n```\n' "$(basename "$name" .log)"
    cat "$name"
    echo '```'
  done
}

# Replaces both files atomically: a concurrent reader finds the previous ones.
deliver() {
  summary >"$results/summary.md.new"
  mv "$results/summary.md.new" "$results/summary.md"
  (cd "$out" && find . -path ./build -prune -o -type f -size -64M ! -name '*.new' \
    ! -name 'gpu-check.tar.gz' ! -name summary.md -print0 |
    tar -czf "$results/gpu-check.tar.gz.new" --null -T -)
  mv "$results/gpu-check.tar.gz.new" "$results/gpu-check.tar.gz"
}
