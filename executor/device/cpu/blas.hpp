#pragma once
// OpenBLAS, loaded by the first that computes: as a library of the program it would start a thread
// for every core of the machine, which spins while a prediction of milliseconds is made.

#ifdef ORRERY_OPENBLAS
#include <cblas.h>

namespace orrery::executor::cpu {

struct Blas {
  decltype(&::cblas_sgemm) sgemm;
  decltype(&::cblas_dgemm) dgemm;
  decltype(&::openblas_get_config) config;
  decltype(&::openblas_get_corename) core;
};

/// With one thread for each caller: a rank is a thread.
/// Errors  neither among the machine's libraries nor where it was when this was built: InputError
const Blas& blas();

}  // namespace orrery::executor::cpu
#endif
