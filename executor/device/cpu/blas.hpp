#pragma once
// OpenBLAS, loaded at its first use. Linked into the program, it would start a thread for every
// core of the machine, which spins even while a prediction of milliseconds is made.

#ifdef ORRERY_OPENBLAS
#include <cblas.h>

namespace orrery::executor::cpu {

struct Blas {
  decltype(&::cblas_sgemm) sgemm;
  decltype(&::cblas_dgemm) dgemm;
  decltype(&::openblas_get_config) config;
  decltype(&::openblas_get_corename) core;
};

/// OpenBLAS without threads of its own, since every rank is a thread.
/// Errors  neither among the machine's libraries nor where it was when this was built: InputError
const Blas& blas();

}  // namespace orrery::executor::cpu
#endif
