#include "scenarios/collective/nccl_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <utility>

#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

constexpr int most_channels = 64;

std::string lowercase(std::string_view text) {
  std::string small{text};
  for (char& each : small) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return small;
}

/// The names of a list; of one that begins with '^' all others.
template <class Value>
std::vector<Value> chosen_of(std::string_view setting, std::string_view text,
                             const std::vector<std::pair<std::string, Value>>& known) {
  const bool excludes = text.starts_with('^');
  if (excludes) text.remove_prefix(1);
  std::set<std::string> named;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string name = lowercase(text.substr(at, end - at));
    const bool exists = std::any_of(known.begin(), known.end(), [&](const auto& each) {
      return lowercase(each.first) == name;
    });
    if (!exists) {
      std::string accepted;
      for (const auto& each : known) accepted += (accepted.empty() ? "" : ", ") + each.first;
      throw InputError{"--env", fmt::format("{}: expected some of {}, found '{}'", setting,
                                            accepted, printable(name, 40))};
    }
    named.insert(name);
    at = end + 1;
  }
  std::vector<Value> values;
  for (const auto& [name, value] : known) {
    if ((named.count(lowercase(name)) > 0) != excludes) values.push_back(value);
  }
  return values;
}

std::vector<std::pair<std::string, std::string_view>> algorithms_by_name() {
  std::vector<std::pair<std::string, std::string_view>> known;
  for (const auto& [name, each] : models::builtin_algorithms()) {
    if (!each.nccl.empty()) known.emplace_back(std::string{each.nccl}, name);
  }
  return known;
}

std::vector<std::pair<std::string, models::Protocol>> protocols_by_name() {
  return {{"LL", models::Protocol::ll},
          {"LL128", models::Protocol::ll128},
          {"Simple", models::Protocol::simple}};
}

int read_channels(std::string_view setting, std::string_view text) {
  int channels = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), channels);
  if (error == std::errc{} && end == text.data() + text.size() && channels >= 1 &&
      channels <= most_channels) {
    return channels;
  }
  throw InputError{"--env", fmt::format("{}: expected 1 to {}, found '{}'", setting, most_channels,
                                        printable(text, 40))};
}

}  // namespace

bool NcclEnvironment::allows(std::string_view algorithm, models::Protocol protocol) const {
  const auto has = [](const auto& list, const auto& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  return has(algorithms, algorithm) && has(protocols, protocol);
}

NcclEnvironment read_nccl_environment(const std::vector<std::string>& settings) {
  NcclEnvironment read;
  std::set<std::string> seen;
  for (const std::string& each : settings) {
    const std::size_t equals = std::min(each.find('='), each.size());
    const std::string name = each.substr(0, equals);
    const std::string_view value = std::string_view{each}.substr(std::min(equals + 1, each.size()));
    if (!seen.insert(name).second) throw InputError{"--env", name + " is given twice"};
    if (name == "NCCL_ALGO") {
      read.algorithms = chosen_of(name, value, algorithms_by_name());
    } else if (name == "NCCL_PROTO") {
      read.protocols = chosen_of(name, value, protocols_by_name());
    } else if (name == "NCCL_MAX_NCHANNELS" || name == "NCCL_MAX_CTAS") {
      read.channels = read_channels(name, value);
    } else {
      throw InputError{"--env", fmt::format("expected NCCL_ALGO, NCCL_PROTO, NCCL_MAX_NCHANNELS or "
                                            "NCCL_MAX_CTAS and a value, found '{}'",
                                            printable(each, 60))};
    }
  }
  return read;
}

}  // namespace orrery::scenarios
