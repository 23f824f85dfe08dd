#include "models/network/collectives/nccl_names.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

namespace orrery::models {

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

std::string lowered_name(std::string_view name) {
  std::string lower{name};
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  return lower;
}

const CollectiveName* collective_in(std::string_view lower_case) {
  for (const CollectiveName& each : collective_names) {
    if (lower_case.find(each.written) != std::string_view::npos) return &each;
  }
  return nullptr;
}

std::string first_in(std::string_view text, std::initializer_list<const char*> known) {
  for (const char* each : known) {
    if (text.find(each) != std::string_view::npos) return each;
  }
  return {};
}

}  // namespace

std::string collective_named(const std::string& written) {
  const std::string name = lowered_name(written);
  const CollectiveName* known = collective_in(name);
  return known ? std::string{known->operation} : name;
}

std::optional<KernelName> named_by_kernel(const std::string& kernel) {
  const std::string name = lowered_name(kernel.substr(0, kernel.find_first_of("(<")));
  const CollectiveName* known = collective_in(name);
  if (!known) return std::nullopt;
  const std::string_view rest =
      std::string_view{name}.substr(name.find(known->written) + known->written.size());
  return KernelName{std::string{known->operation},
                    first_in(rest, {"nvls", "collnet", "tree", "ring", "pat"}),
                    first_in(rest, {"ll128", "simple", "ll"})};
}

}  // namespace orrery::models
