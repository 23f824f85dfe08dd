// Reads PyTorch profiler traces (Kineto's Chrome JSON): kernel and collective times, and how much
// slower a kernel runs while a collective runs. Times come from the device's own events, never from
// cpu_op. A collective's time includes its wait for the slowest rank: the minimum over the ranks'
// traces is the transfer. Traces from before PyTorch 2.2 have no `Collective name`: the collective,
// algorithm and protocol are read from the kernel's name.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "calibrate/import/log_lines.hpp"
#include "models/network/collectives/nccl_names.hpp"
#include "sim/statistics.hpp"

namespace orrery::calibrate {

namespace {

struct KernelEvent {
  std::string name, launch;  // "grid x block"
  std::int64_t device = 0;
  double begin = 0, duration = 0;  // us
  bool collective = false;
  const Json* arguments = nullptr;
  std::size_t index = 0;

  double end() const { return begin + duration; }
};

/// True for kernels of NCCL and of RCCL.
bool of_nccl(const std::string& name) {
  return contains(name, "nccl") || contains(name, "NCCL");
}

std::optional<KernelEvent> kernel_of(const Json& event, std::size_t index) {
  const auto text = [&](const char* key) {
    const auto found = event.find(key);
    return found != event.end() && found->is_string() ? found->get<std::string>() : std::string{};
  };
  std::string category = text("cat");
  if (text("ph") != "X" || (category != "kernel" && category != "Kernel")) return std::nullopt;
  const auto begin = event.find("ts"), duration = event.find("dur");
  if (begin == event.end() || duration == event.end() || !begin->is_number() ||
      !duration->is_number()) {
    return std::nullopt;
  }
  KernelEvent kernel;
  kernel.name = text("name");
  kernel.begin = begin->get<double>();
  kernel.duration = duration->get<double>();
  kernel.collective = of_nccl(kernel.name);
  kernel.index = index;
  const auto arguments = event.find("args");
  if (arguments != event.end() && arguments->is_object()) {
    kernel.arguments = &*arguments;
    const auto device = arguments->find("device");
    if (device != arguments->end() && device->is_number_integer()) {
      kernel.device = device->get<std::int64_t>();
    }
    for (const char* key : {"grid", "block"}) {
      const auto dimensions = arguments->find(key);
      if (dimensions != arguments->end()) kernel.launch += dimensions->dump();
    }
  }
  return kernel;
}

/// The intervals in which some collective runs on one device.
class CoveredTime {
 public:
  explicit CoveredTime(std::vector<std::pair<double, double>> spans) {
    std::ranges::sort(spans);
    for (const auto& span : spans) {
      if (spans_.empty() || span.first > spans_.back().second) {
        spans_.push_back(span);
      } else {
        spans_.back().second = std::max(spans_.back().second, span.second);
      }
    }
  }

  bool covers(const KernelEvent& kernel) const {
    const auto after = behind_begin(kernel.begin);
    return after != spans_.begin() && kernel.end() <= after[-1].second;
  }
  bool touches(const KernelEvent& kernel) const {
    const auto after = behind_begin(kernel.begin);
    const bool before = after != spans_.begin() && after[-1].second > kernel.begin;
    return before || (after != spans_.end() && after->first < kernel.end());
  }

 private:
  std::vector<std::pair<double, double>>::const_iterator behind_begin(double begin) const {
    return std::upper_bound(spans_.begin(), spans_.end(), std::pair{begin, 1e300});
  }

  std::vector<std::pair<double, double>> spans_;
};

/// Bytes of an element as NCCL's events name it: "Float", "BFloat16", "Long".
std::optional<std::int64_t> element_bytes(const std::string& type) {
  if (type == "Float" || type == "Int") return 4;
  if (type == "BFloat16" || type == "Half") return 2;
  if (type == "Double" || type == "Long") return 8;
  if (type == "Byte" || type == "Char" || type == "Bool") return 1;
  return std::nullopt;
}

/// The sample of one collective's event; size as nccl-tests counts it.
Sample collective_sample(const KernelEvent& kernel, const std::string& file) {
  Sample sample;
  sample.quantity = "nccl_kernel";
  sample.detail = kernel.name;
  sample.value = microseconds(kernel.duration);
  sample.place = fmt::format("{}:/traceEvents/{}", file, kernel.index);
  if (const auto named = models::named_by_kernel(kernel.name)) sample.quantity = named->collective;
  if (!kernel.arguments) return sample;
  const Json& arguments = *kernel.arguments;
  const auto name = arguments.find("Collective name");
  if (name == arguments.end() || !name->is_string()) return sample;
  sample.quantity = models::collective_named(name->get<std::string>());
  const auto number = [&](const char* key) -> std::optional<std::int64_t> {
    const auto found = arguments.find(key);
    if (found == arguments.end() || !found->is_number_integer()) return std::nullopt;
    return found->get<std::int64_t>();
  };
  sample.ranks = number("Group size");
  const auto in = number("In msg nelems"), out = number("Out msg nelems");
  const auto type = arguments.find("dtype");
  const auto each = type != arguments.end() && type->is_string()
                        ? element_bytes(type->get<std::string>())
                        : std::nullopt;
  constexpr std::int64_t most = std::int64_t{1} << 50;
  if (in && out && each && *in >= 0 && *out >= 0 && std::max(*in, *out) < most) {
    sample.size = Bytes{std::max(*in, *out) * *each};
  }
  return sample;
}

class KinetoReader {
 public:
  explicit KinetoReader(const Node& root) : root_{root} { imported_.file = root.file(); }

  Imported read() {
    collect();
    describe();
    for (const KernelEvent& kernel : kernels_) {
      if (kernel.collective) add(collective_sample(kernel, root_.file()));
    }
    add_kernels();
    totals();
    return std::move(imported_);
  }

 private:
  using Group = std::tuple<std::string, std::string>;  // name, grid and block

  void collect() {
    const Json& events = root_["traceEvents"].json();
    if (!events.is_array()) root_["traceEvents"].fail_expected("an array of events");
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (!events[i].is_object()) continue;
      if (auto kernel = kernel_of(events[i], i)) kernels_.push_back(std::move(*kernel));
    }
    imported_.facts["events"] = events.size();
  }

  void describe() {
    if (const auto devices = root_.find("deviceProperties")) {
      const auto all = devices->elements();
      if (!all.empty()) device_ = all.front().value_or<std::string>("name", "");
    }
    software_ = "PyTorch profiler";
    const auto distributed = root_.find("distributedInfo");
    if (!distributed) return;
    const std::string nccl = distributed->value_or<std::string>("nccl_version", "");
    if (!nccl.empty()) software_ += ", NCCL " + nccl;
    imported_.facts["distributed"] = {{"rank", distributed->value_or("rank", 0)},
                                      {"world_size", distributed->value_or("world_size", 0)}};
  }

  /// One sample for each kernel and launch shape: the median of the instances that overlap no
  /// collective (of all instances, if there are none). If three or more ran wholly during a
  /// collective and three or more during none, also the ratio of the two medians.
  void add_kernels() {
    std::map<std::int64_t, std::vector<std::pair<double, double>>> spans;
    for (const KernelEvent& kernel : kernels_) {
      if (kernel.collective) spans[kernel.device].emplace_back(kernel.begin, kernel.end());
    }
    std::map<std::int64_t, CoveredTime> covered;
    for (auto& [device, each] : spans) covered.emplace(device, CoveredTime{std::move(each)});
    const CoveredTime nothing{{}};
    struct Times {
      std::vector<double> alone, under, all;
      std::size_t first = 0;
    };
    std::map<Group, Times> groups;
    for (const KernelEvent& kernel : kernels_) {
      if (kernel.collective) continue;
      const auto found = covered.find(kernel.device);
      const CoveredTime& time = found == covered.end() ? nothing : found->second;
      Times& times = groups[{kernel.name, kernel.launch}];
      if (times.all.empty()) times.first = kernel.index;
      times.all.push_back(kernel.duration);
      if (time.covers(kernel)) times.under.push_back(kernel.duration);
      if (!time.touches(kernel)) times.alone.push_back(kernel.duration);
    }
    for (const auto& [group, times] : groups) {
      Sample sample;
      sample.quantity = "kernel";
      sample.detail = std::get<0>(group) + " " + std::get<1>(group);
      sample.count = static_cast<std::int64_t>(times.all.size());
      sample.value = microseconds(median(times.alone.empty() ? times.all : times.alone));
      sample.place = fmt::format("{}:/traceEvents/{}", root_.file(), times.first);
      add(sample);
      if (times.alone.size() < 3 || times.under.size() < 3) continue;
      const double alone = median(times.alone);
      if (alone <= 0) continue;
      sample.quantity = "overlap_slowdown";
      sample.value = median(times.under) / alone;
      sample.count = static_cast<std::int64_t>(times.under.size());
      add(sample);
    }
  }

  void totals() {
    double all = 0, nccl = 0;
    std::int64_t collectives = 0, named = 0;
    for (const KernelEvent& kernel : kernels_) {
      all += kernel.duration;
      if (!kernel.collective) continue;
      ++collectives;
      nccl += kernel.duration;
      named += kernel.arguments && kernel.arguments->contains("Collective name") ? 1 : 0;
    }
    imported_.facts["kernels"] = kernels_.size();
    imported_.facts["kernel_us"] = all;
    imported_.facts["nccl_kernels"] = collectives;
    imported_.facts["nccl_us"] = nccl;
    imported_.facts["nccl_kernels_with_collective_name"] = named;
    if (named < collectives) name_by_kernels(collectives);
  }

  /// Reports the collectives whose events lack `Collective name`, by the names of their kernels.
  void name_by_kernels(std::int64_t collectives) {
    std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> kinds;
    std::int64_t unnamed = 0, by_kernel = 0;
    for (const KernelEvent& kernel : kernels_) {
      const bool named = kernel.arguments && kernel.arguments->contains("Collective name");
      if (!kernel.collective || named) continue;
      ++unnamed;
      const auto own = models::named_by_kernel(kernel.name);
      if (!own) continue;
      ++by_kernel;
      ++kinds[{own->collective, own->algorithm, own->protocol}];
    }
    Json rows = Json::array();
    const auto known = [](const std::string& word) { return word.empty() ? Json{} : Json(word); };
    for (const auto& [kind, count] : kinds) {
      rows.push_back({{"collective", std::get<0>(kind)},
                      {"algorithm", known(std::get<1>(kind))},
                      {"protocol", known(std::get<2>(kind))},
                      {"count", count}});
    }
    imported_.facts["named_by_kernel"] = std::move(rows);
    const auto note = [&](std::int64_t count, const char* what) {
      if (count > 0) {
        imported_.notes.push_back(
            fmt::format("{} of {} NCCL kernels {}", count, collectives, what));
      }
    };
    note(by_kernel,
         "state their collective, algorithm and protocol in the kernel's name only: their size and "
         "number of ranks are missing");
    note(unnamed - by_kernel, "do not name their collective");
  }

  void add(Sample sample) {
    sample.device = device_;
    sample.software = software_;
    imported_.samples.push_back(std::move(sample));
  }

  const Node& root_;
  Imported imported_;
  std::vector<KernelEvent> kernels_;
  std::string device_, software_;
};

}  // namespace

Imported read_kineto(const Node& root) {
  return KinetoReader{root}.read();
}

}  // namespace orrery::calibrate
