#include "models/program/program.hpp"

namespace orrery::models {

std::string_view name(BufferKind kind) {
  constexpr std::string_view of[] = {"parameter",  "gradient", "optimizer",
                                     "activation", "staging",  "workspace"};
  return of[static_cast<int>(kind)];
}

std::string_view name(Opcode op) {
  constexpr std::string_view of[] = {"forward",         "backward", "send",   "receive",
                                     "reduce_gradient", "tie",      "norm",   "optimizer",
                                     "gather",          "compress", "unshard"};
  return of[static_cast<int>(op)];
}

}  // namespace orrery::models
