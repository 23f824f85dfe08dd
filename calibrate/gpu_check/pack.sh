# Packs a build for gpu_check.sh, small enough to be carried to a machine without network. It is
# smallest if built for one architecture and without OpenBLAS (which is 36 MB):
#   cmake -S . -B build-gpu -DORRERY_CUDA=ON -DORRERY_OPENBLAS=OFF -DCMAKE_CUDA_ARCHITECTURES=90-real

# pack BUILD FOLDER: the programs, stripped, and the libraries that they were linked to, except the
# C and C++ runtimes and CUDA's, which are looked for on the target machine.
pack() {
  local file library
  mkdir -p "$2/tests" "$2/lib"
  for file in orrery liborrery_cuda.so tests/cuda_test; do
    [[ -e $1/$file ]] || usage "--pack: $1/$file is not there"
    cp "$1/$file" "$2/$file"
    strip "$2/$file" 2>/dev/null || true # a script has nothing to strip
  done
  { ldd "$1/orrery" "$1/liborrery_cuda.so" "$1/tests/cuda_test" 2>/dev/null || true; } |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    while read -r library; do
      case $(basename "$library") in
        libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libgcc_s.so* | libstdc++.so*) ;;
        libcu* | libnv* | libnccl*) ;;
        *) cp -L "$library" "$2/lib/" ;;
      esac
    done
  du -sh "$2" | awk '{ print $2 ": " $1 }'
}
