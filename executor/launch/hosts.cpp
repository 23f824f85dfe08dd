// Parses lists as launchers write them: hosts in brackets, tasks with a factor, HOST:PORT.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "executor/launch/environment.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// Cuts at commas outside brackets.
std::vector<std::string_view> cut_at_commas(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char at = i < list.size() ? list[i] : ',';
    if (at == '[') ++depth;
    if (at == ']') --depth;
    if (at == ',' && (depth == 0 || i == list.size())) {
      parts.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return parts;
}

[[noreturn]] void refuse_hosts(std::string_view list) {
  throw InputError{"SLURM_STEP_NODELIST",
                   fmt::format("expected hosts such as n[1-2,7], found '{}'", list)};
}

/// One entry: its first bracket is expanded, what follows it by recursion.
void expand_host(std::string_view entry, std::string_view list, std::vector<std::string>& hosts) {
  const std::size_t open = entry.find('[');
  if (open == std::string_view::npos) {
    if (entry.empty() || entry.find(']') != std::string_view::npos) refuse_hosts(list);
    hosts.emplace_back(entry);
    return;
  }
  const std::size_t close = entry.find(']', open);
  if (close == std::string_view::npos) refuse_hosts(list);
  std::vector<std::string> rests{""};
  if (close + 1 < entry.size()) {
    rests.clear();
    expand_host(entry.substr(close + 1), list, rests);
  }
  for (const std::string_view range : cut_at_commas(entry.substr(open + 1, close - open - 1))) {
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const auto low = whole_number(first);
    const auto high = dash == std::string_view::npos ? low : whole_number(range.substr(dash + 1));
    if (!low || !high || *high < *low || *high - *low > 1'000'000) refuse_hosts(list);
    for (int i = *low; i <= *high; ++i) {
      for (const std::string& rest : rests) {  // leading zeros count: n[08-10]
        hosts.push_back(fmt::format("{}{:0{}}{}", entry.substr(0, open), i, first.size(), rest));
      }
    }
  }
}

}  // namespace

std::vector<std::string> expand_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string_view entry : cut_at_commas(list)) expand_host(entry, list, hosts);
  return hosts;
}

std::vector<int> expand_tasks(std::string_view list) {
  std::vector<int> tasks;
  for (const std::string_view entry : cut_at_commas(list)) {
    const std::size_t open = entry.find("(x");
    const auto count = whole_number(entry.substr(0, open));
    auto nodes = std::optional<int>{1};
    if (open != std::string_view::npos) {
      nodes = entry.back() == ')' ? whole_number(entry.substr(open + 2, entry.size() - open - 3))
                                  : std::nullopt;
    }
    if (!count || !nodes || *nodes > 1'000'000) {
      throw InputError{"SLURM_STEP_TASKS_PER_NODE",
                       fmt::format("expected counts such as 4(x2),3, found '{}'", list)};
    }
    tasks.insert(tasks.end(), static_cast<std::size_t>(*nodes), *count);
  }
  return tasks;
}

std::string text_of(const Address& address) {
  if (!address.path.empty()) return address.path;
  const bool version_6 = address.host.find(':') != std::string::npos;
  const std::string host = version_6 ? fmt::format("[{}]", address.host) : address.host;
  return fmt::format("{}:{}", host, address.port);
}

Address parse_address(std::string_view text, const std::string& place) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  std::string_view host = text.substr(0, colon);
  const int port = whole_number(text.substr(std::min(colon + 1, text.size()))).value_or(-1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    host = {};  // IPv6 needs brackets
  }
  if (host.empty() || port < 0 || port > 65535) {
    throw InputError{place, fmt::format("expected HOST:PORT, found '{}'", text)};
  }
  return {.host = std::string{host}, .port = static_cast<std::uint16_t>(port)};
}

}  // namespace orrery::executor
