#pragma once
// A report of which kernels computed fused attention: a library's or our own.

#include <string>

namespace orrery::executor {

/// Whose kernels computed fused attention so far, in numbers of shapes; forward and backward count
/// separately.
struct FusedAttention {
  std::string library;  // "cuDNN 9.19.0"; empty: there is none
  int by_library = 0, by_own = 0;
  std::string absence{};  // why there is no library
};

}  // namespace orrery::executor
