#include "tests/models/evaluation/traffic/network_oracle.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/traffic/sources.hpp"
#include "models/program/opcodes.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

using traffic::TrafficSource;

constexpr std::int64_t infinite = std::int64_t{1} << 58;
bool finite(std::int64_t time) {
  return time < infinite;
}

struct OracleRank {
  Chain<NumberTime> state{};
  std::vector<InstructionTimes> made;
  std::vector<std::size_t> sent, received;  // by channel
  std::vector<std::size_t> met;             // by split of collectives inside blocks
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

/// A collective or transfer that is under way.
struct OracleActive {
  Time fluid{};  // 0: none
  std::int64_t begin = 0;
  Int128 remaining = 0;
  WireRate rate = 0, wire = 0;
  std::vector<LinkFlows> flows;  // by link of the site
};

std::int64_t ceiling(Int128 amount, WireRate rate) {
  return static_cast<std::int64_t>((amount + rate - 1) / rate);
}

/// The ranks, channels and groups of one job.
class JobOracle {
 public:
  JobOracle(const PricedProgram& priced, const NetworkSite& site)
      : priced_{priced},
        program_{*priced.program},
        site_{site},
        sources_{traffic::sources_of(priced, site)} {
    group_of_.resize(sources_.ranks);
    for (std::size_t e = 0; e < sources_.all.size(); ++e) {
      for (const std::uint32_t rank : sources_.members_of(sources_.all[e])) {
        if (sources_.all[e].group) group_of_[rank][sources_.all[e].id] = e;
      }
    }
    for (double speed : site.speeds) {
      if (!blocks_.count(speed)) add_blocks(speed);
    }
    if (!blocks_.count(1)) add_blocks(1);
    begin_step(0);
  }

  void begin_step(std::int64_t at) {
    begun_ = at;
    items_.clear();
    units_.clear();
    ranks_.clear();
    active_.assign(sources_.all.size(), {});
    for (std::size_t e = 0; e < active_.size(); ++e) {
      const TrafficSource& each = sources_.all[e];
      active_[e].wire = each.wire;
      for (const LinkFlows& flows : sources_.flows_of(each)) {
        active_[e].flows.push_back({sources_.links[flows.link], flows.flows});
      }
    }
    begin_units();
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

  std::vector<OracleActive>& active() { return active_; }

  /// What a source had under way has ended.
  void ended(std::size_t e, std::int64_t now) {
    OracleActive& each = active_[e];
    each.fluid = Time{};
    each.rate = 0;
    for (auto& [key, item] : items_) {
      if (key.first == e && item.starts.size() > item.ends.size()) end(e, item, now);
    }
  }

  bool finished() const {
    for (const OracleRank& rank : ranks_) {
      for (const NumberTime each : rank.state) {
        if (!finite(each.value)) return false;
      }
    }
    for (const auto& [key, item] : items_) {
      if (item.starts.size() > item.ends.size()) return false;
    }
    return true;
  }

  std::int64_t last() const {
    std::int64_t last = begun_ + priced_.bound.time.count();
    for (const OracleRank& rank : ranks_) {
      last = std::max(last, queue_times(rank.state).last().count());
    }
    for (const auto& [key, item] : items_) {
      for (const std::int64_t end : item.ends) last = std::max(last, end);
    }
    return last;
  }

  OracleTimes result() const {
    OracleTimes found;
    for (const OracleRank& rank : ranks_) found.ranks.push_back(queue_times(rank.state));
    found.transfers.resize(sources_.channels);
    found.starts.assign(program_.collectives.size(), std::vector<Time>(sources_.ranks));
    found.ends = found.starts;
    for (const auto& [key, item] : items_) {
      const TrafficSource& each = sources_.all[key.first];
      if (!each.group) {
        for (const std::int64_t end : item.ends) found.transfers[key.first].push_back(Time{end});
        continue;
      }
      if (key.second == inside_key) continue;
      for (const std::uint32_t rank : sources_.members_of(each)) {
        found.starts[key.second][rank] = Time{item.starts.at(0)};
        found.ends[key.second][rank] = Time{item.ends.at(0)};
      }
    }
    return found;
  }

 private:
  void add_blocks(double speed) {
    const PricedProgram there = at_speed(priced_, speed);
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) blocks_[speed].emplace_back(there, b);
  }
  const ChainBlock& block(std::uint32_t rank, std::uint32_t id) const {
    return blocks_.at(site_.speeds.empty() ? 1 : site_.speeds[rank])[id];
  }

  void begin_units() {
    units_.resize(sources_.ranks / sources_.tensor);
    ranks_.resize(sources_.ranks);
    for (std::uint32_t r = 0; r < sources_.ranks; ++r) {
      OracleRank rank;
      for (NumberTime& each : rank.state) each.value = begun_;
      rank.state[state_host].value += priced_.step_launch.count();
      rank.state[state_data].value += priced_.carried_by(r / sources_.replicas).count();
      rank.sent.resize(program_.channels.size());
      rank.received.resize(program_.channels.size());
      rank.met.resize(sources_.splits.size());
      units_[r / sources_.tensor].ranks.push_back(rank);
    }
  }

  void unit(std::uint32_t u) {
    OracleUnit& unit = units_[u];
    const std::uint32_t first = u * sources_.tensor;
    const auto& list = program_.classes[first / sources_.replicas].instructions;
    std::copy(unit.ranks.begin(), unit.ranks.end(), ranks_.begin() + first);
    unit.changed = false;
    bool known = true;
    for (std::size_t i = unit.at; i < list.size(); ++i) {
      if (runs_phase(list[i])) phase(first, list[i]);
      for (std::uint32_t r = first; r < first + sources_.tensor; ++r) {
        if (!runs_phase(list[i])) meet(r, list[i]);
        known = known && finite(ranks_[r].made.back().end);
        for (const NumberTime each : ranks_[r].state) known = known && finite(each.value);
      }
      if (!known) continue;
      unit.at = i + 1;
      std::copy_n(ranks_.begin() + first, sources_.tensor, unit.ranks.begin());
    }
  }

  InstructionTimes made(std::uint32_t r, Token token) const {
    return token == no_token ? InstructionTimes{0, 0} : ranks_[r].made[token];
  }

  void phase(std::uint32_t first, const Instruction& each) {
    const std::uint32_t t = sources_.tensor;
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
    std::vector<std::vector<NumberTime>> ends(sources_.tensor);
    std::vector<BlockRun<NumberTime>> runs;
    for (std::uint32_t t = 0; t < sources_.tensor; ++t) {
      runs.emplace_back(block(first + t, id), ranks_[first + t].state, ends[t]);
    }
    for (std::size_t i = 0; i < block(first, id).steps.size(); ++i) {
      std::vector<NumberTime> starts;
      NumberTime last{0};
      for (auto& run : runs) starts.push_back(run.start(i)), last.raise(starts.back());
      if (const std::uint32_t split = split_of(first, id, i); split != no_kind) {
        for (std::uint32_t t = 0; t < runs.size(); ++t) {
          const std::int64_t end = meet_inside(first + t, split, id, i, starts[t].value);
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

  std::uint32_t split_of(std::uint32_t r, std::uint32_t id, std::size_t i) const {
    if (sources_.block_collectives.kinds == 0) return no_kind;
    const std::uint32_t kind = sources_.block_collectives.kind(id, i);
    if (kind == no_kind) return no_kind;
    return sources_.block_collectives.split(r / sources_.replicas, kind);
  }

  std::int64_t meet_inside(std::uint32_t r, std::uint32_t split, std::uint32_t id, std::size_t i,
                           std::int64_t ready) {
    const std::size_t k = ranks_[r].met[split]++;
    const Key key{group_of_[r].at(split), inside_key};
    std::vector<const PricedOperation*>& prices = items_[key].prices;
    prices.resize(std::max(prices.size(), k + 1));
    prices[k] = &priced_.blocks[id][i];
    return part(key, k, r, ready);
  }

  static constexpr std::uint32_t inside_key = 0xfffffffe;
  using Key = std::pair<std::size_t, std::uint32_t>;  // source; joint collective, or 0

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
    const auto replica = r % sources_.replicas;
    if (is_joint(each)) {
      const PricedOperation& price = priced_.collectives[each.target];
      host += price.launch.count();
      const std::int64_t ready = std::max(
          {host, made(r, each.input).end, rank.state[state_data].value + price.lead.count()});
      const std::size_t e = group_of_[r].at(sources_.split_of_joint[each.target]);
      const std::int64_t end = part({e, each.target}, 0, r, ready);
      rank.state[state_data].value = end;
      rank.made.push_back({end, end});
      if (priced_.waits_for(program_.collectives[each.target])) host = std::max(host, end);
      return;
    }
    host += priced_.transfer_launch.count();
    const Key key{std::size_t{each.target} * sources_.replicas + replica, 0};
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
    const TrafficSource& each = sources_.all[e];
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
    ensure(active_[e].fluid == Time{}, "two at once of one flow class in the oracle");
    active_[e].fluid = fluid;
    active_[e].begin = start + (whole - fluid).count();
    active_[e].remaining = Int128{fluid.count()} * each.wire;
    return false;
  }

  void end(std::size_t e, OracleItem& item, std::int64_t at) {
    item.ends.push_back(at);
    for (const std::uint32_t rank : sources_.members_of(sources_.all[e])) {
      units_[rank / sources_.tensor].changed = true;
    }
  }

  const PricedProgram& priced_;
  const Program& program_;
  const NetworkSite& site_;
  traffic::JobSources sources_;
  std::map<double, std::vector<ChainBlock>> blocks_;            // by speed
  std::vector<std::map<std::uint32_t, std::size_t>> group_of_;  // by rank and split
  std::vector<OracleUnit> units_;
  std::vector<OracleRank> ranks_;
  std::map<Key, OracleItem> items_;
  std::vector<OracleActive> active_;  // by source
  std::int64_t begun_ = 0;
};

/// Our job and the others, whose steps follow one another until ours has ended.
class NetworkOracle {
 public:
  NetworkOracle(const PricedProgram& priced, const NetworkSite& site) : site_{site} {
    for (const Bandwidth each : site.links) capacity_.push_back(wire_rate(each));
    jobs_.push_back(std::make_unique<JobOracle>(priced, site));
    for (std::size_t other = 0; other < site.others.size(); ++other) {
      sites_.push_back(std::make_unique<NetworkSite>(site_of_other(site, other)));
      jobs_.push_back(std::make_unique<JobOracle>(*site.others[other].priced, *sites_.back()));
    }
    step_ends_.resize(jobs_.size());
  }

  OracleTimes run() {
    for (;;) {
      evaluate();
      share();
      const std::int64_t next = next_instant();
      const bool done = jobs_[0]->finished();
      if (next == infinite || (jobs_.size() > 1 && done && next > jobs_[0]->last())) break;
      pass(next);
    }
    ensure(jobs_[0]->finished(), "the oracle stands");
    OracleTimes found = jobs_[0]->result();
    found.contended = contended_;
    for (std::size_t j = 1; j < jobs_.size(); ++j) found.other_steps.push_back(step_ends_[j]);
    return found;
  }

 private:
  /// A job that has ended begins again when the last of its ends is now.
  void evaluate() {
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      JobOracle& job = *jobs_[j];
      while (job.evaluate()) {
      }
      if (j == 0 || !job.finished() || job.last() != now_ || !begun_) continue;
      step_ends_[j].push_back(Time{now_});
      job.begin_step(now_);
      while (job.evaluate()) {
      }
    }
  }

  std::int64_t next_instant() {
    std::int64_t next = infinite;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (j > 0 && jobs_[j]->finished()) next = std::min(next, jobs_[j]->last());
      for (const OracleActive& each : jobs_[j]->active()) {
        if (each.fluid > Time{} && each.begin > now_) next = std::min(next, each.begin);
        if (each.rate > 0) next = std::min(next, now_ + ceiling(each.remaining, each.rate));
      }
    }
    for (const LinkChange& each : site_.changes) {
      if (each.at.count() > now_ || !begun_) next = std::min(next, each.at.count());
    }
    return next;
  }

  /// To the next instant: what has ended is known, what has had its latency is on its links.
  void pass(std::int64_t next) {
    for (const auto& job : jobs_) {
      for (std::size_t e = 0; e < job->active().size(); ++e) {
        OracleActive& each = job->active()[e];
        if (each.rate == 0) continue;
        each.remaining -= Int128{next - now_} * each.rate;
        if (each.remaining <= 0) job->ended(e, next);
      }
    }
    now_ = next;
    begun_ = true;
    for (const LinkChange& each : site_.changes) {
      if (each.at.count() == now_) capacity_[each.link] = wire_rate(each.bandwidth);
    }
  }

  /// Max-min over everything that is on a link, from nothing.
  void share() {
    std::vector<OracleActive*> open;
    std::vector<WireRate> left = capacity_;
    for (const auto& job : jobs_) {
      for (OracleActive& each : job->active()) {
        each.rate = 0;
        if (each.fluid > Time{} && each.begin <= now_) open.push_back(&each);
      }
    }
    while (!open.empty()) {
      std::vector<std::uint64_t> flows(left.size(), 0);
      for (const OracleActive* each : open) {
        for (const LinkFlows& of : each->flows) flows[of.link] += of.flows;
      }
      const auto room = [&](const OracleActive* each) {
        WireRate least = each->wire;
        for (const LinkFlows& of : each->flows) {
          least = std::min<WireRate>(least, left[of.link] / flows[of.link]);
        }
        return least;
      };
      WireRate level = ~WireRate{};
      for (const OracleActive* each : open) level = std::min(level, room(each));
      std::vector<OracleActive*> stopped, rest;
      for (OracleActive* each : open) (room(each) == level ? stopped : rest).push_back(each);
      for (OracleActive* each : stopped) {
        each->rate = level;
        if (level < each->wire) ++contended_;
        for (const LinkFlows& of : each->flows) left[of.link] -= of.flows * level;
      }
      open = rest;
    }
  }

  const NetworkSite& site_;
  std::vector<std::unique_ptr<NetworkSite>> sites_;  // of others
  std::vector<std::unique_ptr<JobOracle>> jobs_;
  std::vector<WireRate> capacity_;
  std::vector<std::vector<Time>> step_ends_;  // by job
  std::int64_t now_ = 0;
  bool begun_ = false;
  int contended_ = 0;
};

}  // namespace

OracleTimes oracle_times(const PricedProgram& priced, const NetworkSite& site) {
  return NetworkOracle{priced, site}.run();
}

}  // namespace orrery::models
