#include "models/program/program.hpp"

namespace orrery::models {

std::string_view name(Lane lane) {
  constexpr std::string_view of[] = {"host", "compute", "comm:tp", "comm:cp", "comm:dp", "copy"};
  return of[static_cast<int>(lane)];
}

std::string_view name(Collective collective) {
  return word_of(collective_words, collective);
}

std::string_view name(TimeClass part) {
  constexpr std::string_view of[] = {
      "gemm", "attention",  "memory_bound", "tp",        "cp",   "ep",   "dp",
      "pp",   "other_comm", "bubble",       "optimizer", "host", "other"};
  return of[static_cast<int>(part)];
}

std::string_view name(BufferKind kind) {
  constexpr std::string_view of[] = {"parameter",  "gradient", "optimizer",
                                     "activation", "staging",  "workspace"};
  return of[static_cast<int>(kind)];
}

std::string_view name(Opcode op) {
  constexpr std::string_view of[] = {
      "forward", "backward", "weight_gradient", "send",   "receive",  "reduce_gradient",
      "tie",     "norm",     "optimizer",       "gather", "compress", "unshard"};
  return of[static_cast<int>(op)];
}

}  // namespace orrery::models
