#include "calibrate/import/effects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "calibrate/findings.hpp"
#include "hardware/curves/measured_collectives.hpp"
#include "sim/statistics.hpp"

namespace orrery::calibrate {

namespace {

constexpr Bytes least_message{65536};  // perftest's default size
constexpr double slow_share = 0.95;

bool of_perftest(const Sample& sample) {
  return sample.software == "perftest";
}

bool is_nic_rate(const Sample& sample) {
  return of_perftest(sample) && sample.detail == "bandwidth" && sample.size &&
         *sample.size >= least_message;
}

bool is_storage_rate(const Sample& sample) {
  return (sample.quantity == "storage.read" || sample.quantity == "storage.write") &&
         std::holds_alternative<Bandwidth>(sample.value);
}

struct UnpricedReason {
  std::string_view quantity, text;  // quantity: all that begin so
};
constexpr std::string_view of_trace =
    "no cost model reads the kernels of a trace; `orrery calibrate` measures GEMMs, attention and "
    "overlap";
constexpr UnpricedReason reasons[] = {
    {"kernel", of_trace},
    {"nccl_kernel", "the collective is not known"},
    {"overlap_slowdown", of_trace},
    {"stream", "memory bandwidth is the GPU's own (/node/gpu/memory_bandwidth)"},
    {"collective_channels", "the cost model chooses channels as NCCL does"},
    {"storage.", "checkpoints are priced by bandwidths alone"},
    {"hypercube", "no plan uses this collective"},
    {"gather", "no plan uses this collective"},
    {"scatter", "no plan uses this collective"},
};

std::string_view why_unpriced(const Sample& sample) {
  for (const UnpricedReason& each : reasons) {
    if (sample.quantity.starts_with(each.quantity)) return each.text;
  }
  if (is_nic_rate(sample)) return "no --cluster states NICs whose rate they would set";
  if (of_perftest(sample)) {
    return "a NIC's rate is a one-way bandwidth of 64 KiB or more; latency is the fabric's "
           "latency_class";
  }
  const auto& known = hardware::measured_operations;
  if (std::ranges::find(known, sample.quantity) == known.end()) return "no plan uses it";
  if (!std::holds_alternative<Time>(sample.value)) return "tables of collectives need times";
  return sample.ranks ? "its size is not known" : "its number of ranks is not known";
}

}  // namespace

std::vector<NicRate> nic_rates(const std::vector<Imported>& logs) {
  struct Best {
    std::string device, file;
    Bandwidth rate{};
  };
  std::vector<Best> found;
  std::map<std::string, int> logs_of_device;
  for (const Imported& log : logs) {
    Best best{.device = {}, .file = std::filesystem::path{log.file}.filename().string()};
    for (const Sample& each : log.samples) {
      if (!is_nic_rate(each)) continue;
      best.device = each.device;
      best.rate = std::max(best.rate, std::get<Bandwidth>(each.value));
    }
    if (best.rate.count() <= 0) continue;
    ++logs_of_device[best.device];
    found.push_back(std::move(best));
  }
  std::vector<NicRate> nics;
  for (const Best& each : found) {
    const bool named = !each.device.empty();
    const bool alone = named && logs_of_device[each.device] == 1;
    nics.push_back({alone   ? each.device
                    : named ? fmt::format("{} of {}", each.device, each.file)
                            : each.file,
                    each.rate});
  }
  return nics;
}

std::optional<Bandwidth> usual_nic_rate(const std::vector<NicRate>& nics) {
  if (nics.empty()) return std::nullopt;
  std::vector<double> rates;
  for (const NicRate& each : nics) rates.push_back(each.rate.count());
  return Bandwidth{median(std::move(rates))};
}

std::vector<std::string> slow_nics(const std::vector<NicRate>& nics) {
  std::vector<std::string> sentences;
  const Bandwidth usual = usual_nic_rate(nics).value_or(Bandwidth{});
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const double share = nics[i].rate.count() / usual.count();
    if (share >= slow_share) continue;
    sentences.push_back(fmt::format(
        "NIC {}: {}, {:.2f} times slower than the median of {} NICs, {}; in a scenario: "
        "{{\"kind\": \"nic\", \"at\": \"nodeN/nicM\", \"rate\": {:.2f}}} in /perturbations",
        nics[i].name, format(Value{nics[i].rate}), 1 / share, nics.size(), format(Value{usual}),
        share));
  }
  return sentences;
}

std::vector<std::string> unpriced_samples(const std::vector<Sample>& samples, bool sets_nics) {
  std::map<std::string, std::vector<const Sample*>> quantities;
  std::set<std::string> priced;
  for (const Sample& each : samples) {
    quantities[each.quantity].push_back(&each);
    if (in_collective_table(each) || is_storage_rate(each) || (sets_nics && is_nic_rate(each))) {
      priced.insert(each.quantity);
    }
  }
  std::map<std::string_view, std::vector<std::string>> by_reason;
  for (const auto& [quantity, own] : quantities) {
    if (priced.contains(quantity)) continue;
    by_reason[why_unpriced(*own.front())].push_back(fmt::format("{} ({})", quantity, own.size()));
  }
  std::vector<std::string> sentences;
  for (const auto& [reason, named] : by_reason) {
    sentences.push_back(
        fmt::format("samples that price nothing: {}; {}", fmt::join(named, ", "), reason));
  }
  return sentences;
}

}  // namespace orrery::calibrate
