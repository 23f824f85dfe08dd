#include "tests/models/evaluation/traffic/network_oracle.hpp"

#include <algorithm>
#include <map>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/traffic/templates.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

using traffic::Entity;
using traffic::LinkFlows;

constexpr std::int64_t infinite = std::int64_t{1} << 58;
bool finite(std::int64_t time) {
  return time < infinite;
}

struct OracleRank {
  Chain<NumberTime> state{};
  std::vector<Made> made;
  std::vector<std::size_t> sent, received;  // by channel
  std::vector<std::size_t> met;             // by structure of collectives inside blocks
};

struct OracleItem {
  std::vector<std::map<std::uint32_t, std::int64_t>> ready;  // by instance and rank
  std::vector<std::int64_t> starts, ends;
  std::vector<const PricedOperation*> prices;  // by instance, of collectives inside blocks
};

/// Where the lists of a tensor group stand before the first instruction with an infinite end.
struct OracleUnit {
  std::size_t at = 0;
  std::vector<OracleRank> ranks;
  bool changed = true;
};

class NetworkOracle {
 public:
  NetworkOracle(const PricedProgram& priced, const NetworkSite& site)
      : priced_{priced},
        program_{*priced.program},
        site_{site},
        entities_{traffic::entities_of(priced, site)} {
    for (const Bandwidth each : site.links) capacity_.push_back(wire_rate(each));
    for (const LinkChange& each : site.changes) changes_.push_back(each);
    group_of_.resize(entities_.ranks);
    for (std::size_t e = 0; e < entities_.all.size(); ++e) {
      for (const std::uint32_t rank : entities_.members_of(entities_.all[e])) {
        if (entities_.all[e].group) group_of_[rank][entities_.all[e].id] = e;
      }
    }
    active_.resize(entities_.all.size());
    for (double speed : site.speeds) {
      if (!blocks_.count(speed)) add_blocks(speed);
    }
    if (!blocks_.count(1)) add_blocks(1);
    begin_units();
  }

  OracleTimes run() {
    for (;;) {
      while (evaluate()) {
      }
      share();
      std::int64_t next = infinite;
      for (const Active& each : active_) {
        if (each.fluid > Time{} && each.begin > now_) next = std::min(next, each.begin);
        if (each.rate > 0) next = std::min(next, now_ + ceiling(each.remaining, each.rate));
      }
      for (const LinkChange& each : changes_) {
        if (each.at.count() > now_ || !begun_) next = std::min(next, each.at.count());
      }
      if (next == infinite) break;
      pass(next);
    }
    for (const OracleRank& rank : ranks_) {
      for (const NumberTime each : rank.state) ensure(finite(each.value), "the oracle stands");
    }
    return result();
  }

 private:
  struct Active {
    Time fluid{};  // 0: none
    std::int64_t begin = 0;
    Int128 remaining = 0;
    WireRate rate = 0;
  };

  static std::int64_t ceiling(Int128 amount, WireRate rate) {
    return static_cast<std::int64_t>((amount + rate - 1) / rate);
  }

  void add_blocks(double speed) {
    const PricedProgram there = at_speed(priced_, speed);
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) blocks_[speed].emplace_back(there, b);
  }
  const ChainBlock& block(std::uint32_t rank, std::uint32_t id) const {
    return blocks_.at(site_.speeds.empty() ? 1 : site_.speeds[rank])[id];
  }

  /// All lists from where they stood, with the ends that are known; true if another end became
  /// known at once.
  bool evaluate() {
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      if (units_[u].changed) unit(u);
    }
    bool found = false;
    for (auto& [key, item] : items_) found = begin_next(key, item) || found;
    return found;
  }

  void begin_units() {
    units_.resize(entities_.ranks / entities_.tensor);
    ranks_.resize(entities_.ranks);
    for (std::uint32_t r = 0; r < entities_.ranks; ++r) {
      OracleRank rank;
      rank.state[state_host].value = priced_.step_launch.count();
      rank.state[state_data].value = priced_.carried_by(r / entities_.replicas).count();
      rank.sent.resize(program_.channels.size());
      rank.received.resize(program_.channels.size());
      rank.met.resize(entities_.structures.size());
      units_[r / entities_.tensor].ranks.push_back(rank);
    }
  }

  void unit(std::uint32_t u) {
    OracleUnit& unit = units_[u];
    const std::uint32_t first = u * entities_.tensor;
    const auto& list = program_.classes[first / entities_.replicas].instructions;
    std::copy(unit.ranks.begin(), unit.ranks.end(), ranks_.begin() + first);
    unit.changed = false;
    bool known = true;
    for (std::size_t i = unit.at; i < list.size(); ++i) {
      if (runs_phase(list[i])) phase(first, list[i]);
      for (std::uint32_t r = first; r < first + entities_.tensor; ++r) {
        if (!runs_phase(list[i])) meet(r, list[i]);
        known = known && finite(ranks_[r].made.back().end);
        for (const NumberTime each : ranks_[r].state) known = known && finite(each.value);
      }
      if (!known) continue;
      unit.at = i + 1;
      std::copy_n(ranks_.begin() + first, entities_.tensor, unit.ranks.begin());
    }
  }

  Made made(std::uint32_t r, Token token) const {
    return token == no_token ? Made{0, 0} : ranks_[r].made[token];
  }

  void phase(std::uint32_t first, const Instruction& each) {
    const std::uint32_t t = entities_.tensor;
    for (std::uint32_t r = first; r < first + t; ++r) {
      Chain<NumberTime>& s = ranks_[r].state;
      if (each.awaits != no_token) {
        s[state_compute].raise(s[state_host]);
        s[state_compute].raise({made(r, each.awaits).end});
      }
      s[state_io].value = made(r, each.input).output;
    }
    for (const Invocation& run : program_.phases[each.target].invocations) {
      for (std::int64_t i = 0; i < run.count; ++i) together(first, run.block);
    }
    for (std::uint32_t r = first; r < first + t; ++r) {
      ranks_[r].made.push_back(
          {ranks_[r].state[state_io].value, ranks_[r].state[state_compute].value});
    }
  }

  void together(std::uint32_t first, std::uint32_t id) {
    std::vector<std::vector<NumberTime>> ends(entities_.tensor);
    std::vector<BlockRun<NumberTime>> runs;
    for (std::uint32_t t = 0; t < entities_.tensor; ++t) {
      runs.emplace_back(block(first + t, id), ranks_[first + t].state, ends[t]);
    }
    for (std::size_t i = 0; i < block(first, id).steps.size(); ++i) {
      std::vector<NumberTime> starts;
      NumberTime last{0};
      for (auto& run : runs) starts.push_back(run.start(i)), last.raise(starts.back());
      if (const std::uint32_t structure = structure_of(first, id, i); structure != no_inside) {
        for (std::uint32_t t = 0; t < runs.size(); ++t) {
          const std::int64_t end = meet_inside(first + t, structure, id, i, starts[t].value);
          runs[t].end_at(i, starts[t], {end}, [](auto&&...) {});
        }
        continue;
      }
      const bool meets = block(first, id).steps[i].meets;
      for (std::uint32_t t = 0; t < runs.size(); ++t) {
        runs[t].end(i, meets ? last : starts[t], [](auto&&...) {});
      }
    }
    for (auto& run : runs) run.finish();
  }

  std::uint32_t structure_of(std::uint32_t r, std::uint32_t id, std::size_t i) const {
    if (entities_.inside.kinds == 0) return no_inside;
    const std::uint32_t kind = entities_.inside.kind(id, i);
    if (kind == no_inside) return no_inside;
    return entities_.inside.structure(r / entities_.replicas, kind);
  }

  std::int64_t meet_inside(std::uint32_t r, std::uint32_t structure, std::uint32_t id,
                           std::size_t i, std::int64_t ready) {
    const std::size_t k = ranks_[r].met[structure]++;
    const Key key{group_of_[r].at(structure), inside_key};
    std::vector<const PricedOperation*>& prices = items_[key].prices;
    prices.resize(std::max(prices.size(), k + 1));
    prices[k] = &priced_.blocks[id][i];
    return part(key, k, r, ready);
  }

  static constexpr std::uint32_t inside_key = 0xfffffffe;
  using Key = std::pair<std::size_t, std::uint32_t>;  // entity; joint collective, or 0

  /// A rank's part in the k-th instance is ready: when it has ended, infinite if not yet.
  std::int64_t part(Key key, std::size_t k, std::uint32_t r, std::int64_t ready) {
    OracleItem& item = items_[key];
    item.ready.resize(std::max(item.ready.size(), k + 1));
    item.ready[k][r] = ready;
    return k < item.ends.size() ? item.ends[k] : infinite;
  }

  void meet(std::uint32_t r, const Instruction& each) {
    OracleRank& rank = ranks_[r];
    std::int64_t& host = rank.state[state_host].value;
    const auto replica = r % entities_.replicas;
    if (is_joint(each)) {
      const PricedOperation& price = priced_.collectives[each.target];
      host += price.launch.count();
      const std::int64_t ready = std::max(
          {host, made(r, each.input).end, rank.state[state_data].value + price.lead.count()});
      const std::size_t e = group_of_[r].at(entities_.structure_of_joint[each.target]);
      const std::int64_t end = part({e, each.target}, 0, r, ready);
      rank.state[state_data].value = end;
      rank.made.push_back({end, end});
      if (priced_.waits_for(program_.collectives[each.target])) host = std::max(host, end);
      return;
    }
    host += priced_.transfer_launch.count();
    const Key key{std::size_t{each.target} * entities_.replicas + replica, 0};
    if (each.op == Opcode::send) {
      const std::int64_t output = made(r, each.input).output;
      part(key, rank.sent[each.target]++, r, std::max(host, output));
      rank.made.push_back({output, output});
      return;
    }
    const std::int64_t end = part(key, rank.received[each.target]++, r, host);
    rank.made.push_back({end, end});
    if (priced_.waits_for_receive()) host = std::max(host, end);
  }

  /// The next instance begins when all its parts are ready and the one before has ended.
  bool begin_next(Key key, OracleItem& item) {
    const auto& [e, j] = key;
    const Entity& each = entities_.all[e];
    const std::size_t k = item.ends.size();
    const std::size_t parts = each.group ? each.members : 2;
    if (item.starts.size() > k || k >= item.ready.size()) return false;
    if (item.ready[k].size() < parts) return false;
    std::int64_t start = k > 0 ? item.ends[k - 1] : 0;
    for (const auto& [rank, ready] : item.ready[k]) start = std::max(start, ready);
    if (!finite(start)) return false;
    item.starts.push_back(start);
    const PricedOperation* price = j == inside_key ? item.prices[k]
                                   : each.group    ? &priced_.collectives[j]
                                                   : nullptr;
    const Time whole = price != nullptr ? price->duration : priced_.channels[each.id];
    const Time fluid = price != nullptr ? price->fluid : fluid_of_channel(priced_, each.id);
    if (each.flows == 0 || fluid == Time{}) {
      end(e, item, start + whole.count());
      return true;
    }
    ensure(active_[e].fluid == Time{}, "two instances of one template in the oracle");
    active_[e] = {fluid, start + (whole - fluid).count(), Int128{fluid.count()} * each.wire, 0};
    return false;
  }

  void end(std::size_t e, OracleItem& item, std::int64_t at) {
    item.ends.push_back(at);
    for (const std::uint32_t rank : entities_.members_of(entities_.all[e])) {
      units_[rank / entities_.tensor].changed = true;
    }
  }

  /// To the next instant: what has ended is known, what has had its latency is on its links.
  void pass(std::int64_t next) {
    for (std::size_t e = 0; e < active_.size(); ++e) {
      Active& each = active_[e];
      if (each.rate == 0) continue;
      each.remaining -= Int128{next - now_} * each.rate;
      if (each.remaining > 0) continue;
      each = {};
      for (auto& [key, item] : items_) {
        if (key.first == e && item.starts.size() > item.ends.size()) end(e, item, next);
      }
    }
    now_ = next;
    begun_ = true;
    for (const LinkChange& each : changes_) {
      if (each.at.count() == now_) capacity_[each.link] = wire_rate(each.bandwidth);
    }
  }

  /// Max-min over everything that is on a link, from nothing.
  void share() {
    std::vector<std::size_t> open;
    std::vector<WireRate> left = capacity_;
    for (std::size_t e = 0; e < active_.size(); ++e) {
      active_[e].rate = 0;
      if (active_[e].fluid > Time{} && active_[e].begin <= now_) open.push_back(e);
    }
    while (!open.empty()) {
      std::vector<std::uint64_t> flows(left.size(), 0);
      for (const std::size_t e : open) {
        for (const LinkFlows& each : flows_of(e)) flows[link(each)] += each.flows;
      }
      const auto room = [&](std::size_t e) {
        WireRate least = entities_.all[e].wire;
        for (const LinkFlows& each : flows_of(e)) {
          least = std::min<WireRate>(least, left[link(each)] / flows[link(each)]);
        }
        return least;
      };
      WireRate level = ~WireRate{};
      for (const std::size_t e : open) level = std::min(level, room(e));
      std::vector<std::size_t> stopped, rest;
      for (const std::size_t e : open) (room(e) == level ? stopped : rest).push_back(e);
      for (const std::size_t e : stopped) {
        active_[e].rate = level;
        if (level < entities_.all[e].wire) ++contended_;
        for (const LinkFlows& each : flows_of(e)) left[link(each)] -= each.flows * level;
      }
      open = rest;
    }
  }

  std::uint32_t link(const LinkFlows& flows) const { return entities_.links[flows.link]; }
  std::span<const LinkFlows> flows_of(std::size_t e) const {
    return entities_.flows_of(entities_.all[e]);
  }

  OracleTimes result() {
    OracleTimes found;
    for (const OracleRank& rank : ranks_) {
      found.ranks.push_back(queue_times(rank.state));
    }
    found.transfers.resize(entities_.channels);
    found.starts.assign(program_.collectives.size(), std::vector<Time>(entities_.ranks));
    found.ends = found.starts;
    for (const auto& [key, item] : items_) {
      const Entity& each = entities_.all[key.first];
      if (!each.group) {
        for (const std::int64_t end : item.ends) found.transfers[key.first].push_back(Time{end});
        continue;
      }
      if (key.second == inside_key) continue;
      for (const std::uint32_t rank : entities_.members_of(each)) {
        found.starts[key.second][rank] = Time{item.starts.at(0)};
        found.ends[key.second][rank] = Time{item.ends.at(0)};
      }
    }
    found.contended = contended_;
    return found;
  }

  const PricedProgram& priced_;
  const Program& program_;
  const NetworkSite& site_;
  traffic::Entities entities_;
  std::map<double, std::vector<ChainBlock>> blocks_;  // by speed
  std::vector<WireRate> capacity_;
  std::vector<LinkChange> changes_;
  std::vector<std::map<std::uint32_t, std::size_t>> group_of_;  // by rank and structure
  std::vector<OracleUnit> units_;
  std::vector<OracleRank> ranks_;
  std::map<Key, OracleItem> items_;
  std::vector<Active> active_;  // by entity
  std::int64_t now_ = 0;
  bool begun_ = false;
  int contended_ = 0;
};

}  // namespace

OracleTimes oracle_times(const PricedProgram& priced, const NetworkSite& site) {
  return NetworkOracle{priced, site}.run();
}

}  // namespace orrery::models
