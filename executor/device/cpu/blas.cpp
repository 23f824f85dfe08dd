#include "executor/device/cpu/blas.hpp"

#ifdef ORRERY_OPENBLAS
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "sim/errors.hpp"

namespace orrery::executor::cpu {

namespace {

constexpr const char* threads = "OPENBLAS_NUM_THREADS";

template <class Function>
void find_in(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw InputError{std::string{"OpenBLAS has no "} + name};
}

Blas load_blas() {
  // OpenBLAS reads this variable once, when it is loaded, and starts so many threads.
  const bool stated = std::getenv(threads) != nullptr;
  if (!stated) setenv(threads, "1", 0);
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen(ORRERY_OPENBLAS, RTLD_NOW | RTLD_LOCAL);
  if (!stated) unsetenv(threads);
  if (library == nullptr) {
    throw InputError{std::string{"OpenBLAS cannot be loaded: "} + dlerror()};
  }
  Blas loaded{};
  find_in(library, "cblas_sgemm", loaded.sgemm);
  find_in(library, "cblas_dgemm", loaded.dgemm);
  find_in(library, "openblas_get_config", loaded.config);
  find_in(library, "openblas_get_corename", loaded.core);
  decltype(&::openblas_set_num_threads) set_threads = nullptr;
  find_in(library, "openblas_set_num_threads", set_threads);
  set_threads(1);
  return loaded;
}

}  // namespace

const Blas& blas() {
  static const Blas loaded = load_blas();
  return loaded;
}

}  // namespace orrery::executor::cpu
#endif
