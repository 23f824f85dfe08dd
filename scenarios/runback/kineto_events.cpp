#include "scenarios/runback/kineto_events.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <istream>
#include <limits>
#include <string_view>

#include "sim/errors.hpp"
#include "sim/input/document.hpp"
#include "sim/input/text.hpp"
#include "sim/input/unpacked_file.hpp"

namespace orrery::scenarios {

namespace {

/// Where in the document the parser is.
enum class ParsedPlace : std::uint8_t {
  root,
  events,
  event,
  arguments,
  distributed,
  devices,
  gpu,
  other
};

struct EventText {
  std::string phase, category, name;
  double begin = NAN, duration = NAN;
  std::int64_t process = 0, thread = 0, device = 0, stream = 0, correlation = -1;
  StatedCall call;
  std::string sizes, types;

  void clear() { *this = {}; }
};

bool name_starts(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

bool name_holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool multiplies(std::string_view name) {
  constexpr std::string_view known[] = {"aten::mm",      "aten::addmm",      "aten::bmm",
                                        "aten::baddbmm", "aten::_scaled_mm", "aten::_int_mm"};
  for (const std::string_view each : known) {
    if (name == each) return true;
  }
  return false;
}

/// Builds the trace while the text is parsed; nothing else of it is kept.
class KinetoParser : public nlohmann::json_sax<Json> {
 public:
  KinetoParser(const std::string& path, std::istream& text, KinetoTrace& into)
      : path_{path}, text_{text}, into_{into} {}

  bool null() override { return value("null"); }
  bool boolean(bool given) override { return value(given ? "true" : "false"); }
  bool number_integer(number_integer_t given) override { return number(given); }
  bool number_unsigned(number_unsigned_t given) override {
    constexpr number_unsigned_t most = std::uint64_t{1} << 62;
    return number(static_cast<std::int64_t>(std::min(given, most)));
  }
  bool number_float(number_float_t given, const string_t& text) override {
    if (copying_ > 0) return value(text);
    if (!places_.empty() && place() == ParsedPlace::event) {
      if (key_ == "ts") event_.begin = given;
      if (key_ == "dur") event_.duration = given;
    }
    return true;
  }
  bool string(string_t& given) override {
    if (copying_ > 0) return value("\"" + given + "\"");
    text(given);
    return true;
  }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    if (copying_ > 0) return value("{}");
    ParsedPlace next = ParsedPlace::other;
    if (places_.empty()) next = ParsedPlace::root;
    if (!places_.empty()) {
      if (place() == ParsedPlace::root && key_ == "distributedInfo")
        next = ParsedPlace::distributed;
      if (place() == ParsedPlace::events) next = ParsedPlace::event;
      if (place() == ParsedPlace::devices && into_.gpu.empty()) next = ParsedPlace::gpu;
      if (place() == ParsedPlace::event && key_ == "args") next = ParsedPlace::arguments;
    }
    if (next == ParsedPlace::event) event_.clear();
    enter(next);
    return true;
  }
  bool key(string_t& name) override {
    if (copying_ == 0) key_.swap(name);
    return true;
  }
  bool end_object() override {
    if (copying_ > 0) return true;
    const ParsedPlace done = leave();
    if (done == ParsedPlace::event) finish();
    return true;
  }
  bool start_array(std::size_t) override {
    if (copying_ > 0 || (!places_.empty() && place() == ParsedPlace::arguments && copied())) {
      if (copying_ > 0) separate();
      if (copying_ == 0) copy_.clear();
      copy_ += '[';
      ++copying_;
      return true;
    }
    ParsedPlace next = ParsedPlace::other;
    if (places_.empty()) next = ParsedPlace::events;  // a bare list, as Chrome accepts it
    if (!places_.empty() && place() == ParsedPlace::root) {
      if (key_ == "traceEvents") next = ParsedPlace::events;
      if (key_ == "deviceProperties") next = ParsedPlace::devices;
    }
    if (next == ParsedPlace::events) has_events_ = true;
    enter(next);
    return true;
  }
  bool end_array() override {
    if (copying_ > 0) {
      copy_ += ']';
      if (--copying_ == 0) copied_to(std::move(copy_));
      return true;
    }
    leave();
    return true;
  }
  bool parse_error(std::size_t at, const std::string& token,
                   const nlohmann::detail::exception&) override {
    if (text_.peek() == std::istream::traits_type::eof()) {
      throw InputError{path_,
                       fmt::format("is cut off after {} bytes: the profiler had not finished "
                                   "writing it",
                                   at > 0 ? at - 1 : 0)};
    }
    throw InputError{path_, fmt::format("byte {}: is not JSON, at '{}'", at, printable(token, 40))};
  }

  bool has_events() const { return has_events_; }

 private:
  ParsedPlace place() const { return places_.back(); }
  void enter(ParsedPlace next) {
    constexpr std::size_t most_levels = 256;
    if (places_.size() >= most_levels) {
      throw InputError{path_, fmt::format("has more than {} levels of JSON", most_levels)};
    }
    places_.push_back(next);
  }
  ParsedPlace leave() {
    const ParsedPlace done = places_.back();
    places_.pop_back();
    return done;
  }

  void separate() {
    if (!copy_.empty() && copy_.back() != '[') copy_ += ',';
  }
  bool value(std::string_view text) {
    if (copying_ == 0) return true;
    separate();
    copy_ += text;
    return true;
  }

  /// Whether a list among an event's arguments is kept as text.
  bool copied() const {
    return key_ == "Input Dims" || key_ == "Input type" || key_ == "Process Group Ranks";
  }
  void copied_to(std::string list) {
    if (key_ == "Input Dims")
      event_.sizes = std::move(list);
    else if (key_ == "Input type")
      event_.types = std::move(list);
    else
      event_.call.members = std::move(list);
  }

  bool number(std::int64_t given) {
    if (copying_ > 0) return value(fmt::format("{}", given));
    switch (places_.empty() ? ParsedPlace::other : place()) {
      case ParsedPlace::event:
        if (key_ == "ts") event_.begin = static_cast<double>(given);
        if (key_ == "dur") event_.duration = static_cast<double>(given);
        if (key_ == "pid") event_.process = given;
        if (key_ == "tid") event_.thread = given;
        break;
      case ParsedPlace::arguments:
        if (key_ == "device") event_.device = given;
        if (key_ == "stream") event_.stream = given;
        if (key_ == "correlation") event_.correlation = given;
        if (key_ == "In msg nelems") event_.call.in = given;
        if (key_ == "Out msg nelems") event_.call.out = given;
        if (key_ == "Group size") event_.call.ranks = given;
        break;
      case ParsedPlace::distributed:
        if (key_ == "rank") into_.rank = given;
        if (key_ == "world_size") into_.world = given;
        break;
      case ParsedPlace::gpu:
        if (key_ == "totalGlobalMem") into_.gpu_memory = given;
        break;
      default:
        break;
    }
    return true;
  }

  void text(std::string& given) {
    switch (places_.empty() ? ParsedPlace::other : place()) {
      case ParsedPlace::root:
        if (key_ == "host_name" || key_ == "hostname") into_.host = given;
        break;
      case ParsedPlace::event:
        if (key_ == "ph")
          event_.phase.swap(given);
        else if (key_ == "cat")
          event_.category.swap(given);
        else if (key_ == "name")
          event_.name.swap(given);
        break;
      case ParsedPlace::arguments:
        if (key_ == "Collective name")
          event_.call.name.swap(given);
        else if (key_ == "dtype")
          event_.call.type.swap(given);
        else if (key_ == "Process Group Name")
          event_.call.group.swap(given);
        else if (key_ == "Process Group Description")
          event_.call.description.swap(given);
        else if (key_ == "Process Group Ranks")
          event_.call.members.swap(given);
        break;
      case ParsedPlace::gpu:
        if (key_ == "name") into_.gpu = given;
        break;
      default:
        break;
    }
  }

  /// A thread as a number of 31 bits; processes of one trace are few.
  static std::int32_t thread_of(const EventText& event) {
    const auto process = static_cast<std::uint64_t>(event.process);
    const auto thread = static_cast<std::uint64_t>(event.thread);
    return static_cast<std::int32_t>((process * 1000003 + thread) & 0x7fffffff);
  }

  void finish() {
    ++into_.events;
    EventText& event = event_;
    constexpr double farthest = 4e18 / 1e3;  // half of what 64 bits of nanoseconds tell apart
    if (event.phase != "X" || !(event.begin > -farthest) || !(event.duration >= 0) ||
        !(event.begin + event.duration < farthest)) {
      return;
    }
    KinetoSpan span;
    span.begin = std::llround(event.begin * 1e3);
    span.end = span.begin + std::llround(event.duration * 1e3);
    span.thread = thread_of(event);
    const std::string& cat = event.category;
    if (cat == "kernel" || cat == "Kernel")
      add_device(span, DeviceEvent::Kind::kernel);
    else if (cat == "gpu_memcpy" || cat == "Memcpy")
      add_device(span, DeviceEvent::Kind::copy);
    else if (cat == "gpu_memset" || cat == "Memset")
      add_device(span, DeviceEvent::Kind::fill);
    else if (cat == "cuda_runtime" || cat == "cuda_driver" || cat == "Runtime")
      add_launch(span);
    else if (cat == "user_annotation" || cat == "cpu_op" || cat == "Operator" || cat == "operator")
      add_host(span);
  }

  void add_device(const KinetoSpan& span, DeviceEvent::Kind kind) {
    DeviceEvent made;
    static_cast<KinetoSpan&>(made) = span;
    made.kind = kind;
    made.name = into_.names.id(event_.name);
    made.device = static_cast<std::int32_t>(event_.device);
    made.thread = static_cast<std::int32_t>(event_.stream);
    made.correlation = event_.correlation;
    if (!event_.call.name.empty() || event_.call.ranks > 0) {
      made.call = static_cast<std::int32_t>(into_.calls.size());
      into_.calls.push_back(std::move(event_.call));
    }
    if (into_.device.empty()) into_.operators = {};
    into_.device.push_back(made);
  }

  void add_launch(const KinetoSpan& span) {
    if (event_.correlation < 0) return;
    const std::string_view name = event_.name;
    if (!name_holds(name, "Launch") && !name_holds(name, "Memcpy") && !name_holds(name, "Memset"))
      return;
    KinetoSpan made = span;
    made.name = into_.names.id(event_.name);
    into_.launches.emplace(event_.correlation, made);
  }

  void add_host(const KinetoSpan& span) {
    const std::string_view name = event_.name;
    const bool annotates = event_.category == "user_annotation" ||
                           name_starts(name, "ProfilerStep#") ||
                           name_starts(name, "Optimizer.step#") || name_holds(name, "DataLoader") ||
                           name_starts(name, "nccl:") || name_starts(name, "gloo:");
    HostSpan made;
    static_cast<KinetoSpan&>(made) = span;
    if (annotates || multiplies(name)) {
      made.name = into_.names.id(event_.name);
      made.sizes = into_.names.id(event_.sizes);
      made.types = into_.names.id(event_.types);
      (annotates ? into_.annotations : into_.products).push_back(made);
      if (annotates) return;
    }
    if (!into_.device.empty()) return;
    made.name = into_.names.id(event_.name);
    into_.operators.push_back(made);
  }

  const std::string& path_;
  std::istream& text_;
  KinetoTrace& into_;
  std::vector<ParsedPlace> places_;
  std::string key_, copy_;
  int copying_ = 0;  // depth inside a list that is kept as text
  EventText event_;
  bool has_events_ = false;
};

/// Times from the first event on, as a trace's own clock begins anywhere.
/// Errors  more days between its events than picoseconds can count: InputError
void begin_at_zero(KinetoTrace& trace, const std::string& path) {
  constexpr auto none = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = none, last = std::numeric_limits<std::int64_t>::min();
  const auto each_span = [&](const auto& visit) {
    for (auto& each : trace.device) visit(each);
    for (auto& [correlation, each] : trace.launches) visit(each);
    for (auto& each : trace.annotations) visit(each);
    for (auto& each : trace.products) visit(each);
    for (auto& each : trace.operators) visit(each);
  };
  each_span([&](const KinetoSpan& each) {
    first = std::min(first, each.begin);
    last = std::max(last, each.end);
  });
  if (first == none) return;
  constexpr std::int64_t nanoseconds_of_day = 86'400'000'000'000;
  if ((last - first) / nanoseconds_of_day >= 100) {
    throw InputError{path, fmt::format("its events are {} days apart: it is damaged, or of "
                                       "several runs",
                                       (last - first) / nanoseconds_of_day)};
  }
  each_span([&](KinetoSpan& each) {
    each.begin -= first;
    each.end -= first;
  });
}

}  // namespace

NameId NameTable::id(const std::string& word) {
  const auto [at, added] = ids_.emplace(word, static_cast<NameId>(words_.size()));
  if (added) words_.push_back(&at->first);
  return at->second;
}

KinetoTrace read_kineto_trace(const std::string& path) {
  KinetoTrace trace;
  const auto file = unpacked_file(path);
  std::istream text{file.get()};
  text.exceptions(std::ios::badbit);
  KinetoParser parser{path, text, trace};
  Json::sax_parse(text, &parser);
  if (!parser.has_events()) throw InputError{path + ":/traceEvents", "missing"};
  begin_at_zero(trace, path);
  return trace;
}

}  // namespace orrery::scenarios
