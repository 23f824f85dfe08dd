#include "calibrate/import/kineto_names.hpp"

#include <initializer_list>
#include <string_view>

#include "calibrate/import/log_lines.hpp"

namespace orrery::calibrate {

namespace {

struct CollectiveName {
  std::string_view written, operation;
};
/// Matched in order: a name comes before the shorter ones that it contains.
constexpr CollectiveName collective_names[] = {
    {"reduce_scatter", "reduce_scatter"},
    {"reducescatter", "reduce_scatter"},
    {"allreduce", "all_reduce"},
    {"all_reduce", "all_reduce"},
    {"allgather", "all_gather"},
    {"all_gather", "all_gather"},
    {"all_to_all", "all_to_all"},
    {"alltoall", "all_to_all"},
    {"broadcast", "broadcast"},
    {"sendrecv", "send_receive"},
    {"reduce", "reduce"},
};

const CollectiveName* collective_in(std::string_view lower_case) {
  for (const CollectiveName& each : collective_names) {
    if (contains(lower_case, each.written)) return &each;
  }
  return nullptr;
}

std::string first_in(std::string_view text, std::initializer_list<const char*> known) {
  for (const char* each : known) {
    if (contains(text, each)) return each;
  }
  return {};
}

}  // namespace

std::string collective_named(const std::string& written) {
  const std::string name = in_lower_case(written);
  const CollectiveName* known = collective_in(name);
  return known ? std::string{known->operation} : name;
}

std::optional<KernelName> named_by_kernel(const std::string& kernel) {
  const std::string name = in_lower_case(kernel.substr(0, kernel.find_first_of("(<")));
  const CollectiveName* known = collective_in(name);
  if (!known) return std::nullopt;
  const std::string_view rest = *after(name, known->written);
  return KernelName{std::string{known->operation},
                    first_in(rest, {"nvls", "collnet", "tree", "ring", "pat"}),
                    first_in(rest, {"ll128", "simple", "ll"})};
}

}  // namespace orrery::calibrate
