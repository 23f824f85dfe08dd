#pragma once

#include <string>

namespace orrery::executor {

/// Whose kernels computed fused attention so far, in shapes; forward and backward count apart.
struct FusedAttention {
  std::string library;  // "cuDNN 9.19.0"; empty: there is none
  int by_library = 0, by_own = 0;
  std::string absence{};  // of a library: why there is none
};

}  // namespace orrery::executor
