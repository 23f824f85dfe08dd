#include "executor/launch/store_table.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "executor/launch/store.hpp"

namespace orrery::executor {

namespace {

/// The most keys, and the most barriers, of a run: keys are beats, results, addresses and the ids
/// of communicators.
std::size_t most_keys(int ranks) {
  return 1024 + 64 * static_cast<std::size_t>(ranks);
}

std::int64_t number_or_0(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Wraps around instead of overflowing, because a client may send any number.
std::int64_t sum(std::int64_t one, std::int64_t other) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(one) +
                                   static_cast<std::uint64_t>(other));
}

}  // namespace

StoreTable::StoreTable(int ranks, Answer answer) : ranks_{ranks}, answer_{std::move(answer)} {}

bool StoreTable::join(ClientId id, const LastWill& will) {
  if (will.key.size() > store_key_limit) return false;
  if (!clients_.try_emplace(id, Client{.will = will, .waits = {}, .key = {}}).second) return false;
  joined_.insert(id.rank);
  return true;
}

void StoreTable::lose(ClientId id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  const LastWill will = found->second.will;
  clients_.erase(found);
  if (!will.key.empty() && values_.count(will.key) == 0) set(will.key, will.value);
}

StoreTable::Served StoreTable::serve(ClientId id, std::string_view frame) {
  const auto found = clients_.find(id);
  if (found == clients_.end() || found->second.waits) return Served::refused;
  Client& client = found->second;
  FrameReader reader{frame};
  const std::uint64_t number = reader.number(1);
  client.patience = std::chrono::milliseconds{reader.number(4)};
  client.key = reader.text();
  const std::string value = reader.text();
  if (!reader.at_end() || client.key.size() > store_key_limit) return Served::refused;
  if (number > static_cast<std::uint64_t>(StoreVerb::leave)) return Served::refused;
  const auto verb = static_cast<StoreVerb>(number);
  switch (verb) {
    case StoreVerb::find:
    case StoreVerb::get:
      return look_up(id, client, verb);
    case StoreVerb::set:
    case StoreVerb::first:
    case StoreVerb::add:
      return write(id, client, verb, value);
    case StoreVerb::erase:
      values_.erase(client.key);
      return answer(id, StoreAnswer::done, "");
    case StoreVerb::barrier:
      return arrive(id, client);
    case StoreVerb::now:
      return answer(id, StoreAnswer::done, std::to_string(Clock::now().time_since_epoch().count()));
    case StoreVerb::leave:
      client.will = {};
      return answer(id, StoreAnswer::done, "");
  }
  return Served::refused;
}

StoreTable::Served StoreTable::look_up(ClientId id, Client& client, StoreVerb verb) {
  const auto found = values_.find(client.key);
  if (found != values_.end()) return answer(id, StoreAnswer::done, found->second);
  if (verb == StoreVerb::find) return answer(id, StoreAnswer::absent, "");
  client.waits = verb;
  return Served::waits;
}

StoreTable::Served StoreTable::write(ClientId id, const Client& client, StoreVerb verb,
                                     const std::string& value) {
  const std::string key = client.key;  // answers to others may come in between
  const auto found = values_.find(key);
  const bool there = found != values_.end();
  std::string stored = value;
  if (verb == StoreVerb::first && there) stored = found->second;
  if (verb == StoreVerb::add) {
    stored = std::to_string(sum(there ? number_or_0(found->second) : 0, number_or_0(value)));
  }
  if (!set(key, stored)) return answer(id, StoreAnswer::refused, "the store has no room for keys");
  return answer(id, StoreAnswer::done, verb == StoreVerb::set ? "" : stored);
}

bool StoreTable::set(const std::string& key, const std::string& value) {
  if (values_.count(key) == 0 && values_.size() >= most_keys(ranks_)) return false;
  values_[key] = value;
  for (const auto& [id, client] : clients_) {
    if (client.waits == StoreVerb::get && client.key == key) {
      answer(id, StoreAnswer::done, value);
    }
  }
  return true;
}

StoreTable::Served StoreTable::arrive(ClientId id, Client& client) {
  const std::string name = client.key;
  if (barriers_.count(name) == 0 && barriers_.size() >= most_keys(ranks_)) {
    return answer(id, StoreAnswer::refused, "the store has no room for barriers");
  }
  std::set<int>& arrived = barriers_[name];
  arrived.insert(id.rank);
  client.waits = StoreVerb::barrier;
  if (arrived.size() < static_cast<std::size_t>(ranks_)) return Served::waits;
  barriers_.erase(name);
  for (const auto& [other, each] : clients_) {
    if (each.waits == StoreVerb::barrier && each.key == name) answer(other, StoreAnswer::done, "");
  }
  return Served::answered;
}

std::optional<std::chrono::milliseconds> StoreTable::patience(ClientId id) const {
  const auto found = clients_.find(id);
  if (found == clients_.end() || !found->second.waits) return std::nullopt;
  return found->second.patience;
}

void StoreTable::give_up(ClientId id) {
  const auto found = clients_.find(id);
  if (found == clients_.end() || !found->second.waits) return;
  answer(id, StoreAnswer::refused, why_given_up(found->second));
}

std::string StoreTable::why_given_up(const Client& client) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(client.patience).count();
  if (client.waits == StoreVerb::barrier) {
    return fmt::format("barrier '{}' was not reached within {} s by {}", client.key, seconds,
                       text_of_ranks(without(barriers_[client.key])));
  }
  const std::vector<int> missing = without(joined_);
  const std::string who =
      missing.empty() ? "" : fmt::format("; missing: {}", text_of_ranks(missing));
  return fmt::format("no rank set '{}' within {} s{}", client.key, seconds, who);
}

std::vector<int> StoreTable::without(const std::set<int>& there) const {
  std::vector<int> missing;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (there.count(rank) == 0) missing.push_back(rank);
  }
  return missing;
}

StoreTable::Served StoreTable::answer(ClientId id, StoreAnswer status, std::string_view text) {
  clients_.at(id).waits.reset();
  answer_(id, FrameWriter{}.number(static_cast<std::uint8_t>(status), 1).text(text).framed());
  return Served::answered;
}

}  // namespace orrery::executor
