#include <vector>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/max_plus_map.hpp"
#include "models/evaluation/phase_maps.hpp"
#include "models/evaluation/step_times.hpp"
#include "models/evaluation/sweep.hpp"

namespace orrery::models {

namespace {

MaxPlusMap map_of(const PricedProgram& priced, std::size_t block) {
  Chain<AffineTime> state;
  for (int i = 0; i < chain_states; ++i) state[i].coefficients[i] = 0;
  std::vector<AffineTime> ends;
  run_block(ChainBlock{priced, block}, state, ends, [](auto&&...) {});
  return MaxPlusMap::of(state);
}

/// Does a map leave an entry of the state as it is, and no other entry depends on it?
bool stays(const MaxPlusMap& map, int state) {
  for (int other = 0; other < chain_states; ++other) {
    const std::int64_t expected = other == state ? 0 : never;
    if (map.columns[state][other] != expected || map.columns[other][state] != expected) {
      return false;
    }
  }
  return true;
}

}  // namespace

PhaseMaps::ShortMap::ShortMap(const MaxPlusMap& map) {
  for (auto& column : columns_) column.fill(never);
  for (std::uint8_t i = 0; i < chain_states; ++i) {
    if (!stays(map, i)) states_[size_++] = i;
  }
  for (int j = 0; j < size_; ++j) {
    for (int i = 0; i < size_; ++i) columns_[j][i] = map.columns[states_[j]][states_[i]];
  }
}

template <int n>
void PhaseMaps::ShortMap::apply_to(Chain<NumberTime>& state) const {
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

inline void PhaseMaps::ShortMap::apply(Chain<NumberTime>& state) const {
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

PhaseMaps::PhaseMaps(const PricedProgram& priced) {
  std::vector<MaxPlusMap> blocks;
  for (std::size_t b = 0; b < priced.program->blocks.size(); ++b) {
    blocks.push_back(map_of(priced, b));
  }
  map_of_phase_ = each_phase_map(*priced.program, blocks,
                                 [&](const MaxPlusMap& map) { maps_.emplace_back(map); });
}

void PhaseMaps::run(std::uint32_t phase, Chain<NumberTime>& state) const {
  maps_[map_of_phase_[phase]].apply(state);
}

StepTimes evaluate_maps(const PricedProgram& priced) {
  const PhaseMaps maps{priced};
  const auto run = [&maps](std::uint32_t phase, Chain<NumberTime>& state) {
    maps.run(phase, state);
  };
  return Sweep{priced, run}.run();
}

}  // namespace orrery::models
