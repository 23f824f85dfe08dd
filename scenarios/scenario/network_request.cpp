#include "scenarios/scenario/network_request.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_perturbations = 10'000;

models::AxisOrder read_axes(const Node& value) {
  auto order = models::axis_order(value.as<std::string>());
  if (!order) value.fail_expected("each of tp, cp, ep, dp and pp once, as in \"tp-cp-ep-dp-pp\"");
  return *std::move(order);
}

models::NodeOrder read_order(const Node& value) {
  models::NodeOrder order;
  if (value.is_string()) {
    value.one_of({"contiguous"});
  } else if (value.is_array()) {
    for (const Node& each : value.elements()) {
      order.nodes.push_back(each.integer(0, std::numeric_limits<std::int32_t>::max()));
    }
    if (order.nodes.empty()) value.fail_expected("at least one node");
  } else if (value.is_object()) {
    value.only({"scattered", "order"});
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (const auto seed = value.find("scattered")) {
      order.scattered = static_cast<std::uint64_t>(seed->integer(0, most));
    }
    if (const auto axes = value.find("order")) order.axes = read_axes(*axes);
  } else {
    value.fail_expected(
        R"("contiguous", {"scattered": SEED}, {"order": "tp-cp-ep-dp-pp"} or a list of nodes)");
  }
  return order;
}

/// Whether a perturbation is jitter: it applies to every kernel, so it has no place.
bool is_jitter(const Node& value) {
  const auto kind = value.is_object() ? value.find("kind") : std::nullopt;
  return kind && kind->json() == "jitter";
}

models::KernelJitter read_jitter(const Node& value) {
  value.only({"kind", "distribution", "deviation"});
  models::KernelJitter jitter;
  if (const auto word = value.find("distribution")) {
    jitter.distribution = word->word(models::jitter_words);
  }
  jitter.deviation = value["deviation"].as<Time>();
  if (jitter.deviation <= Time{} || jitter.deviation > 1000_ms) {
    value["deviation"].fail_expected("a time above 0 s and at most 1 s");
  }
  return jitter;
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
  // A rate of 0 would be a failure, not a slow part.
  if (!(read.rate >= 1e-6 && read.rate <= 1)) value["rate"].fail_expected("a share from 1e-6 to 1");
  const bool computes =
      read.kind == models::PerturbedPart::gpu || read.kind == models::PerturbedPart::node;
  for (const char* key : {"from", "to"}) {
    if (const auto time = value.find(key); time && computes) {
      time->fail(
          "applies only to links, NICs and switches; GPUs and nodes are slow for the whole step");
    }
  }
  read.from = value.value_or("from", Time{});
  if (read.from < Time{}) value["from"].fail_expected("a time of at least 0 s");
  if (const auto to = value.find("to")) {
    read.to = to->as<Time>();
    if (*read.to <= read.from) to->fail_expected("a time after 'from'");
  }
  return read;
}

models::LaunchPhases read_phases(const Node& value) {
  constexpr std::int64_t most_phases = 4096;
  models::LaunchPhases phases;
  phases.count = static_cast<int>(value.integer_or("phases", 0, most_phases, 0));
  phases.first = static_cast<int>(value.integer_or("first_phase", 0, 1'000'000, 0));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  phases.seed = static_cast<std::uint64_t>(value.integer_or("seed", 0, most, 1));
  phases.delay = value.value_or("launch_delay", phases.delay);
  if (phases.delay <= Time{} || phases.delay > 1000_ms) {
    value["launch_delay"].fail_expected("a time above 0 s and at most 1 s");
  }
  return phases;
}

std::optional<models::NcclSettings> read_choice(const Node& value) {
  const std::vector<std::string_view> variables{"NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS",
                                                "NCCL_MAX_CTAS"};
  value.only({"choice", "NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"});
  models::NcclSettings settings;
  settings.place = value.place();
  for (const std::string_view name : variables) {
    const auto variable = value.find(name);
    if (!variable) continue;
    const bool number = variable->json().is_number_integer();
    const std::string text = number ? variable->json().dump() : variable->as<std::string>();
    models::read_nccl_variable(name, text, settings);
  }
  const auto choice = value.find("choice");
  const bool fastest = choice && choice->one_of({"fastest", "nccl"}) == 0;
  if (fastest && settings.any()) {
    choice->fail_expected("nccl, because NCCL variables are stated with it");
  }
  if (fastest || (!choice && !settings.any())) return std::nullopt;
  return settings;
}

}  // namespace

models::NcclSettings nccl_settings_of(const std::vector<std::string>& written,
                                      const std::string& place) {
  models::NcclSettings settings;
  settings.place = place;
  std::set<std::string> seen;
  for (const std::string& each : written) {
    const std::size_t equals = std::min(each.find('='), each.size());
    const std::string name = each.substr(0, equals);
    if (!seen.insert(name).second) throw InputError{place, name + " is given twice"};
    const std::string_view value = std::string_view{each}.substr(std::min(equals + 1, each.size()));
    models::read_nccl_variable(name, value, settings);
  }
  return settings;
}

models::NetworkRequest read_network(const Node& root) {
  models::NetworkRequest request;
  request.file = root.file();
  if (const auto network = root.find("network"); network && network->is_object()) {
    network->only({"mode", "phases", "first_phase", "seed", "launch_delay"});
    if (const auto mode = network->find("mode")) {
      request.mode = mode->word(models::network_mode_words);
    }
    request.phases = read_phases(*network);
  } else if (network) {
    request.mode = network->word(models::network_mode_words);
  }
  if (const auto choice = root.find("collectives")) request.collectives = read_choice(*choice);
  if (const auto placement = root.find("placement")) request.order = read_order(*placement);
  if (const auto list = root.find("perturbations")) {
    const std::vector<Node> elements = list->elements();
    if (elements.size() > most_perturbations) list->fail_expected("at most 10,000 perturbations");
    for (const Node& each : elements) {
      if (!is_jitter(each)) {
        request.perturbations.push_back(read_perturbation(each));
      } else if (request.jitter) {
        each.fail("a second jitter; one jitter applies to all kernels");
      } else {
        request.jitter = read_jitter(each);
      }
    }
  }
  return request;
}

}  // namespace orrery::scenarios
