#include "scenarios/runback/profiled_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <regex>
#include <set>
#include <unordered_map>

#include "models/network/collectives/nccl_names.hpp"
#include "scenarios/runback/kineto_events.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"
#include "sim/statistics.hpp"

namespace orrery::scenarios {

namespace {

constexpr double extraordinary = 1.5;  // of a step, over the median
constexpr std::size_t least_for_warm_up = 3;

bool starts_with_words(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

bool has_words(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Time of_nanoseconds(std::int64_t count) {
  return Time{1000} * count;
}

/// Bytes of an element as PyTorch names its type: "c10::BFloat16", "Float", "float".
std::optional<std::int64_t> bytes_of_type(std::string_view type) {
  struct TypeBytes {
    std::string_view part;
    std::int64_t bytes;
  };
  constexpr TypeBytes known[] = {{"BFloat16", 2}, {"Half", 2}, {"Float8", 1},     {"Double", 8},
                                 {"double", 8},   {"Long", 8}, {"long", 8},       {"Float", 4},
                                 {"float", 4},    {"Int", 4},  {"int", 4},        {"Byte", 1},
                                 {"Char", 1},     {"Bool", 1}, {"signed char", 1}};
  for (const TypeBytes& each : known) {
    if (has_words(type, each.part)) return each.bytes;
  }
  return std::nullopt;
}

/// The sizes in "[[8,4],[4,2],[]]": one list for each input.
std::vector<std::vector<std::int64_t>> sizes_in(const std::string& text) {
  std::vector<std::vector<std::int64_t>> lists;
  int depth = 0;
  std::int64_t number = -1;
  for (const char letter : text) {
    if (letter >= '0' && letter <= '9') {
      number = std::max<std::int64_t>(number, 0) * 10 + (letter - '0');
      if (number > std::int64_t{1} << 50) return {};
      continue;
    }
    if (number >= 0 && !lists.empty()) lists.back().push_back(number);
    number = -1;
    if (letter == '[' && ++depth == 2) lists.emplace_back();
    if (letter == ']') --depth;
  }
  return lists;
}

/// The product that an operator of these inputs computes.
std::optional<MatrixShape> shape_of_product(std::string_view name, const std::string& text) {
  auto inputs = sizes_in(text);
  const bool adds = name == "aten::addmm" || name == "aten::baddbmm";
  if (adds && !inputs.empty()) inputs.erase(inputs.begin());
  if (inputs.size() < 2) return std::nullopt;
  const auto &a = inputs[0], &b = inputs[1];
  const std::size_t levels = has_words(name, "bmm") ? 3 : 2;
  if (a.size() != levels || b.size() != levels) return std::nullopt;
  return MatrixShape{
      .m = a[levels - 2], .n = b[levels - 1], .k = a[levels - 1], .batch = levels == 3 ? a[0] : 1};
}

/// Spans of the host by thread, each list by begin: which of them encloses a moment?
class EnclosingSpans {
 public:
  template <class Spans, class Chosen>
  EnclosingSpans(const Spans& spans, const Chosen& chosen) {
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (chosen(spans[i]))
        by_thread_[spans[i].thread].push_back({spans[i].begin, spans[i].end, i});
    }
    for (auto& [thread, own] : by_thread_) {
      std::ranges::sort(own, {}, &Enclosing::begin);
      std::int64_t latest = std::numeric_limits<std::int64_t>::min();
      for (Enclosing& each : own) each.latest_end = latest = std::max(latest, each.end);
    }
  }

  /// The innermost of the spans of the thread that hold the moment: its index in the list.
  std::optional<std::size_t> at(std::int32_t thread, std::int64_t moment) const {
    const auto own = by_thread_.find(thread);
    if (own == by_thread_.end()) return std::nullopt;
    auto after = std::upper_bound(
        own->second.begin(), own->second.end(), moment,
        [](std::int64_t time, const Enclosing& each) { return time < each.begin; });
    while (after != own->second.begin()) {
      --after;
      if (after->end >= moment) return after->index;
      if (after->latest_end < moment) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  struct Enclosing {
    std::int64_t begin = 0, end = 0;
    std::size_t index = 0;
    std::int64_t latest_end = 0;  // of it and all before
  };
  std::unordered_map<std::int32_t, std::vector<Enclosing>> by_thread_;
};

/// Classes on the timeline, those of which only waiting is told apart included.
enum class BusyLane : std::uint8_t {
  gemm,
  attention,
  optimizer,
  memory_bound,
  communication,
  pipeline,
  input,  // a copy to the GPU outside the optimizer
  copies,
  idle
};
constexpr int lane_count = 8;

/// A lane's class while no lane before it in the list is busy.
constexpr RunClass classes_of_lanes[lane_count] = {
    RunClass::gemm,          RunClass::attention, RunClass::optimizer,    RunClass::memory_bound,
    RunClass::communication, RunClass::pipeline,  RunClass::data_loading, RunClass::copies};

BusyLane busy_lane_of(RunClass which) {
  for (int i = 0; i < lane_count; ++i) {
    if (classes_of_lanes[i] == which) return static_cast<BusyLane>(i);
  }
  return BusyLane::memory_bound;
}

struct StepWindow {
  std::string name;
  std::int64_t begin = 0, end = 0;  // on the host
};

class ProfileAnalysis {
 public:
  ProfileAnalysis(const std::string& path, const ProfileOptions& options)
      : options_{options}, trace_{read_kineto_trace(path)} {
    rank_.file = path;
  }

  ProfiledRank run() {
    describe();
    if (trace_.device.empty()) take_operators();
    if (trace_.device.empty()) {
      throw InputError{rank_.file,
                       "holds neither kernels of a GPU nor operators; record it with "
                       "ProfilerActivity.CUDA"};
    }
    keep_one_device();
    std::ranges::stable_sort(trace_.device, {}, &DeviceEvent::begin);
    classify();
    find_steps();
    attribute();
    tally();
    leave_out();
    shapes_and_kernels();
    return std::move(rank_);
  }

 private:
  void describe() {
    rank_.rank = trace_.rank;
    rank_.world = trace_.world;
    rank_.device = trace_.gpu;
    rank_.device_memory = Bytes{trace_.gpu_memory};
    rank_.host = trace_.host;
    rank_.events = trace_.events;
    if (rank_.rank) return;
    const std::string file = std::filesystem::path{rank_.file}.filename().string();
    static const std::regex numbered{R"(rank[-_ ]?0*(\d{1,7}))", std::regex::icase};
    std::smatch found;
    if (std::regex_search(file, found, numbered)) rank_.rank = std::stoll(found[1].str());
  }

  /// Without a GPU's events the operators of each thread that compute themselves are what runs:
  /// innermost ones, and those that spend most of their time outside the operators they call, as
  /// aten::addmm, which first copies a bias.
  void take_operators() {
    auto& all = trace_.operators;
    std::ranges::sort(all, [](const KinetoSpan& a, const KinetoSpan& b) {
      return std::tuple{a.thread, a.begin, -a.end} < std::tuple{b.thread, b.begin, -b.end};
    });
    const std::vector<double> called = time_in_called(all);
    const KinetoSpan* taken = nullptr;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const KinetoSpan& own = all[i];
      if (taken && taken->thread == own.thread && own.begin < taken->end) continue;
      const bool calls =
          i + 1 < all.size() && all[i + 1].thread == own.thread && all[i + 1].begin < own.end;
      const std::string& name = trace_.names[own.name];
      // Nodes of the graph and functions in Python have no namespace of operators.
      const bool computes = has_words(name, "::") && !starts_with_words(name, "autograd::") &&
                            2 * called[i] < static_cast<double>(own.end - own.begin);
      if (calls && !computes) continue;
      taken = &own;
      DeviceEvent made;
      static_cast<KinetoSpan&>(made) = own;
      made.correlation = static_cast<std::int64_t>(i);
      trace_.launches[made.correlation] = own;
      trace_.device.push_back(made);
    }
    if (!trace_.device.empty()) {
      rank_.notes.push_back(
          "no kernels of a GPU in it: the operators that compute themselves are taken as kernels");
    }
  }

  /// Of each of these, sorted by thread and begin: the time in operators that it calls itself.
  static std::vector<double> time_in_called(const std::vector<KinetoSpan>& all) {
    std::vector<double> called(all.size());
    std::vector<std::size_t> open;  // those that hold the present one, outermost first
    for (std::size_t i = 0; i < all.size(); ++i) {
      const KinetoSpan& own = all[i];
      while (!open.empty() &&
             (all[open.back()].thread != own.thread || all[open.back()].end <= own.begin)) {
        open.pop_back();
      }
      if (!open.empty()) called[open.back()] += static_cast<double>(own.end - own.begin);
      open.push_back(i);
    }
    return called;
  }

  void keep_one_device() {
    std::map<std::int32_t, std::size_t> events;
    for (const DeviceEvent& each : trace_.device) ++events[each.device];
    if (events.size() < 2) return;
    const std::int32_t most =
        std::ranges::max_element(events, {}, [](const auto& each) { return each.second; })->first;
    std::erase_if(trace_.device, [&](const DeviceEvent& each) { return each.device != most; });
    rank_.notes.push_back(
        fmt::format("kernels of {} devices in one trace; only those of device {} "
                    "are counted",
                    events.size(), most));
  }

  const KinetoSpan* launch_of(const DeviceEvent& event) const {
    const auto found = trace_.launches.find(event.correlation);
    return found == trace_.launches.end() ? nullptr : &found->second;
  }

  void classify() {
    const auto named = [&](std::string_view with) {
      return [this, with](const HostSpan& each) {
        return starts_with_words(trace_.names[each.name], with);
      };
    };
    const EnclosingSpans optimizers{trace_.annotations, named("Optimizer.step#")};
    const EnclosingSpans calls{trace_.annotations, named("nccl:")};
    std::unordered_map<NameId, RunClass> known;
    classes_.reserve(trace_.device.size());
    for (std::size_t i = 0; i < trace_.device.size(); ++i) {
      const DeviceEvent& event = trace_.device[i];
      const std::string& name = trace_.names[event.name];
      if (!known.contains(event.name)) known[event.name] = class_of_kernel(name);
      RunClass which = known[event.name];
      const KinetoSpan* const launch = launch_of(event);
      const bool updates = launch && optimizers.at(launch->thread, launch->begin);
      if (event.kind != DeviceEvent::Kind::kernel) {
        const bool enters = has_words(name, "HtoD") && !updates;
        which = enters ? RunClass::data_loading : RunClass::copies;
      } else if (which == RunClass::communication) {
        which = add_call(i, launch, calls);
      } else if (updates) {
        which = RunClass::optimizer;
      }
      classes_.push_back(which);
    }
  }

  /// Notes a collective, and tells transfers between stages from the others.
  RunClass add_call(std::size_t event, const KinetoSpan* launch, const EnclosingSpans& calls) {
    const DeviceEvent& own = trace_.device[event];
    const std::string& kernel = trace_.names[own.name];
    CollectiveKey key{.kind = "nccl", .group = {}};
    if (const auto named = models::named_by_kernel(kernel)) key.kind = named->collective;
    if (own.call >= 0) {
      const StatedCall& stated = trace_.calls[static_cast<std::size_t>(own.call)];
      key.kind = models::collective_named(stated.name);
      key.group = stated.description.empty() || stated.description == "undefined"
                      ? stated.group
                      : stated.description;
      key.ranks = stated.ranks;
      key.members = stated.members;
      const auto each = bytes_of_type(stated.type);
      if (each && std::max(stated.in, stated.out) >= 0) {
        key.bytes = (Bytes{*each} * std::max(stated.in, stated.out)).count();
      }
    } else if (const auto inside =
                   launch ? calls.at(launch->thread, launch->begin) : std::nullopt) {
      const HostSpan& annotation = trace_.annotations[*inside];
      key.kind = models::collective_named(trace_.names[annotation.name].substr(5));
      const auto inputs = sizes_in(trace_.names[annotation.sizes]);
      const auto each = bytes_of_type(trace_.names[annotation.types]);
      if (each && !inputs.empty() && !inputs.front().empty()) {
        Bytes all{*each};
        for (const std::int64_t size : inputs.front()) all = all * std::max<std::int64_t>(size, 1);
        key.bytes = all.count();
      }
    }
    if (key.kind == "send" || key.kind == "recv" || key.kind == "coalesced") {
      key.kind = "send_receive";
    }
    const auto [at, added] = keys_.emplace(key, rank_.collectives.size());
    if (added) rank_.collectives.push_back(key);
    calls_.push_back({event, at->second});
    return key.kind == "send_receive" && !of_context(key.group) ? RunClass::pipeline
                                                                : RunClass::communication;
  }

  /// Rings of context parallelism send and receive, too.
  static bool of_context(const std::string& group) {
    return has_words(group, "context") || has_words(group, "CONTEXT") || has_words(group, "cp");
  }

  void find_steps() {
    std::vector<StepWindow> windows = marked_windows();
    if (windows.empty()) {
      std::int64_t begin = trace_.device.front().begin, end = begin;
      for (const DeviceEvent& each : trace_.device) {
        end = std::max(end, each.end);
        if (const KinetoSpan* const launch = launch_of(each))
          begin = std::min(begin, launch->begin);
      }
      windows.push_back({"the whole trace", begin, end});
      rank_.steps_by = "the whole trace";
      rank_.notes.push_back(
          "no ProfilerStep# and no optimizer steps in it: the whole trace is taken as one step; "
          "name an annotation that begins each step with --step NAME" +
          repeated_annotations());
    }
    place(windows);
  }

  std::vector<StepWindow> windows_of(const std::function<bool(std::string_view)>& chosen) const {
    std::vector<StepWindow> windows;
    for (const HostSpan& each : trace_.annotations) {
      const std::string& name = trace_.names[each.name];
      if (chosen(name)) windows.push_back({name, each.begin, each.end});
    }
    std::ranges::stable_sort(windows, {}, &StepWindow::begin);
    return windows;
  }

  /// From each mark to the next; the last begins a step that the trace may cut off.
  static std::vector<StepWindow> between(std::vector<StepWindow> marks) {
    for (std::size_t i = 0; i + 1 < marks.size(); ++i) marks[i].end = marks[i + 1].begin;
    for (std::size_t i = 0; i < marks.size(); ++i) marks[i].name = fmt::format("step {}", i + 1);
    return marks;
  }

  std::vector<StepWindow> marked_windows() {
    if (!options_.step_mark.empty()) {
      auto marks = windows_of(
          [&](std::string_view name) { return starts_with_words(name, options_.step_mark); });
      if (marks.empty()) {
        throw InputError{"--step", fmt::format("no annotation of {} begins with '{}'{}", rank_.file,
                                               options_.step_mark, repeated_annotations())};
      }
      rank_.steps_by = options_.step_mark;
      return between(std::move(marks));
    }
    auto own =
        windows_of([](std::string_view name) { return starts_with_words(name, "ProfilerStep#"); });
    if (!own.empty()) {
      rank_.steps_by = "ProfilerStep#";
      return own;
    }
    std::map<std::string, std::size_t> optimizers;
    for (const HostSpan& each : trace_.annotations) {
      const std::string& name = trace_.names[each.name];
      if (starts_with_words(name, "Optimizer.step#")) ++optimizers[name];
    }
    const auto most =
        std::ranges::max_element(optimizers, {}, [](const auto& each) { return each.second; });
    if (most == optimizers.end() || most->second < 2) return {};
    rank_.steps_by = most->first;
    auto marks = between(windows_of([&](std::string_view name) { return name == most->first; }));
    marks.pop_back();  // cut off
    rank_.notes.push_back(
        fmt::format("no ProfilerStep# in it: a step is from one {} to the next", most->first));
    return marks;
  }

  /// "; it repeats: 'train_step' (12 times)": the annotations that cover most of the trace.
  std::string repeated_annotations() const {
    std::map<std::string, std::pair<double, std::int64_t>> found;
    for (const HostSpan& each : trace_.annotations) {
      const std::string& name = trace_.names[each.name];
      if (starts_with_words(name, "nccl:")) continue;
      auto& [time, count] = found[name];
      time += static_cast<double>(each.end - each.begin);
      ++count;
    }
    std::vector<std::tuple<double, std::int64_t, std::string>> rows;
    for (const auto& [name, own] : found) {
      if (own.second > 1) rows.emplace_back(own.first, own.second, name);
    }
    std::ranges::sort(rows, std::greater{});
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 3); ++i) {
      text += fmt::format("{} '{}' ({} times)", text.empty() ? "; these repeat:" : ",",
                          printable(std::get<2>(rows[i]), 60), std::get<1>(rows[i]));
    }
    return text;
  }

  /// Steps on the GPU: from the first event launched in one to the first launched in the next.
  void place(const std::vector<StepWindow>& windows) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> begins(windows.size() + 1, none);
    std::int64_t last_end = 0;
    std::size_t launched = 0;
    for (const DeviceEvent& each : trace_.device) {
      const KinetoSpan* const launch = launch_of(each);
      if (!launch) continue;
      ++launched;
      const auto after = std::ranges::upper_bound(windows, launch->begin, {}, &StepWindow::begin);
      if (after == windows.begin()) continue;
      std::size_t at = static_cast<std::size_t>(after - windows.begin()) - 1;
      if (at + 1 == windows.size() && launch->begin > windows[at].end) ++at;
      begins[at] = std::min(begins[at], each.begin);
      if (at + 1 == windows.size()) last_end = std::max(last_end, each.end);
    }
    const bool by_launches = 2 * launched > trace_.device.size();
    begins.back() = begins.back() == none ? last_end : std::min(begins.back(), last_end);
    const bool in_order = std::ranges::is_sorted(begins) && begins[windows.size() - 1] != none;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const bool usable = by_launches && in_order;
      const std::int64_t begin = usable ? begins[i] : windows[i].begin;
      const std::int64_t end = usable ? begins[i + 1] : windows[i].end;
      if (end <= begin) continue;
      ProfiledStep step;
      step.name = windows[i].name;
      step.begin = of_nanoseconds(begin);
      step.duration = of_nanoseconds(end - begin);
      rank_.steps.push_back(std::move(step));
      edges_.push_back(begin);
      ends_.push_back(end);
    }
    if (rank_.steps.empty()) {
      throw InputError{rank_.file,
                       fmt::format("no kernel runs inside a step ({})", rank_.steps_by)};
    }
  }

  /// The step that holds a moment.
  std::optional<std::size_t> step_at(std::int64_t moment) const {
    const auto after = std::ranges::upper_bound(edges_, moment);
    if (after == edges_.begin()) return std::nullopt;
    const auto at = static_cast<std::size_t>(after - edges_.begin()) - 1;
    return moment < ends_[at] ? std::optional{at} : std::nullopt;
  }

  /// Adds a stretch of time, cut where steps begin and end.
  void add(std::int64_t begin, std::int64_t end, RunClass which) {
    auto at = std::ranges::upper_bound(edges_, begin);
    if (at != edges_.begin()) --at;
    for (; at != edges_.end() && *at < end; ++at) {
      const auto step = static_cast<std::size_t>(at - edges_.begin());
      const std::int64_t from = std::max(begin, *at), to = std::min(end, ends_[step]);
      if (to > from) rank_.steps[step].wall[which] += of_nanoseconds(to - from);
    }
  }

  /// Every moment of the GPU's timeline counts for the first busy lane.
  void attribute() {
    struct BusyEdge {
      std::int64_t time;
      std::int8_t lane, change;
    };
    std::vector<BusyEdge> edges;
    edges.reserve(2 * trace_.device.size());
    for (std::size_t i = 0; i < trace_.device.size(); ++i) {
      const auto lane = static_cast<std::int8_t>(busy_lane_of(classes_[i]));
      if (trace_.device[i].end <= trace_.device[i].begin) continue;
      edges.push_back({trace_.device[i].begin, lane, 1});
      edges.push_back({trace_.device[i].end, lane, -1});
    }
    std::ranges::sort(edges, {}, &BusyEdge::time);
    std::array<std::int64_t, lane_count> active{};
    std::int64_t before = edges_.front();
    const auto until = [&](std::int64_t now) {
      if (now <= before) return;
      for (int lane = 0; lane < lane_count; ++lane) {
        if (active[static_cast<std::size_t>(lane)] == 0) continue;
        add(before, now, classes_of_lanes[lane]);
        before = now;
        return;
      }
      add_idle(before, now);
      before = now;
    };
    for (const BusyEdge& each : edges) {
      until(each.time);
      active[static_cast<std::size_t>(each.lane)] += each.change;
    }
    until(ends_.back());
  }

  /// Idle time by what ended it: a launch that came late is the host's, or its data loader's.
  void add_idle(std::int64_t begin, std::int64_t end) {
    const auto next = std::ranges::lower_bound(trace_.device, end, {}, &DeviceEvent::begin);
    const KinetoSpan* const launch = next == trace_.device.end() ? nullptr : launch_of(*next);
    if (next == trace_.device.end() || (launch && launch->begin > begin)) {
      const std::int64_t late = launch ? std::min(launch->begin, end) : end;
      std::int64_t at = begin;
      for (const auto& [from, to] : loading()) {
        if (to <= at || from >= late) continue;
        if (from > at) add(at, from, RunClass::host);
        add(std::max(at, from), std::min(to, late), RunClass::data_loading);
        at = std::min(to, late);
      }
      if (at < end) add(at, end, RunClass::host);
      return;
    }
    add(begin, end, RunClass::other);
  }

  /// When the host is in a data loader, by begin, without overlaps.
  const std::vector<std::pair<std::int64_t, std::int64_t>>& loading() {
    if (loading_known_) return loading_;
    loading_known_ = true;
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (const HostSpan& each : trace_.annotations) {
      const std::string& name = trace_.names[each.name];
      if (has_words(name, "DataLoader") || has_words(name, "data_load") ||
          has_words(name, "dataloader") || has_words(name, "get_batch")) {
        all.emplace_back(each.begin, each.end);
      }
    }
    std::ranges::sort(all);
    for (const auto& each : all) {
      if (!loading_.empty() && each.first <= loading_.back().second) {
        loading_.back().second = std::max(loading_.back().second, each.second);
      } else {
        loading_.push_back(each);
      }
    }
    return loading_;
  }

  void tally() {
    for (std::size_t i = 0; i < trace_.device.size(); ++i) {
      const DeviceEvent& each = trace_.device[i];
      const auto step = step_at(each.begin);
      if (!step) continue;
      rank_.steps[*step].busy[classes_[i]] += of_nanoseconds(each.end - each.begin);
      ++rank_.steps[*step].kernels[static_cast<std::size_t>(classes_[i])];
    }
    for (const auto& [event, key] : calls_) {
      const DeviceEvent& each = trace_.device[event];
      if (const auto step = step_at(each.begin)) {
        rank_.steps[*step].calls.push_back(
            {key, of_nanoseconds(each.begin), of_nanoseconds(each.end - each.begin)});
      }
    }
  }

  void leave_out() {
    const std::size_t usual = rank_.steps.size() >= least_for_warm_up ? 1 : 0;
    const std::size_t skip = options_.skip.value_or(usual);
    if (skip >= rank_.steps.size()) {
      throw InputError{"--skip",
                       fmt::format("leaves no step: {} has {}", rank_.file, rank_.steps.size())};
    }
    std::vector<Time> times;
    for (std::size_t i = 0; i < rank_.steps.size(); ++i) {
      rank_.steps[i].used = i >= skip;
      if (i >= skip) times.push_back(rank_.steps[i].duration);
    }
    std::string left;
    const Time middle = median(times);
    for (std::size_t i = skip; i < rank_.steps.size(); ++i) {
      ProfiledStep& step = rank_.steps[i];
      if (ratio(step.duration, middle) <= extraordinary) continue;
      step.used = false;
      left += fmt::format("{}{}", left.empty() ? "" : ", ", step.name);
    }
    if (skip > 0) {
      rank_.notes.push_back(fmt::format("{} of {} steps left out as warm-up: {}{}", skip,
                                        rank_.steps.size(), rank_.steps.front().name,
                                        skip > 1 ? " and after" : ""));
    }
    if (!left.empty()) {
      rank_.notes.push_back(
          fmt::format("left out, over {} times the median: {}", extraordinary, left));
    }
  }

  void shapes_and_kernels() {
    const EnclosingSpans products{trace_.products, [](const HostSpan&) { return true; }};
    std::map<std::pair<NameId, RunClass>, KernelTally> kernels;
    for (std::size_t i = 0; i < trace_.device.size(); ++i) {
      const DeviceEvent& each = trace_.device[i];
      const auto step = step_at(each.begin);
      if (!step || !rank_.steps[*step].used) continue;
      const Time time = of_nanoseconds(each.end - each.begin);
      KernelTally& tally = kernels[{each.name, classes_[i]}];
      tally.count += 1;
      tally.total += time;
      const KinetoSpan* const launch = launch_of(each);
      if (classes_[i] != RunClass::gemm || !launch) continue;
      const auto inside = products.at(launch->thread, launch->begin);
      if (!inside) continue;
      const HostSpan& product = trace_.products[*inside];
      const auto shape = shape_of_product(trace_.names[product.name], trace_.names[product.sizes]);
      if (!shape) continue;
      KernelTally& own = rank_.shapes[shape->sorted()];
      // A product may be several kernels (split k): it counts once.
      own.count += products_seen_.insert(*inside).second ? 1 : 0;
      own.total += time;
    }
    for (const auto& [key, own] : kernels) {
      rank_.kernels.push_back({trace_.names[key.first], key.second, own});
    }
    std::ranges::stable_sort(rank_.kernels, std::greater{},
                             [](const NamedKernel& each) { return each.tally.total; });
  }

  const ProfileOptions& options_;
  KinetoTrace trace_;
  ProfiledRank rank_;
  std::vector<RunClass> classes_;  // as trace_.device
  std::map<CollectiveKey, std::size_t> keys_;
  std::vector<std::pair<std::size_t, std::size_t>> calls_;  // event, key
  std::vector<std::int64_t> edges_, ends_;                  // of steps
  std::vector<std::pair<std::int64_t, std::int64_t>> loading_;
  bool loading_known_ = false;
  std::set<std::size_t> products_seen_;
};

/// The mean over the middle half of the used steps, by duration: all of three or fewer.
ClassTimes mean_of_middle(const ProfiledRank& rank, const ClassTimes ProfiledStep::*times) {
  std::vector<const ProfiledStep*> used;
  for (const ProfiledStep& each : rank.steps) {
    if (each.used) used.push_back(&each);
  }
  std::ranges::stable_sort(used, {}, [](const ProfiledStep* each) { return each->duration; });
  const std::size_t trim = used.size() > 3 ? used.size() / 4 : 0;
  const auto count = static_cast<double>(used.size() - 2 * trim);
  ClassTimes mean;
  for (std::size_t i = trim; i + trim < used.size(); ++i) {
    for (const auto& each : run_class_words) {
      mean[each.value] += scaled((used[i]->*times)[each.value], 1 / count);
    }
  }
  return mean;
}

}  // namespace

MatrixShape MatrixShape::sorted() const {
  std::array<std::int64_t, 3> sizes{m, n, k};
  std::ranges::sort(sizes);
  return {.m = sizes[0], .n = sizes[1], .k = sizes[2], .batch = batch};
}

std::size_t ProfiledRank::used_steps() const {
  return static_cast<std::size_t>(std::ranges::count(steps, true, &ProfiledStep::used));
}

std::string ProfiledRank::name() const {
  return rank ? fmt::format("rank {}", *rank) : std::filesystem::path{file}.filename().string();
}

std::vector<double> ProfiledRank::step_seconds() const {
  std::vector<double> all;
  for (const ProfiledStep& each : steps) {
    if (each.used) all.push_back(seconds(each.duration));
  }
  return all;
}

ClassTimes ProfiledRank::wall() const {
  return mean_of_middle(*this, &ProfiledStep::wall);
}

ClassTimes ProfiledRank::busy() const {
  return mean_of_middle(*this, &ProfiledStep::busy);
}

double ProfiledRank::kernels_per_step(RunClass which) const {
  double all = 0;
  for (const ProfiledStep& each : steps) {
    if (each.used) all += static_cast<double>(each.kernels[static_cast<std::size_t>(which)]);
  }
  return all / static_cast<double>(used_steps());
}

bool is_profile(std::string_view beginning) {
  const std::size_t first = beginning.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos) return false;
  const bool list = beginning[first] == '[' && has_words(beginning, "\"ph\"");
  const bool object = beginning[first] == '{' && (has_words(beginning, "\"traceEvents\"") ||
                                                  has_words(beginning, "\"deviceProperties\"") ||
                                                  has_words(beginning, "\"distributedInfo\""));
  return list || object;
}

ProfiledRank read_profiled_rank(const std::string& path, const ProfileOptions& options) {
  return ProfileAnalysis{path, options}.run();
}

}  // namespace orrery::scenarios
