#include <map>
#include <utility>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/max_plus_map.hpp"
#include "models/evaluation/phase_maps.hpp"
#include "models/evaluation/step_times.hpp"
#include "models/evaluation/sweep.hpp"

namespace orrery::models {

namespace phase_maps {

MaxPlusMap map_of(const PricedProgram& priced, std::size_t block) {
  Chain<AffineTime> state;
  for (int i = 0; i < chain_states; ++i) state[i].coefficients[i] = 0;
  std::vector<AffineTime> ends;
  run_block(ChainBlock{priced, block}, state, ends, [](auto&&...) {});
  return MaxPlusMap::of(state);
}

/// A map without the entries that it leaves as they are and on which no other entry depends.
class ShortMap {
 public:
  explicit ShortMap(const MaxPlusMap& map) {
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
  static bool stays(const MaxPlusMap& map, int state) {
    for (int other = 0; other < chain_states; ++other) {
      const std::int64_t expected = other == state ? 0 : never;
      if (map.columns[state][other] != expected || map.columns[other][state] != expected) {
        return false;
      }
    }
    return true;
  }

  /// `n` is at least size_; coefficients beyond size_ are `never`.
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

/// Runs a phase by one application of its map. Phases that run the same blocks share one map.
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
    MaxPlusMap map = MaxPlusMap::identity();
    for (const auto& [block, count] : runs) map = map.then(power(blocks_[block], count));
    return ShortMap{map};
  }

  std::vector<MaxPlusMap> blocks_;
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
