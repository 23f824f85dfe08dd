# Runs the steps of gpu_check.sh, each under its own time limit, its group's and the run's, and
# records them in FOLDER/steps.tsv (name, status, seconds, message), one line for each name.

record() {
  local lines
  lines=$(awk -F '\t' -v name="$1" '$1 != name' "$out/steps.tsv" 2>/dev/null || true)
  { [[ -z $lines ]] || printf '%s\n' "$lines"; printf '%s\t%s\t%s\t%s\n' "$@"; } >"$out/steps.new"
  mv "$out/steps.new" "$out/steps.tsv"
  printf '%-24s %4d s  %s\n' "$1" "$3" "$4"
  deliver
}

# note NAME WHY: records a step that is left out, which is not a failure.
note() { record "$1" 0 0 "left out: $2"; }

# step NAME SECONDS [to FILE] COMMAND...: runs a program or an exported function. Its output goes to
# NAME.log, or with FILE its stdout to FILE and its stderr to NAME.log. At the time limit it is
# interrupted, and killed 15 s later.
step() {
  local name=$1 limit=$2 status=0 begin=$SECONDS to='' log=$out/$1.log said=ok
  shift 2
  if [[ $1 == to ]]; then
    to=$2
    shift 2
  fi
  ((limit <= ends - SECONDS)) || limit=$((ends - SECONDS))
  [[ -z ${group_ends-} ]] || ((limit <= group_ends - SECONDS)) || limit=$((group_ends - SECONDS))
  if ((limit < 1)); then
    record "$name" 124 0 "not done: no time was left"
    return 0
  fi
  # timeout runs programs, not functions: a shell of its own runs either.
  local run=(timeout -s INT -k 15 "$limit" bash -c '"$@"' step "$@")
  if [[ -n $to ]]; then
    "${run[@]}" >"$to" 2>"$log" || status=$?
  else
    "${run[@]}" >"$log" 2>&1 || status=$?
  fi
  case $status in
    0) ;;
    124 | 137) said="stopped after $limit s" ;;
    *) said="failed ($status): $(tail -n 1 "$log" | cut -c1-160)" ;;
  esac
  record "$name" "$status" $((SECONDS - begin)) "$said"
}

passed() { [[ $(awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$out/steps.tsv") == 0 ]]; }
