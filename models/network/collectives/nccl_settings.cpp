#include "models/network/collectives/nccl_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "models/network/collectives/nccl_tuner.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {

namespace {

constexpr int channel_limit = 64;

template <class Value>
using NcclNames = std::vector<std::pair<std::string_view, Value>>;

/// Equal without regard to case, as NCCL compares names.
bool alike(std::string_view a, std::string_view b) {
  const auto small = [](char each) { return std::tolower(static_cast<unsigned char>(each)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return small(x) == small(y); });
}

const NcclNames<Collective>& functions() {
  static const NcclNames<Collective> known{{"AllReduce", Collective::all_reduce},
                                           {"AllGather", Collective::all_gather},
                                           {"ReduceScatter", Collective::reduce_scatter},
                                           {"Broadcast", Collective::broadcast},
                                           {"Reduce", Collective::reduce}};
  return known;
}

NcclNames<std::string_view> algorithms_by_name() {
  NcclNames<std::string_view> known;
  for (const auto& [name, each] : builtin_algorithms()) {
    if (!each.nccl.empty()) known.emplace_back(each.nccl, name);
  }
  return known;
}

NcclNames<Protocol> protocols_by_name() {
  return {{"LL", Protocol::ll}, {"LL128", Protocol::ll128}, {"Simple", Protocol::simple}};
}

/// The value of a variable, and where it was written.
struct NcclValue {
  std::string_view name, text;
  const std::string& place;

  [[noreturn]] void refuse(std::string_view expected, std::string_view found) const {
    throw InputError{
        place, fmt::format("{}: expected {}, found '{}'", name, expected, printable(found, 40))};
  }
};

template <class Value>
Value named(const NcclValue& value, std::string_view word, const NcclNames<Value>& known) {
  std::string accepted;
  for (const auto& [name, each] : known) {
    if (alike(name, word)) return each;
    accepted += (accepted.empty() ? "one or more of " : ", ") + std::string{name};
  }
  value.refuse(accepted, word);
}

/// Splits at `separator`; keeps empty parts.
template <class Value>
std::vector<Value> allowed_of(const NcclValue& value, std::string_view text,
                              const NcclNames<Value>& known) {
  const bool excludes = text.starts_with('^');
  if (excludes) text.remove_prefix(1);
  std::vector<Value> listed;
  for (const std::string_view word : split(text, ',')) {
    listed.push_back(named(value, word, known));
  }
  std::vector<Value> allowed;
  for (const auto& [name, each] : known) {
    const bool is_listed = std::ranges::find(listed, each) != listed.end();
    if (is_listed != excludes) allowed.push_back(each);
  }
  return allowed;
}

template <class Value>
std::vector<NcclList<Value>> lists_of(const NcclValue& value, const NcclNames<Value>& known) {
  std::vector<NcclList<Value>> lists;
  for (std::string_view part : split(value.text, ';')) {
    NcclList<Value> list;
    if (const std::size_t colon = part.find(':'); colon != std::string_view::npos) {
      list.of = named(value, part.substr(0, colon), functions());
      part.remove_prefix(colon + 1);
    } else if (!lists.empty()) {
      value.refuse("a function and a colon before each list after the first", part);
    }
    list.allowed = allowed_of(value, part, known);
    lists.push_back(std::move(list));
  }
  return lists;
}

/// The list that applies to a collective; null: no restriction.
template <class Value>
const std::vector<Value>* list_of(const std::vector<NcclList<Value>>& lists,
                                  Collective collective) {
  const std::vector<Value>* found = nullptr;
  for (const NcclList<Value>& each : lists) {
    if (each.of == collective || (!each.of && !found)) found = &each.allowed;
  }
  return found;
}

int channels_of_text(const NcclValue& value) {
  const auto channels = number_in<int>(value.text);
  if (channels && *channels >= 1 && *channels <= channel_limit) return *channels;
  value.refuse(fmt::format("1 to {}", channel_limit), value.text);
}

}  // namespace

bool NcclSettings::restricts(Collective collective) const {
  return channels || list_of(algorithms, collective) || list_of(protocols, collective);
}

bool NcclSettings::allows(Collective collective, std::string_view algorithm,
                          Protocol protocol) const {
  const auto has = [](const auto* list, const auto& value) {
    return !list || std::find(list->begin(), list->end(), value) != list->end();
  };
  return has(list_of(algorithms, collective), algorithm) &&
         has(list_of(protocols, collective), protocol);
}

void read_nccl_variable(std::string_view name, std::string_view text, NcclSettings& settings) {
  const NcclValue value{name, text, settings.place};
  if (name == "NCCL_ALGO") {
    settings.algorithms = lists_of(value, algorithms_by_name());
  } else if (name == "NCCL_PROTO") {
    settings.protocols = lists_of(value, protocols_by_name());
  } else if (name == "NCCL_MAX_NCHANNELS" || name == "NCCL_MAX_CTAS") {
    settings.channels = channels_of_text(value);
  } else {
    throw InputError{settings.place,
                     fmt::format("expected NCCL_ALGO, NCCL_PROTO, NCCL_MAX_NCHANNELS or "
                                 "NCCL_MAX_CTAS and a value, found '{}'",
                                 printable(name, 60))};
  }
}

CollectiveChoice tuned_choice(Collective collective, Bytes size, const GroupShape& group,
                              const hardware::Cluster& cluster, const CollectivePricing& pricing) {
  const NcclSettings& settings = *pricing.nccl;
  CollectiveChoice choice = pricing.choice;
  if (!choice.channels) choice.channels = settings.channels;
  if (group.ranks < 2 || size == Bytes{0}) return choice;
  const std::vector<TunedChoice> tuned = nccl_choices(collective, size, group, cluster);
  for (const TunedChoice& each : tuned) {
    const bool asked = (choice.algorithm.empty() || each.algorithm == choice.algorithm) &&
                       (!choice.protocol || each.protocol == *choice.protocol);
    if (!asked || !settings.allows(collective, each.algorithm, each.protocol)) continue;
    CollectivePricing one = pricing;
    one.choice = choice;
    one.choice.algorithm = each.algorithm;
    one.choice.protocol = each.protocol;
    if (!candidates(collective, size, group, cluster, one).empty()) return one.choice;
  }
  if (tuned.empty() || !settings.restricts(collective)) return choice;  // not tuned
  throw InputError{
      settings.place,
      fmt::format("no allowed algorithm and protocol supports {} of {} ranks on this cluster; to "
                  "restrict one function only, name it, as in NCCL_ALGO=allreduce:Tree",
                  name(collective), group.ranks)};
}

}  // namespace orrery::models
