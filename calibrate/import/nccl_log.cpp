// Reads NCCL_DEBUG=INFO logs: what NCCL decided, not how fast it was. Rings, trees, channels,
// transports, and with NCCL_DEBUG_SUBSYS=TUNING the algorithm and protocol chosen for each size.

#include <algorithm>
#include <map>

#include "calibrate/import/log_lines.hpp"

namespace orrery::calibrate {

namespace {

/// "12" of "12 coll channels".
std::optional<std::int64_t> number_before(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const auto before = words(text.substr(0, at));
  return before.empty() ? std::nullopt : to_integer(before.back());
}

std::optional<std::int64_t> number_after(std::string_view text, std::string_view mark) {
  const auto rest = after(text, mark);
  const auto found = rest ? words(*rest) : std::vector<std::string_view>{};
  return found.empty() ? std::nullopt : to_integer(found.front());
}

class NcclLogReader {
 public:
  explicit NcclLogReader(const std::string& file) : file_{file} {}

  Imported read(const std::vector<LogLine>& lines) {
    for (const LogLine& line : lines) {
      if (const auto version = after(line.text, "NCCL version ")) version_ = *version;
      const auto said = after(line.text, "NCCL INFO ");
      if (said) take(line, *said);
      if (!said && !words(line.text).empty() && !contains(line.text, "NCCL version")) {
        imported_.unknown.push_back({line.number, std::string{line.text}});
      }
    }
    return finished();
  }

 private:
  void take(const LogLine& line, std::string_view said) {
    if (const auto channels = number_before(said, " coll channels")) {
      channels_ = *channels;
      channels_place_ = place_of(file_, line);
    }
    if (const auto count = number_after(said, " nranks ")) ranks_ = *count;
    if (const auto count = number_after(said, " nNodes ")) nodes_ = *count;
    if (said.starts_with("Channel ")) channel(said);
    if (said.starts_with("Trees ")) trees_ = std::max(trees_, std::ranges::count(said, '['));
    if (const auto choice = after(said, " -> Algo ")) chosen(line, said, *choice);
  }

  /// `Channel 00/12 :    0   1   2   3`, or `Channel 00 : 2[88000] -> 3[8a000] via P2P/IPC`
  void channel(std::string_view said) {
    if (const auto way = after(said, " via ")) {
      ++transports_[std::string{words(*way).front()}];
      return;
    }
    const auto order = after(said, ":");
    if (!order || !contains(said.substr(0, said.find(':')), "/")) return;
    Json ring = Json::array();
    for (const std::string_view word : words(*order)) {
      if (const auto rank = to_integer(word)) ring.push_back(*rank);
    }
    if (!ring.empty()) rings_.push_back(std::move(ring));
  }

  /// `AllReduce: 8388608 Bytes -> Algo RING proto SIMPLE time 93.5`, numbers in older releases
  void chosen(const LogLine& line, std::string_view said, std::string_view choice) {
    const auto head = words(said);
    const auto tail = words(choice);
    const auto bytes = head.size() > 1 ? to_integer(head[1]) : std::nullopt;
    if (!bytes || tail.size() < 3) return;
    Json entry{{"operation", std::string{head[0].substr(0, head[0].find(':'))}},
               {"bytes", *bytes},
               {"algorithm", named(tail[0], {"tree", "ring", "collnet_direct", "collnet_chain",
                                             "nvls", "nvls_tree", "pat"})},
               {"protocol", named(tail[2], {"ll", "ll128", "simple"})},
               {"line", line.number}};
    tuning_.push_back(std::move(entry));
  }

  /// The name of a value of NCCL's enumeration, or the word itself in lower case.
  static std::string named(std::string_view word, std::vector<std::string_view> names) {
    const auto index = to_integer(word);
    if (index && *index >= 0 && *index < static_cast<std::int64_t>(names.size())) {
      return std::string{names[static_cast<std::size_t>(*index)]};
    }
    return in_lower_case(word);
  }

  Imported finished() {
    imported_.file = file_;
    Json transports = Json::object();
    for (const auto& [way, count] : transports_) transports[way] = count;
    imported_.facts = {{"version", version_.empty() ? Json{} : Json(version_)},
                       {"ranks", ranks_ > 0 ? Json(ranks_) : Json{}},
                       {"nodes", nodes_ > 0 ? Json(nodes_) : Json{}},
                       {"channels", channels_ > 0 ? Json(channels_) : Json{}},
                       {"rings", rings_},
                       {"trees", trees_},
                       {"transports", std::move(transports)},
                       {"chosen", tuning_}};
    if (channels_ > 0) {
      Sample sample;
      sample.quantity = "collective_channels";
      sample.value = static_cast<double>(channels_);
      if (ranks_ > 0) sample.ranks = ranks_;
      if (nodes_ > 0) sample.nodes = nodes_;
      sample.software = version_.empty() ? "NCCL" : "NCCL " + version_;
      sample.place = channels_place_;
      imported_.samples.push_back(std::move(sample));
    }
    return std::move(imported_);
  }

  const std::string& file_;
  Imported imported_;
  std::string version_, channels_place_;
  std::int64_t channels_ = 0, ranks_ = 0, nodes_ = 0;
  std::ptrdiff_t trees_ = 0;
  Json rings_ = Json::array(), tuning_ = Json::array();
  std::map<std::string, int> transports_;
};

}  // namespace

Imported read_nccl_log(const std::vector<LogLine>& lines, const std::string& file) {
  return NcclLogReader{file}.read(lines);
}

}  // namespace orrery::calibrate
