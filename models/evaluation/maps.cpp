#include <map>
#include <utility>

#include "models/evaluation/phase_maps.hpp"
#include "models/evaluation/sweep.hpp"

namespace orrery::models {

namespace phase_maps {

/// A (max,+) map: out_i = max_j (column_j[i] + in_j).
struct Map {
  alignas(16) std::array<std::array<std::int64_t, chain_states>, chain_states> columns;

  static Map identity() {
    Map map;
    for (int j = 0; j < chain_states; ++j) {
      for (int i = 0; i < chain_states; ++i) map.columns[j][i] = i == j ? 0 : never;
    }
    return map;
  }

  static Map of(const Chain<AffineTime>& rows) {
    Map map;
    for (int j = 0; j < chain_states; ++j) {
      for (int i = 0; i < chain_states; ++i) map.columns[j][i] = rows[i].coefficients[j];
    }
    return map;
  }

  /// `in(j)` is read one number at a time: a wide load after narrow stores would stall.
  template <class In>
  std::array<std::int64_t, chain_states> apply(In&& in) const {
    std::array<std::int64_t, chain_states> out;
    out.fill(never);
    for (int j = 0; j < chain_states; ++j) {
      const std::int64_t x = in(j);
      for (int i = 0; i < chain_states; ++i) {
        const std::int64_t candidate = columns[j][i] + x;
        out[i] = candidate > out[i] ? candidate : out[i];
      }
    }
    return out;
  }

  /// This map, then `next`. What is never stays exactly never, so that sums cannot run away.
  Map then(const Map& next) const {
    Map both;
    for (int j = 0; j < chain_states; ++j) {
      auto column = next.apply([&](int i) { return columns[j][i]; });
      for (std::int64_t& each : column) each = each < never / 2 ? never : each;
      both.columns[j] = column;
    }
    return both;
  }

  /// Itself, `count` times.
  Map power(std::int64_t count) const {
    if (count == 1) return *this;
    Map result = identity();
    for (Map base = *this; count > 0; count /= 2) {
      if (count % 2 == 1) result = result.then(base);
      if (count > 1) base = base.then(base);
    }
    return result;
  }
};

Map map_of(const PricedProgram& priced, std::size_t block) {
  Chain<AffineTime> state;
  for (int i = 0; i < chain_states; ++i) state[i].coefficients[i] = 0;
  std::vector<AffineTime> ends;
  run_block(ChainBlock{priced, block}, state, ends, [](auto&&...) {});
  return Map::of(state);
}

/// A map without the states that it leaves as they are and that nothing else depends on.
class ShortMap {
 public:
  explicit ShortMap(const Map& map) {
    for (std::uint8_t i = 0; i < chain_states; ++i) {
      if (!stays(map, i)) states_[size_++] = i;
    }
    for (int j = 0; j < size_; ++j) {
      for (int i = 0; i < size_; ++i) columns_[j][i] = map.columns[states_[j]][states_[i]];
    }
  }

  void apply(Chain<NumberTime>& state) const {
    switch (size_) {
      case 0:
        return;
      case 1:
        return apply_to<1>(state);
      case 2:
        return apply_to<2>(state);
      case 3:
        return apply_to<3>(state);
      case 4:
        return apply_to<4>(state);
      default:
        return apply_to<chain_states>(state);
    }
  }

 private:
  static bool stays(const Map& map, int state) {
    for (int other = 0; other < chain_states; ++other) {
      const std::int64_t expected = other == state ? 0 : never;
      if (map.columns[state][other] != expected || map.columns[other][state] != expected) {
        return false;
      }
    }
    return true;
  }

  /// `n` is at least size_; beyond it all is never.
  template <int n>
  void apply_to(Chain<NumberTime>& state) const {
    std::array<std::int64_t, n> out;
    for (int i = 0; i < n; ++i) out[i] = columns_[0][i] + state[states_[0]].value;
    for (int j = 1; j < n; ++j) {
      const std::int64_t x = state[states_[j]].value;
      for (int i = 0; i < n; ++i) {
        const std::int64_t candidate = columns_[j][i] + x;
        out[i] = candidate > out[i] ? candidate : out[i];
      }
    }
    for (int i = 0; i < (n < chain_states ? n : size_); ++i) state[states_[i]].value = out[i];
  }

  std::array<std::array<std::int64_t, chain_states>, chain_states> columns_ = [] {
    std::array<std::array<std::int64_t, chain_states>, chain_states> none;
    for (auto& column : none) column.fill(never);
    return none;
  }();
  std::array<std::uint8_t, chain_states> states_{};
  std::uint8_t size_ = 0;
};

/// Runs a phase by one application of its map. Phases of the same blocks share theirs.
class MapRunner {
 public:
  explicit MapRunner(const PricedProgram& priced) {
    const Program& program = *priced.program;
    for (std::size_t b = 0; b < program.blocks.size(); ++b) blocks_.push_back(map_of(priced, b));
    std::map<Runs, std::uint32_t> known;
    for (const Phase& phase : program.phases) {
      Runs runs;
      for (const Invocation& each : phase.invocations) runs.emplace_back(each.block, each.count);
      const auto [found, fresh] = known.try_emplace(std::move(runs), maps_.size());
      if (fresh) maps_.push_back(map_of_runs(found->first));
      map_of_phase_.push_back(found->second);
    }
  }

  void operator()(std::uint32_t phase, Chain<NumberTime>& state) const {
    maps_[map_of_phase_[phase]].apply(state);
  }

 private:
  using Runs = std::vector<std::pair<std::uint32_t, std::int64_t>>;  // block, count

  ShortMap map_of_runs(const Runs& runs) const {
    Map map = Map::identity();
    for (const auto& [block, count] : runs) map = map.then(blocks_[block].power(count));
    return ShortMap{map};
  }

  std::vector<Map> blocks_;
  std::vector<ShortMap> maps_;
  std::vector<std::uint32_t> map_of_phase_;
};

}  // namespace phase_maps

struct PhaseMaps::Maps {
  phase_maps::MapRunner runner;
};

PhaseMaps::PhaseMaps(const PricedProgram& priced)
    : maps_{std::make_unique<Maps>(Maps{phase_maps::MapRunner{priced}})} {}
PhaseMaps::PhaseMaps(PhaseMaps&&) noexcept = default;
PhaseMaps::~PhaseMaps() = default;

void PhaseMaps::run(std::uint32_t phase, Chain<NumberTime>& state) const {
  maps_->runner(phase, state);
}

StepTimes evaluate_maps(const PricedProgram& priced) {
  return Sweep{priced, phase_maps::MapRunner{priced}}.run();
}

}  // namespace orrery::models
