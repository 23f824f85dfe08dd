#include "scenarios/runback/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <filesystem>
#include <functional>

#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"
#include "sim/input/unpacked_file.hpp"
#include "sim/output/or_null.hpp"
#include "sim/statistics.hpp"

namespace orrery::scenarios {

namespace {

constexpr double least_spread = 0.01;   // of usual
constexpr double least_distance = 3.5;  // in spreads
constexpr double least_share = 0.05;    // of usual, or of the step
constexpr double mad_to_deviation = 1.4826;
constexpr std::size_t least_alike = 3;

/// P(t > x) of Student's t.
double tail_of_t(double x, double freedom) {
  return boost::math::cdf(
      boost::math::complement(boost::math::students_t_distribution<>{freedom}, x));
}

double mad_of(const std::vector<double>& values, double middle) {
  std::vector<double> apart;
  for (const double each : values) apart.push_back(std::abs(each - middle));
  return median(std::move(apart));
}

std::string file_name_of(const std::string& file) {
  return std::filesystem::path{file}.filename().string();
}

std::string spelled_seconds(double value) {
  return format(from_seconds(value));
}

std::string spelled_rate(double value) {
  return format(Bandwidth{value});
}

/// What is compared: values of parts that should be alike.
struct AlikeParts {
  std::string kind, what;
  bool rates = false;
  double whole = 0;  // of which a difference is a share; 0: the usual value
  std::vector<std::string> names{}, files{};
  std::vector<double> values{};
  std::string (*spelled)(double) = spelled_seconds;

  void add(std::string name, double value, std::string file) {
    names.push_back(std::move(name));
    values.push_back(value);
    files.push_back(std::move(file));
  }
};

class Diagnoser {
 public:
  explicit Diagnoser(const DiagnosedLogs& logs) : logs_{logs} {}

  Diagnosis run() {
    for (const BenchmarkLog& log : logs_.benchmarks) {
      if (log.tool.starts_with("perftest") || log.tool.starts_with("nccl-tests")) continue;
      throw InputError{log.file, fmt::format("is a log of {}; accepted: perftest, nccl-tests, step "
                                             "times and traces of ranks (orrery calibrate --import "
                                             "reads it)",
                                             log.tool)};
    }
    found_.files = logs_.benchmarks.size() + logs_.steps.size() + logs_.ranks.size();
    nics();
    collectives();
    step_logs();
    traces();
    if (found_.groups.empty()) {
      std::string why = "nothing to compare: give three or more logs of parts that should be alike";
      if (!found_.notes.empty()) why += "; " + found_.notes.front();
      throw InputError{"LOGS", why};
    }
    std::ranges::stable_sort(found_.slow, std::greater{}, &SlowPart::confidence);
    return std::move(found_);
  }

 private:
  /// Reports a comparison. Returns what is slow, without adding it.
  std::vector<SlowPart> compared(const AlikeParts& alike) {
    if (alike.values.size() < 2) return {};
    const auto slowest = alike.rates ? std::ranges::min_element(alike.values)
                                     : std::ranges::max_element(alike.values);
    const auto at = static_cast<std::size_t>(slowest - alike.values.begin());
    const double usual = median(alike.values);
    const double whole = alike.whole > 0 ? alike.whole : usual;
    found_.groups.push_back(
        {.what = alike.what,
         .parts = alike.values.size(),
         .usual = alike.spelled(usual),
         .slowest = alike.spelled(*slowest),
         .slowest_name = alike.names[at],
         .spread = whole > 0 ? mad_to_deviation * mad_of(alike.values, usual) / whole : 0});
    if (alike.values.size() < least_alike) {
      const double apart = std::abs(alike.values[0] - alike.values[1]);
      if (whole > 0 && apart > least_share * whole) {
        found_.notes.push_back(fmt::format(
            "{}: {} and {} differ by {:.0f} %; a third would tell which of them is slow",
            alike.what, alike.names[0], alike.names[1], 100 * apart / whole));
      }
      return {};
    }
    std::vector<SlowPart> slow;
    for (const Outlier& each : outliers_of(alike.values, alike.rates, alike.whole)) {
      const double value = alike.values[each.index];
      const double factor = alike.whole > 0 ? (alike.whole + value - each.usual) / alike.whole
                            : alike.rates   ? each.usual / value
                                            : value / each.usual;
      slow.push_back({.kind = alike.kind,
                      .name = alike.names[each.index],
                      .what = alike.what,
                      .factor = factor,
                      .confidence = each.confidence,
                      .value = alike.spelled(value),
                      .usual = alike.spelled(each.usual),
                      .evidence = {},
                      .files = alike.files[each.index],
                      .statement = {}});
    }
    return slow;
  }

  void add(std::vector<SlowPart> parts) {
    for (SlowPart& each : parts) found_.slow.push_back(std::move(each));
  }

  void nics() {
    std::map<std::string, int> logs_of_device;
    for (const BenchmarkLog& log : logs_.benchmarks) {
      if (log.tool.starts_with("perftest")) ++logs_of_device[log.device];
    }
    std::map<std::pair<std::string, bool>, AlikeParts> alike;
    std::map<std::pair<std::string, bool>, std::int64_t> largest;
    for (const BenchmarkLog& log : logs_.benchmarks) {
      if (!log.tool.starts_with("perftest")) continue;
      for (const auto& point : log.points) {
        std::int64_t& size = largest[{point.quantity, point.rate.has_value()}];
        size = std::max(size, point.bytes);
      }
    }
    for (const BenchmarkLog& log : logs_.benchmarks) {
      if (!log.tool.starts_with("perftest")) continue;
      const bool alone = !log.device.empty() && logs_of_device[log.device] == 1;
      const std::string name = alone                ? log.device
                               : log.device.empty() ? file_name_of(log.file)
                                                    : log.device + " of " + file_name_of(log.file);
      for (const auto& point : log.points) {
        const std::pair key{point.quantity, point.rate.has_value()};
        if (point.bytes != largest[key]) continue;
        AlikeParts& own = alike[key];
        own.kind = "nic";
        own.rates = key.second;
        own.spelled = own.rates ? spelled_rate : spelled_seconds;
        own.what = fmt::format("{} of {}{}", point.quantity, format(Bytes{point.bytes}),
                               own.rates ? "" : ", latency");
        own.add(name, own.rates ? point.rate->count() : seconds(*point.time), log.file);
      }
    }
    for (const auto& [key, own] : alike) {
      auto slow = compared(own);
      for (SlowPart& each : slow) {
        each.statement = fmt::format(R"({{"kind": "nic", "at": "nodeN/nicM", "rate": {:.2f}}})",
                                     1 / each.factor);
      }
      add(std::move(slow));
    }
  }

  /// Logs of one collective over as many ranks, by node or pair of nodes, at the largest size that
  /// all of them have.
  void collectives() {
    using Key = std::pair<std::string, std::int64_t>;  // operation, ranks
    std::map<Key, std::vector<const BenchmarkLog*>> alike;
    for (const BenchmarkLog& log : logs_.benchmarks) {
      if (!log.tool.starts_with("nccl-tests") || log.points.empty()) continue;
      alike[{log.points.front().quantity, log.points.front().ranks}].push_back(&log);
    }
    for (const auto& [key, logs] : alike) {
      std::map<std::int64_t, std::size_t> having;
      for (const BenchmarkLog* log : logs) {
        std::set<std::int64_t> sizes;
        for (const auto& point : log->points) {
          if (point.time && point.bytes > 0) sizes.insert(point.bytes);
        }
        for (const std::int64_t size : sizes) ++having[size];
      }
      std::int64_t common = 0;
      for (const auto& [size, count] : having) {
        if (count == logs.size()) common = size;
      }
      const std::string ranks = key.second > 0 ? fmt::format("{} ranks", key.second) : "ranks";
      if (common == 0) {
        found_.notes.push_back(
            fmt::format("{} of {}: the logs have no size in common", key.first, ranks));
        continue;
      }
      AlikeParts own{.kind = "link",
                     .what = fmt::format("{} of {}, {}", key.first, format(Bytes{common}), ranks)};
      std::vector<std::set<std::string>> hosts;
      for (const BenchmarkLog* log : logs) {
        std::vector<double> times;
        for (const auto& point : log->points) {
          if (point.time && point.bytes == common) times.push_back(seconds(*point.time));
        }
        own.add(name_of_hosts(*log), median(std::move(times)), log->file);
        hosts.push_back(log->hosts);
      }
      add(of_nodes(own, hosts, compared(own)));
    }
  }

  static std::string name_of_hosts(const BenchmarkLog& log) {
    constexpr std::size_t few = 4;
    if (log.hosts.empty() || log.hosts.size() > few) return file_name_of(log.file);
    return fmt::format("{}", fmt::join(log.hosts, " + "));
  }

  /// Slow runs by what they have in common: a node that is in no usual run, or a link.
  static std::vector<SlowPart> of_nodes(const AlikeParts& alike,
                                        const std::vector<std::set<std::string>>& hosts,
                                        std::vector<SlowPart> slow) {
    std::set<std::string> usual;
    const auto is_slow = [&](std::size_t i) {
      return std::ranges::any_of(
          slow, [&](const SlowPart& each) { return each.files == alike.files[i]; });
    };
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (!is_slow(i)) usual.insert(hosts[i].begin(), hosts[i].end());
    }
    std::vector<SlowPart> named;
    std::map<std::string, SlowPart> nodes;
    for (SlowPart& each : slow) {
      const auto at = std::ranges::find(alike.files, each.files) - alike.files.begin();
      std::vector<std::string> suspects;
      for (const std::string& host : hosts[static_cast<std::size_t>(at)]) {
        if (!usual.contains(host)) suspects.push_back(host);
      }
      if (suspects.size() == 1) {
        SlowPart& node = nodes[suspects.front()];
        const std::size_t before = node.files.empty() ? 0 : 1;
        if (before == 0 || each.factor > node.factor) {
          const std::string files = node.files;
          node = each;
          node.kind = "node";
          node.name = suspects.front();
          node.files = files.empty() ? each.files : files + " " + each.files;
          node.evidence = "in no run that is as fast as the others";
        } else {
          node.files += " " + each.files;
        }
        continue;
      }
      if (suspects.empty() && hosts[static_cast<std::size_t>(at)].size() == 2) {
        each.evidence = "both nodes are as fast as usual with others: the path between them";
      } else if (suspects.size() > 1) {
        each.kind = "node";
        each.evidence =
            fmt::format("one of {}: no other run has them apart", fmt::join(suspects, ", "));
      } else if (hosts[static_cast<std::size_t>(at)].empty()) {
        each.kind = "run";
      }
      named.push_back(std::move(each));
    }
    for (auto& [name, node] : nodes) named.push_back(std::move(node));
    return named;
  }

  void step_logs() {
    std::map<std::string, AlikeParts> alike;
    std::map<std::string, std::map<std::string, std::vector<std::string>>> nodes;
    std::set<std::string> waiting;
    for (const RunLog& log : logs_.steps) {
      found_.notes.insert(found_.notes.end(), log.notes.begin(), log.notes.end());
      std::map<std::int64_t, std::vector<double>> by_rank;
      const std::vector<double> all = log.step_seconds(nullptr);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const LoggedStep& step = log.steps[i];
        by_rank[step.rank.value_or(log.rank.value_or(-1))].push_back(all[i]);
        if (step.rank && !step.node.empty()) {
          auto& own = nodes[log.quantity][step.node];
          const std::string name = fmt::format("rank {}", *step.rank);
          if (std::ranges::find(own, name) == own.end()) own.push_back(name);
        }
      }
      AlikeParts& own = alike[log.quantity];
      own.kind = "rank";
      own.what = (log.own_time ? "time of a rank's own, " : "step time by rank, ") + log.quantity;
      if (!log.own_time) waiting.insert(log.quantity);
      for (const auto& [rank, times] : by_rank) {
        const StepStatistics steps = statistics_of(times);
        own.add(rank >= 0 ? fmt::format("rank {}", rank) : file_name_of(log.file), steps.median,
                log.file);
      }
    }
    for (const auto& [quantity, own] : alike) {
      auto slow = whole_nodes(compared(own), nodes[quantity]);
      const bool equal = slow.empty() && waiting.contains(quantity) && own.values.size() > 1;
      if (equal) {
        found_.notes.push_back(fmt::format(
            "{}: ranks of one job wait for each other in every step, so their step "
            "times agree even where one is slow; a time of each rank's own (compute_ms) "
            "or traces tell which",
            own.what));
      }
      add(std::move(slow));
    }
  }

  /// Ranks of one node that are all slow are one slow node.
  static std::vector<SlowPart> whole_nodes(
      std::vector<SlowPart> slow, const std::map<std::string, std::vector<std::string>>& nodes) {
    for (const auto& [node, ranks] : nodes) {
      if (ranks.size() < 2) continue;
      const auto of_node = [&](const SlowPart& each) {
        return std::ranges::find(ranks, each.name) != ranks.end();
      };
      if (static_cast<std::size_t>(std::ranges::count_if(slow, of_node)) < ranks.size()) continue;
      SlowPart whole = *std::ranges::max_element(
          slow, {}, [&](const SlowPart& each) { return of_node(each) ? each.confidence : -1; });
      std::erase_if(slow, of_node);
      whole.kind = "node";
      whole.name = node;
      whole.evidence = fmt::format("all {} of its ranks", ranks.size());
      slow.push_back(std::move(whole));
    }
    return slow;
  }

  /// Ranks that run the same kernels, class by class: of one stage. The last one's head and loss
  /// are a few kernels of hundreds.
  std::vector<std::vector<const ProfiledRank*>> ranks_alike() {
    std::vector<std::vector<const ProfiledRank*>> all;
    const auto alike = [](const ProfiledRank& one, const ProfiledRank& other) {
      constexpr double most_apart = 0.01;
      return std::ranges::all_of(run_class_words, [&](const auto& each) {
        if (!computes(each.value)) return true;
        const double a = one.kernels_per_step(each.value), b = other.kernels_per_step(each.value);
        return std::abs(a - b) <= most_apart * std::max(a, b);
      });
    };
    for (const ProfiledRank& rank : logs_.ranks) {
      const auto fits =
          std::ranges::find_if(all, [&](const auto& group) { return alike(rank, *group.front()); });
      if (fits == all.end())
        all.push_back({&rank});
      else
        fits->push_back(&rank);
    }
    if (all.size() > 1) {
      found_.notes.push_back(
          fmt::format("the traces run {} different lists of kernels (stages of a "
                      "pipeline): only ranks with the same are compared",
                      all.size()));
    }
    return all;
  }

  void traces() {
    if (logs_.ranks.empty()) return;
    for (const auto& ranks : ranks_alike()) {
      if (ranks.size() >= 2) compare_ranks(ranks);
    }
    groups_of_collectives();
  }

  /// What one rank spends of its own, part by part; a finding names the part that stands out.
  void compare_ranks(const std::vector<const ProfiledRank*>& ranks) {
    std::vector<double> steps;
    for (const ProfiledRank* rank : ranks) steps.push_back(seconds(rank->wall().sum()));
    const double step = median(steps);
    struct OwnPart {
      RunClass which;
      const char *kind, *what;
    };
    constexpr OwnPart parts[] = {{RunClass::gemm, "gpu", "GEMM kernels of a step"},
                                 {RunClass::attention, "gpu", "attention kernels of a step"},
                                 {RunClass::memory_bound, "gpu", "memory-bound kernels of a step"},
                                 {RunClass::optimizer, "gpu", "the optimizer's kernels of a step"},
                                 {RunClass::host, "host", "GPU idle because the host is late"},
                                 {RunClass::data_loading, "data", "GPU waits for input data"},
                                 {RunClass::copies, "rank", "copies alone"}};
    std::map<std::string, std::vector<SlowPart>> by_rank;
    for (const OwnPart& part : parts) {
      const bool kernels = computes(part.which);
      AlikeParts own{.kind = part.kind, .what = part.what};
      for (const ProfiledRank* rank : ranks) {
        own.add(rank->name(),
                seconds(kernels ? rank->busy()[part.which] : rank->wall()[part.which]), rank->file);
      }
      // Kernels that hardly count in a step may differ without anyone waiting.
      const double largest = *std::ranges::max_element(own.values);
      if (largest < 0.01 * step) continue;
      if (!kernels || median(own.values) < least_share * step) own.whole = step;
      for (SlowPart& each : compared(own)) by_rank[each.name].push_back(std::move(each));
    }
    AlikeParts busy{.kind = "rank", .what = "time of a rank's own in a step: all but waiting"};
    busy.whole = step;
    for (const ProfiledRank* rank : ranks) {
      const ClassTimes wall = rank->wall();
      const Time waits = wall[RunClass::communication] + wall[RunClass::pipeline];
      busy.add(rank->name(), seconds(wall.sum() - waits), rank->file);
    }
    for (SlowPart& each : compared(busy)) {
      auto& own = by_rank[each.name];
      if (own.empty()) own.push_back(std::move(each));
    }
    for (auto& [name, own] : by_rank) add({merged(name, std::move(own), ranks)});
  }

  /// One finding for each rank: the part that loses most, the others as evidence.
  SlowPart merged(const std::string& name, std::vector<SlowPart> parts,
                  const std::vector<const ProfiledRank*>& ranks) const {
    std::ranges::stable_sort(parts, std::greater{}, &SlowPart::factor);
    SlowPart made = parts.front();
    const auto of_gpu = std::ranges::count(parts, "gpu", &SlowPart::kind);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      made.evidence += fmt::format("{}{} {:.2f} times", made.evidence.empty() ? "also " : ", ",
                                   parts[i].what, parts[i].factor);
    }
    if (of_gpu >= 2) {
      made.evidence += std::string{made.evidence.empty() ? "" : "; "} +
                       "several classes of kernels: the GPU's clock or power";
    }
    // Who waits for whom.
    std::vector<double> others;
    double own = 0;
    for (const ProfiledRank* rank : ranks) {
      const ClassTimes wall = rank->wall();
      const double waits = seconds(wall[RunClass::communication] + wall[RunClass::pipeline]);
      if (rank->name() == name)
        own = waits;
      else
        others.push_back(waits);
    }
    if (!others.empty() && median(others) > own) {
      made.evidence += fmt::format("{}the others are {} of a step in exposed communication, it {}",
                                   made.evidence.empty() ? "" : "; ",
                                   spelled_seconds(median(others)), spelled_seconds(own));
    }
    if (made.kind == "gpu") {
      made.statement = fmt::format(R"({{"kind": "gpu", "at": "nodeN/gpuM", "rate": {:.3g}}})",
                                   rate_of_kernels(name, ranks));
    }
    return made;
  }

  /// The rate of a GPU slows all of its kernels: that which loses what one class of them does.
  static double rate_of_kernels(const std::string& name,
                                const std::vector<const ProfiledRank*>& ranks) {
    std::vector<double> others;
    double own = 0;
    for (const ProfiledRank* rank : ranks) {
      const ClassTimes busy = rank->busy();
      double kernels = 0;
      for (const auto& each : run_class_words) {
        if (computes(each.value)) kernels += seconds(busy[each.value]);
      }
      if (rank->name() == name)
        own = kernels;
      else
        others.push_back(kernels);
    }
    return others.empty() || own <= 0 ? 1 : std::min(1.0, median(std::move(others)) / own);
  }

  /// The same call in different groups: the transfer is the shortest time that any member had.
  void groups_of_collectives() {
    struct ComparedCall {
      std::string kind;
      std::int64_t bytes = 0, ranks = 0;
      auto operator<=>(const ComparedCall&) const = default;
    };
    std::map<ComparedCall,
             std::map<std::string, std::map<std::pair<std::string, std::size_t>, double>>>
        calls;  // by members, then by step and ordinal
    for (const ProfiledRank& rank : logs_.ranks) {
      for (const ProfiledStep& step : rank.steps) {
        if (!step.used) continue;
        std::map<std::size_t, std::size_t> ordinals;
        for (const ProfiledCall& call : step.calls) {
          const CollectiveKey& key = rank.collectives[call.key];
          if (key.members.empty() || key.bytes <= 0) continue;
          auto& own = calls[{key.kind, key.bytes, key.ranks}][key.members];
          const std::pair at{step.name, ordinals[call.key]++};
          const double time = seconds(call.duration);
          const auto [place, added] = own.emplace(at, time);
          if (!added) place->second = std::min(place->second, time);
        }
      }
    }
    std::map<std::string, SlowPart> slow;
    for (const auto& [call, groups] : calls) {
      if (groups.size() < 2) continue;
      AlikeParts own{.kind = "link",
                     .what = fmt::format("{} of {} over {} ranks, by group", call.kind,
                                         format(Bytes{call.bytes}), call.ranks)};
      for (const auto& [members, times] : groups) {
        std::vector<double> all;
        for (const auto& [at, time] : times) all.push_back(time);
        own.add("ranks " + printable(members, 60), median(std::move(all)), "");
      }
      for (SlowPart& each : compared(own)) {
        each.evidence =
            "its shortest call of any member, so not waiting: a link or NIC of these ranks";
        each.statement = fmt::format(R"({{"kind": "nic", "at": "nodeN/nicM", "rate": {:.2f}}})",
                                     1 / each.factor);
        SlowPart& known = slow[each.name];
        if (each.confidence * each.factor > known.confidence * known.factor) known = each;
      }
    }
    for (auto& [name, each] : slow) found_.slow.push_back(std::move(each));
  }

  const DiagnosedLogs& logs_;
  Diagnosis found_;
};

}  // namespace

std::vector<Outlier> outliers_of(const std::vector<double>& values, bool rates, double whole) {
  std::vector<Outlier> found;
  if (values.size() < least_alike) return found;
  const auto count = static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<double> others = values;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const double usual = median(others);
    const double unit = whole > 0 ? whole : usual;
    if (unit <= 0) continue;
    const double spread = std::max(mad_to_deviation * mad_of(others, usual), least_spread * unit);
    const double beyond = rates ? usual - values[i] : values[i] - usual;
    if (beyond < least_share * unit || beyond < least_distance * spread) continue;
    // Spread and usual are of the count - 1 others; usual has an error of its own.
    const double of_usual = std::sqrt(1 + 1 / (count - 1));
    const double chance = count * tail_of_t(beyond / (spread * of_usual), count - 2);
    found.push_back({.index = i,
                     .usual = usual,
                     .spread = spread,
                     .distance = beyond / spread,
                     .confidence = std::clamp(1 - chance, 0.0, 0.9999)});
  }
  return found;
}

bool add_run_log(const std::string& file, const ProfileOptions& options, DiagnosedLogs& to) {
  constexpr std::size_t enough = std::size_t{1} << 20;
  std::error_code unknown;
  const bool folder = std::filesystem::is_directory(file, unknown);
  const std::string beginning = folder ? std::string{} : first_bytes(file, enough);
  if (is_profile(beginning)) {
    to.ranks.push_back(read_profiled_rank(file, options));
    return true;
  }
  if (!is_run_log(file, beginning)) {
    const std::string other = stranger(beginning);
    const bool compared = other.empty() || other.find("orrery diagnose") != std::string::npos;
    if (!compared) throw InputError{file, other};
    return false;
  }
  to.steps.push_back(read_run_log(file));
  return true;
}

Diagnosis diagnose(const DiagnosedLogs& logs) {
  return Diagnoser{logs}.run();
}

Json to_json(const Diagnosis& found) {
  Json slow = Json::array(), groups = Json::array();
  for (const SlowPart& each : found.slow) {
    slow.push_back({{"kind", each.kind},
                    {"name", each.name},
                    {"what", each.what},
                    {"factor", each.factor},
                    {"confidence", each.confidence},
                    {"value", each.value},
                    {"usual", each.usual},
                    {"evidence", or_null(each.evidence)},
                    {"files", or_null(each.files)},
                    {"perturbation", or_null(each.statement)}});
  }
  for (const ComparedGroup& each : found.groups) {
    groups.push_back({{"what", each.what},
                      {"parts", each.parts},
                      {"usual", each.usual},
                      {"spread", each.spread},
                      {"slowest", each.slowest},
                      {"slowest_name", each.slowest_name}});
  }
  return {{"command", "diagnose"},
          {"files", found.files},
          {"anything_slow", !found.slow.empty()},
          {"slow", std::move(slow)},
          {"groups", std::move(groups)},
          {"notes", found.notes}};
}

std::string text_of(const Diagnosis& found, int width, bool colour) {
  std::string text;
  if (found.slow.empty()) {
    text += toned("Nothing stands out", Tone::bold, colour) +
            "\n  no part is slow by 5 % or more and beyond the spread of the others\n";
  } else {
    text += toned("Slow", Tone::bold, colour) + "\n";
  }
  const auto columns = static_cast<std::size_t>(std::max(width, 40)) - 6;
  for (const SlowPart& each : found.slow) {
    const std::string sure =
        fmt::format("{:.{}f} %", 100 * each.confidence, each.confidence > 0.99 ? 2 : 0);
    text += fmt::format("  {} {}: {:.2f} times, {} against {}; {} sure\n", each.kind,
                        toned(printable(each.name), Tone::bad, colour), each.factor, each.value,
                        each.usual, sure);
    std::string more = each.what;
    if (!each.evidence.empty()) more += "; " + each.evidence;
    if (!each.files.empty()) more += "; " + each.files;
    for (const std::string& line : wrapped(printable(more), columns))
      text += "      " + line + "\n";
    if (!each.statement.empty()) {
      text += fmt::format("      in a scenario: --set '/perturbations=[{}]'\n", each.statement);
    }
  }
  text += "\n" + toned("Compared", Tone::bold, colour) + "\n";
  TextTable table{{"<what", "parts", "usual", "spread", "slowest", "<"}};
  for (const ComparedGroup& each : found.groups) {
    table.add({each.what, fmt::format("{}", each.parts), each.usual, percent(each.spread),
               each.slowest, printable(each.slowest_name, 40)});
  }
  text += table.text(colour);
  for (const std::string& note : found.notes) {
    bool first = true;
    for (const std::string& line : wrapped("note: " + printable(note), columns + 2)) {
      text += (first ? "  " : "    ") + line + "\n";
      first = false;
    }
  }
  return text;
}

}  // namespace orrery::scenarios
