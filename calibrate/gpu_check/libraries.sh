# Finds the shared libraries of gpu_check.sh: CUDA's may be only in a toolkit or in Python's
# packages.

# Prints the folders that may hold libraries, the build's own first.
library_folders() {
  local nvcc root
  printf '%s\n' "$build/lib"
  if nvcc=$(command -v nvcc); then
    root=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    printf '%s\n' "$root/lib64" "$root/lib" "$root"/targets/*/lib
  fi
  printf '%s\n' "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda-*/lib64
  python3 -c 'if True:
    import glob, sys
    for base in sys.path:
        for folder in glob.glob(base + "/nvidia/*/lib") + glob.glob(base + "/torch/lib"):
            print(folder)' 2>/dev/null || true
}

# Succeeds if the loader finds a library of this name.
loader_finds() {
  local folder
  PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -qF "$1 " && return 0
  while IFS= read -r -d : folder; do
    [[ -n $folder && -e $folder/$1 ]] && return 0
  done <<<"${LD_LIBRARY_PATH-}:"
  return 1
}

missing_libraries() {
  { ldd "$@" 2>/dev/null || true; } | awk '/=> not found/ { print $1 }' | sort -u
}

# Adds the folders of libraries that the loader lacks to its path: those that the module is linked
# to, and those that it loads at run time (cuDNN, which needs CUDA's runtime and compiler as shared
# libraries).
find_libraries() {
  local name folder folders found major wanted files=("$orrery")
  if [[ -e $build/liborrery_cuda.so ]]; then files+=("$build/liborrery_cuda.so"); fi
  mapfile -t folders < <(library_folders)
  major=$({ ldd "${files[@]}" 2>/dev/null || true; } | sed -n 's/.*libcublas\.so\.\([0-9]*\).*/\1/p' | head -n 1)
  mapfile -t wanted < <(
    missing_libraries "${files[@]}"
    printf '%s\n' libcudnn.so.9 "libcudart.so.${major:-13}" "libnvrtc.so.${major:-13}"
  )
  : >"$out/libraries.txt"
  for name in "${wanted[@]}"; do
    found=''
    loader_finds "$name" && found="where the loader looks"
    for folder in "${folders[@]}"; do
      [[ -z $found && -e $folder/$name ]] || continue
      export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
      found=$folder
    done
    echo "$name: ${found:-nowhere}" >>"$out/libraries.txt"
  done
  name=$(missing_libraries "${files[@]}" | tr '\n' ' ')
  [[ -z $name ]] || usage "the module does not load: ${name% } not found where the loader looks, in \
$build/lib, the CUDA toolkit or Python's packages; bring it in $build/lib"
}
