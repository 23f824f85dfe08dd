#include "scenarios/whatif/sweep_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>

#include "scenarios/version.hpp"
#include "sim/errors.hpp"
#include "sim/input/parse_json.hpp"
#include "sim/input/text.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::string_view store_key = "orrery_sweep";

std::string text_hash_of(std::string_view text) {
  TextHash hash;
  hash.add(text);
  return hash.text();
}

/// In one line; bytes that are no text are replaced.
std::string header_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json stated_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// What two headers differ in, in words; empty: nothing.
std::string header_difference(const Json& found, const Json& wanted) {
  constexpr std::array<std::pair<const char*, const char*>, 8> members{
      {{"version", "made by another version of orrery"},
       {"catalogue", "made with other data in the catalogue"},
       {"inputs", "of another scenario, or of other changes to it"},
       {"vary", "of other values"},
       {"tokens", "for another number of tokens"},
       {"headroom", "for another headroom"},
       {"variants", "of another number of variants"},
       {"shard", "of another shard"}}};
  for (const auto& [member, words] : members) {
    if (!found.contains(member) || found[member] != wanted[member]) return words;
  }
  return found == wanted ? "" : "written in another form";
}

[[noreturn]] void refuse_other_store(const std::string& path, const std::string& found,
                                     const std::string& wanted) {
  const std::string advice = "; state another --store, or remove this file";
  Json header;
  try {
    header = Document::parse(found, path).json();
  } catch (const InputError&) {
    throw InputError{path, "expected the store of a sweep, found another file" + advice};
  }
  if (!header.is_object() || !header.contains(store_key)) {
    throw InputError{path, "expected the store of a sweep, found another file" + advice};
  }
  throw InputError{
      path, fmt::format("is the store of another sweep, {}{}",
                        header_difference(header, Document::parse(wanted, path).json()), advice)};
}

/// Reads a file line by line, without the end of each; a line without an end is not given.
class WholeLines {
 public:
  explicit WholeLines(const std::string& path) : file_{path, std::ios::binary} {}

  bool next(std::string& line) {
    if (!std::getline(file_, line) || file_.eof()) return false;
    end_ += line.size() + 1;
    return true;
  }
  /// Bytes of the lines that were given.
  std::uint64_t end() const { return end_; }

 private:
  std::ifstream file_;
  std::uint64_t end_ = 0;
};

bool is_line_of_variant(std::string_view line, std::uint64_t index) {
  return line.starts_with(SweepGrid::beginning(index)) && line.ends_with('}');
}

}  // namespace

std::uint64_t SweepShard::begin(std::uint64_t variants) const {
  const std::uint64_t each = variants / of, more = variants % of;
  return each * (number - 1) + std::min(number - 1, more);
}

std::uint64_t SweepShard::end(std::uint64_t variants) const {
  return SweepShard{number + 1, of}.begin(variants);
}

bool is_sweep_store(const std::string& path) {
  const std::string lines = fmt::format("{{\"{}\":", store_key), parquet = "PAR1";
  std::string begin(lines.size(), '\0');
  std::ifstream{path, std::ios::binary}.read(begin.data(), std::ssize(begin));
  return begin == lines || begin.starts_with(parquet);
}

SweepShard parse_shard(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() == 2) {
    const auto number = number_in<std::uint64_t>(parts[0]), of = number_in<std::uint64_t>(parts[1]);
    if (number && of && *number >= 1 && *number <= *of && *of <= most_shards) {
      return {*number, *of};
    }
  }
  throw InputError{"--shard", fmt::format("expected NUMBER/OF such as 2/8, numbered from 1 to at "
                                          "most {}, found '{}'",
                                          most_shards, printable(text, 60))};
}

std::string store_header(const SweepQuestions& questions, const SweepShard& shard) {
  Json vary = Json::array();
  for (const ValueList& list : questions.grid.lists()) {
    vary.push_back({{"pointer", list.pointer}, {"values", list.values}});
  }
  TextHash inputs;
  inputs.add(questions.base.file());
  inputs.add(header_text(questions.base.json()));
  Json header{{store_key, 1},
              {"id", ""},
              {"version", version_number},
              {"catalogue", catalogue_hash()},
              {"inputs", inputs.text()},
              {"scenario", questions.base.name()},
              {"vary", std::move(vary)},
              {"tokens", stated_number(questions.request.tokens)},
              {"headroom", stated_number(questions.request.headroom)},
              {"variants", questions.grid.variants()},
              {"shard", nullptr}};
  header["id"] = text_hash_of(header_text(header));
  if (!shard.whole()) header["shard"] = {{"number", shard.number}, {"of", shard.of}};
  return header_text(header);
}

SweepStore::SweepStore(std::string path, const std::string& header, std::uint64_t begin,
                       std::uint64_t end, const std::function<void(std::string_view)>& seen)
    : path_{std::move(path)}, next_{begin} {
  constexpr mode_t new_file = 0666;
  descriptor_ = through_signals(
      [&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, new_file); });
  if (descriptor_ < 0) throw OutputError{path_, errno};
  try {
    struct stat found {};
    if (::fstat(descriptor_, &found) != 0) throw OutputError{path_, errno};
    if (!S_ISREG(found.st_mode)) {
      throw InputError{path_,
                       "expected a file, which a sweep can continue; found a device or pipe"};
    }
    const bool locked =
        through_signals([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) == 0;
    if (!locked && errno == EWOULDBLOCK) {
      throw InputError{path_, "another sweep is writing it; expected a store of its own for each"};
    }
    read(header, begin, end, seen);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SweepStore::~SweepStore() {
  ::close(descriptor_);
}

void SweepStore::read(const std::string& header, std::uint64_t begin, std::uint64_t end,
                      const std::function<void(std::string_view)>& seen) {
  struct stat found {};
  if (::fstat(descriptor_, &found) != 0) throw OutputError{path_, errno};
  const auto size = static_cast<std::uint64_t>(found.st_size);
  WholeLines lines{path_};
  std::string line;
  if (!lines.next(line)) {  // nothing, or the beginning of a first line
    if (size > 0) {
      const std::string torn = read_file(path_, header.size() + 1);
      if (!header.starts_with(torn)) refuse_other_store(path_, torn, header);
    }
    if (::ftruncate(descriptor_, 0) != 0) throw OutputError{path_, errno};
    if (!write_all(descriptor_, header + "\n")) throw OutputError{path_, errno};
    return;
  }
  if (line != header) refuse_other_store(path_, line, header);
  while (lines.next(line)) {
    if (next_ == end || !is_line_of_variant(line, next_)) {
      throw InputError{path_, fmt::format("line {} is not that of variant {}; remove the file, or "
                                          "all lines from that one on",
                                          next_ - begin + 2, next_)};
    }
    seen(line);
    ++next_;
  }
  if (lines.end() < size && ::ftruncate(descriptor_, static_cast<off_t>(lines.end())) != 0) {
    throw OutputError{path_, errno};
  }
}

void SweepStore::append(std::string_view lines, std::uint64_t count) {
  if (!write_all(descriptor_, lines)) throw OutputError{path_, errno};
  next_ += count;
}

void SweepStore::flush() {
  if (::fsync(descriptor_) != 0) throw OutputError{path_, errno};
}

namespace {

/// One file of `merge`, checked.
struct StoredShard {
  std::string path;
  Json header;
  SweepShard shard;
};

Json header_in_store(const std::string& path) {
  WholeLines lines{path};
  std::string line;
  std::ifstream readable{path};
  if (!readable) throw InputError{path, "cannot be read"};
  if (lines.next(line)) {
    try {
      Json header = Document::parse(line, path).json();
      const bool all = header.is_object() && header.contains(store_key) &&
                       header.contains("shard") && header.contains("variants") &&
                       header["variants"].is_number_unsigned();
      if (all) return header;
    } catch (const InputError&) {
    }
  }
  throw InputError{path, "expected the store of a sweep, found another file"};
}

StoredShard stored_shard(const std::string& path) {
  StoredShard found{.path = path, .header = header_in_store(path), .shard = {}};
  Json& shard = found.header["shard"];
  if (shard.is_object()) {
    const Node node{shard, path, "/shard"};
    const std::int64_t most = most_shards;
    found.shard.of = static_cast<std::uint64_t>(node["of"].integer(1, most));
    found.shard.number = static_cast<std::uint64_t>(
        node["number"].integer(1, static_cast<std::int64_t>(found.shard.of)));
  }
  shard = nullptr;
  return found;
}

/// Errors  lines that are missing, torn or of other variants
void require_complete(const StoredShard& stored) {
  const auto variants = stored.header["variants"].get<std::uint64_t>();
  const std::uint64_t begin = stored.shard.begin(variants), end = stored.shard.end(variants);
  WholeLines lines{stored.path};
  std::string line;
  lines.next(line);
  std::uint64_t next = begin;
  for (; lines.next(line); ++next) {
    if (next < end && is_line_of_variant(line, next)) continue;
    throw InputError{stored.path,
                     fmt::format("line {} is not that of variant {}", next - begin + 2, next)};
  }
  if (next == end) return;
  const std::string of_shard =
      stored.shard.whole() ? ""
                           : fmt::format(" of shard {}/{}", stored.shard.number, stored.shard.of);
  throw InputError{stored.path, fmt::format("has {} of the {} variants{}; the command that began "
                                            "it continues it",
                                            next - begin, end - begin, of_shard)};
}

/// The stores by number of their shard. Errors  missing, twice, or of different sweeps
std::map<std::uint64_t, StoredShard> shards_in_order(const std::vector<std::string>& paths) {
  std::map<std::uint64_t, StoredShard> shards;
  for (const std::string& path : paths) {
    StoredShard stored = stored_shard(path);
    if (!shards.empty()) {
      const StoredShard& first = shards.begin()->second;
      if (const std::string words = header_difference(stored.header, first.header);
          !words.empty()) {
        throw InputError{
            path, fmt::format("is the store of another sweep than {}, {}", first.path, words)};
      }
      if (stored.shard.of != first.shard.of) {
        throw InputError{path, fmt::format("is a shard of {}, and {} one of {}", stored.shard.of,
                                           first.path, first.shard.of)};
      }
    }
    const auto [at, added] = shards.emplace(stored.shard.number, stored);
    if (!added) {
      throw InputError{path, fmt::format("is shard {}/{}, as is {}", stored.shard.number,
                                         stored.shard.of, at->second.path)};
    }
  }
  return shards;
}

void require_all_shards(const std::map<std::uint64_t, StoredShard>& shards) {
  const std::uint64_t of = shards.begin()->second.shard.of;
  std::vector<std::uint64_t> missing;
  constexpr std::size_t most_named = 20;
  for (std::uint64_t i = 1; i <= of && missing.size() <= most_named; ++i) {
    if (!shards.contains(i)) missing.push_back(i);
  }
  if (missing.empty()) return;
  const bool more = missing.size() > most_named;
  if (more) missing.pop_back();
  throw InputError{"merge", fmt::format("of {} shards these are missing: {}{}", of,
                                        fmt::join(missing, ", "), more ? " and more" : "")};
}

}  // namespace

MergedSweep merge_stores(const std::vector<std::string>& paths,
                         const std::function<void(std::string_view)>& put) {
  if (paths.empty()) throw InputError{"merge", "expected the stores of a sweep's shards"};
  const std::map<std::uint64_t, StoredShard> shards = shards_in_order(paths);
  require_all_shards(shards);
  for (const auto& [number, stored] : shards) require_complete(stored);
  const Json& header = shards.begin()->second.header;
  put(header_text(header) + "\n");
  for (const auto& [number, stored] : shards) {
    WholeLines lines{stored.path};
    std::string line;
    lines.next(line);
    while (lines.next(line)) put(line += '\n');
  }
  return {.scenario = header.value("scenario", std::string{}),
          .variants = header["variants"].get<std::uint64_t>(),
          .shards = shards.size()};
}

}  // namespace orrery::scenarios
