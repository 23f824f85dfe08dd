// Reads NCCL_DEBUG=INFO logs: what NCCL decided, not how fast it was. Rings, trees, channels,
// transports, and with NCCL_DEBUG_SUBSYS=TUNING the algorithm and protocol chosen for each size. A
// job has several communicators, whose lines mix; the thread that printed a line tells them apart.
// Source  NCCL, src/init.cc and src/graph/connect.cc: `nranks` at the end of the initialisation in
//         all releases, `comm ... nRanks ... nNodes` before it since 2.20

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "calibrate/import/log_lines.hpp"
#include "sim/output/or_null.hpp"

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

/// What a thread said about the communicator that it is setting up.
struct ReportedCommunicator {
  std::string address;  // "0x5639e9f0e8c0", of the thread's process
  std::optional<std::int64_t> ranks, nodes, channels;
  std::string place;  // of the line that says how many channels, else ranks

  auto shape() const { return std::tuple{ranks, nodes, channels}; }
};

Json described(const ReportedCommunicator& each) {
  return {{"ranks", or_null(each.ranks)},
          {"nodes", or_null(each.nodes)},
          {"channels", or_null(each.channels)}};
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
    const std::size_t thread = line.text.find("NCCL INFO ");
    communicator(line, said, open_[std::string{line.text.substr(0, thread)}]);
    if (said.starts_with("Channel ")) channel(said);
    if (said.starts_with("Trees ")) trees_ = std::max(trees_, std::ranges::count(said, '['));
    if (const auto choice = after(said, " -> Algo ")) chosen(line, said, *choice);
  }

  /// Lines about a communicator, in the order of NCCL: `comm 0x1 rank 0 nRanks 24 nNodes 3` (since
  /// 2.20), `Channel 00/16 : 0 7 6`, `16 coll channels`, `comm 0x1 rank 0 nranks 24 ... Init
  /// COMPLETE`.
  void communicator(const LogLine& line, std::string_view said, ReportedCommunicator& open) {
    auto channels = number_before(said, " coll channels");
    if (!channels && said.starts_with("Channel ") && !contains(said, " via ")) {
      const auto count = after(said.substr(0, said.find(':')), "/");
      const auto first = count ? words(*count) : std::vector<std::string_view>{};
      if (!first.empty()) channels = to_integer(first.front());
    }
    if (channels && *channels > 0) {
      if (open.channels != channels) open.place = place_of(file_, line);
      open.channels = channels;
    }
    auto ranks = number_after(said, " nranks ");
    if (!ranks) ranks = number_after(said, " nRanks ");
    if (!ranks || *ranks < 1) return;
    const auto address = after(said, "comm ");
    std::string own{address && !words(*address).empty() ? words(*address).front() : ""};
    if (!open.address.empty() && open.address != own) close(open);
    open.address = std::move(own);
    open.ranks = ranks;
    if (open.place.empty()) open.place = place_of(file_, line);
    if (const auto nodes = number_after(said, " nNodes "); nodes && *nodes > 0) open.nodes = nodes;
    if (contains(said, "Init COMPLETE")) close(open);
  }

  void close(ReportedCommunicator& open) {
    const auto same = [&](const ReportedCommunicator& each) {
      return each.shape() == open.shape();
    };
    const bool known = std::ranges::any_of(communicators_, same);
    if (!known && (open.ranks || open.channels)) communicators_.push_back(open);
    open = {};
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
    for (auto& [thread, open] : open_) close(open);
    // First the largest, whose figures are those of the log as a whole.
    std::ranges::stable_sort(communicators_,
                             [](const ReportedCommunicator& a, const ReportedCommunicator& b) {
                               return a.ranks.value_or(0) > b.ranks.value_or(0);
                             });
    imported_.file = file_;
    const ReportedCommunicator whole =
        communicators_.empty() ? ReportedCommunicator{} : communicators_.front();
    Json transports = Json::object();
    for (const auto& [way, count] : transports_) transports[way] = count;
    imported_.facts = described(whole);
    imported_.facts["version"] = version_.empty() ? Json{} : Json(version_);
    imported_.facts["communicators"] = Json::array();
    imported_.facts["rings"] = rings_;
    imported_.facts["trees"] = trees_;
    imported_.facts["transports"] = std::move(transports);
    imported_.facts["chosen"] = tuning_;
    for (const ReportedCommunicator& each : communicators_) add(each);
    if (communicators_.size() > 1) note_several();
    imported_.facts_suffice = !tuning_.empty() || !transports_.empty();
    return std::move(imported_);
  }

  void add(const ReportedCommunicator& each) {
    imported_.facts["communicators"].push_back(described(each));
    if (!each.channels) return;
    Sample sample;
    sample.quantity = "collective_channels";
    sample.value = static_cast<double>(*each.channels);
    sample.ranks = each.ranks;
    sample.nodes = each.nodes;
    sample.software = version_.empty() ? "NCCL" : "NCCL " + version_;
    sample.place = each.place;
    imported_.samples.push_back(std::move(sample));
  }

  void note_several() {
    const auto text = [](const std::optional<std::int64_t>& count) {
      return count ? std::to_string(*count) : std::string{"unknown"};
    };
    std::string note = fmt::format("{} communicators:", communicators_.size());
    for (const ReportedCommunicator& each : communicators_) {
      note +=
          fmt::format("{} {} ranks with {} channels", &each == &communicators_.front() ? "" : ",",
                      text(each.ranks), text(each.channels));
    }
    imported_.notes.push_back(std::move(note));
  }

  const std::string& file_;
  Imported imported_;
  std::string version_;
  std::map<std::string, ReportedCommunicator> open_;  // by thread: "host:63120:63191 [0] "
  std::vector<ReportedCommunicator> communicators_;   // of different shapes
  std::ptrdiff_t trees_ = 0;
  Json rings_ = Json::array(), tuning_ = Json::array();
  std::map<std::string, int> transports_;
};

}  // namespace

Imported read_nccl_log(const std::vector<LogLine>& lines, const std::string& file) {
  return NcclLogReader{file}.read(lines);
}

}  // namespace orrery::calibrate
