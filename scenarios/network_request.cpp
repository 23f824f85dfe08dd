#include "scenarios/network_request.hpp"

#include <limits>

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_perturbations = 10'000;

models::NodeOrder read_order(const Node& value) {
  models::NodeOrder order;
  if (value.is_string()) {
    value.one_of({"contiguous"});
  } else if (value.is_array()) {
    for (const Node& each : value.elements()) {
      order.nodes.push_back(each.integer(0, std::numeric_limits<std::int32_t>::max()));
    }
    if (order.nodes.empty()) value.fail_expected("the cluster's nodes");
  } else if (value.is_object()) {
    value.only({"scattered"});
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    order.scattered = static_cast<std::uint64_t>(value["scattered"].integer(0, most));
  } else {
    value.fail_expected(R"("contiguous", {"scattered": SEED} or a list of nodes)");
  }
  return order;
}

models::Perturbation read_perturbation(const Node& value) {
  value.only({"kind", "at", "rate", "from", "to"});
  models::Perturbation read;
  read.pointer = value.pointer();
  read.kind = value["kind"].word(models::perturbed_part_words);
  const Node at = value["at"];
  read.at = at.json().is_number_integer() ? std::to_string(at.integer(0, std::int64_t{1} << 20))
                                          : at.as<std::string>();
  read.rate = value["rate"].as<double>();
  // What carries nothing is a failure, not a slow part.
  if (!(read.rate >= 1e-6 && read.rate <= 1)) value["rate"].fail_expected("a share from 1e-6 to 1");
  const bool computes =
      read.kind == models::PerturbedPart::gpu || read.kind == models::PerturbedPart::node;
  for (const char* key : {"from", "to"}) {
    if (const auto time = value.find(key); time && computes) {
      time->fail("a GPU is slow for the whole step; links, NICs and switches have times");
    }
  }
  read.from = value.value_or("from", Time{});
  if (read.from < Time{}) value["from"].fail_expected("a time from 0 s");
  if (const auto to = value.find("to")) {
    read.to = to->as<Time>();
    if (*read.to <= read.from) to->fail_expected("a time after 'from'");
  }
  return read;
}

}  // namespace

models::NetworkRequest read_network(const Node& root) {
  models::NetworkRequest request;
  if (const auto mode = root.find("network")) request.mode = mode->word(models::network_mode_words);
  if (const auto placement = root.find("placement")) request.order = read_order(*placement);
  if (const auto list = root.find("perturbations")) {
    const std::vector<Node> elements = list->elements();
    if (elements.size() > most_perturbations) list->fail_expected("at most 10,000 perturbations");
    for (const Node& each : elements) request.perturbations.push_back(read_perturbation(each));
  }
  return request;
}

}  // namespace orrery::scenarios
