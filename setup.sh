#!/usr/bin/env bash
# Brings a bare Debian 12 to where Orrery builds, and quickly does nothing where it already does.
#   ./setup.sh           the packages that the build needs
#   ./setup.sh --build   ... and build/orrery
#   ./setup.sh --python  ... the packages that the Python module needs, and the module in .venv
#   ./setup.sh --test    all of it, then every quick test
# With --cuda after --build or --test, the CUDA module too: nvcc takes minutes.
set -euo pipefail
cd "$(dirname "$0")"
# What one build folder compiled serves the next: the module's objects are the command's, if the
# compiler is called by the same name (Python's own is another for the same program).
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export CC=${CC:-cc} CXX=${CXX:-c++}

build_packages=(cmake ninja-build g++ ccache pkg-config libboost-dev nlohmann-json3-dev libcli11-dev
  libfmt-dev libnlopt-cxx-dev libeigen3-dev zlib1g-dev libsodium-dev libopenblas-dev libopenmpi-dev
  openmpi-bin libyaml-cpp-dev libtomlplusplus-dev
  libjpeg62-turbo-dev libwebp-dev libpng-dev libopenjp2-7-dev)
python_packages=(python3-venv python3-dev)
test_packages=(catch2 iproute2 strace clang-14 libclang-rt-14-dev clang-format-14)

# Installs the missing ones among the packages named, or says exactly which are missing.
need() {
  command -v dpkg-query >/dev/null || return 0  # not Debian: CMake names what it does not find
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] ||
      missing+=("$package")
  done
  [[ ${#missing[@]} -eq 0 ]] && return 0
  if [[ $EUID -ne 0 ]]; then
    echo "setup.sh: missing packages; as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  echo "setup.sh: installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
}

# build TESTS TARGET: tests need Catch2, which the command alone does not.
build() {
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DORRERY_TESTS="$1" -DORRERY_CUDA="$cuda"
  cmake --build build --target "$2"
}

# The module in .venv, built again only when a source is newer than the last time.
python_module() {
  [[ -x .venv/bin/python ]] || python3 -m venv .venv
  if [[ ! -e .venv/installed || -n $(find pyproject.toml CMakeLists.txt sim hardware models \
      scenarios executor calibrate python -newer .venv/installed -type f -print -quit) ]]; then
    .venv/bin/pip install --quiet --config-settings \
      cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON ".[test]"
    touch .venv/installed
  fi
}

cuda=OFF
[[ ${2:-} == --cuda && ${1:-} == --@(build|test) ]] && cuda=ON && set -- "$1"
[[ $# -le 1 ]] || set -- --help

case "${1:-}" in
  "") need "${build_packages[@]}" ;;
  --build)
    need "${build_packages[@]}"
    build OFF orrery
    ;;
  --python)
    need "${build_packages[@]}" "${python_packages[@]}"
    python_module
    ;;
  --test)
    need "${build_packages[@]}" "${python_packages[@]}" "${test_packages[@]}"
    build ON all
    ctest --test-dir build --label-exclude slow --output-on-failure --timeout 600 --parallel "$(nproc)"
    if [[ -d tests/python ]]; then
      python_module
      .venv/bin/python -m pytest --quiet --numprocesses "$(nproc)" tests/python
    fi
    ;;
  *)
    sed -n '2,7p' "$0" >&2
    exit 2
    ;;
esac
