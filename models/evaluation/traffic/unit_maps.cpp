#include "models/evaluation/traffic/unit_maps.hpp"

#include <algorithm>

#include "models/evaluation/max_plus_map.hpp"

namespace orrery::models::traffic {

namespace {

/// A time as a function of the member's own state, and of the latest state of its group.
struct UnitTime {
  AffineTime own, met;

  void raise(const UnitTime& other) {
    own.raise(other.own);
    met.raise(other.met);
  }
  void advance(std::int64_t by) {
    own.advance(by);
    met.advance(by);
  }
  /// The same after a collective of the group: what depended on the own state depends on the
  /// latest.
  void meet() {
    met.raise(own);
    own = {};
  }
};

}  // namespace

struct UnitMaps::Pair {
  MaxPlusMap own, met;

  static Pair identity() {
    Pair pair{MaxPlusMap::identity(), {}};
    for (auto& column : pair.met.columns) column.fill(never);
    return pair;
  }

  Pair then(const Pair& next) const {
    MaxPlusMap any = own;
    any.raise(met);
    Pair both{own.then(next.own), any.then(next.met)};
    both.met.raise(met.then(next.own));
    return both;
  }
};

UnitMaps::Pair UnitMaps::pair_of(const ChainBlock& block) {
  Chain<UnitTime> state;
  for (int i = 0; i < chain_states; ++i) state[i].own.coefficients[i] = 0;
  std::vector<UnitTime> ends;
  BlockRun<UnitTime> run{block, state, ends};
  for (std::size_t i = 0; i < block.steps.size(); ++i) {
    UnitTime start = run.start(i);
    if (block.steps[i].meets) start.meet();
    run.end(i, start, [](auto&&...) {});
  }
  run.finish();
  Chain<AffineTime> own, met;
  for (int i = 0; i < chain_states; ++i) {
    own[i] = state[i].own;
    met[i] = state[i].met;
  }
  return {MaxPlusMap::of(own), MaxPlusMap::of(met)};
}

/// Drops the entries that stay as they are and on which no other entry depends.
UnitMaps::ReducedMap UnitMaps::reduced(const Pair& pair) {
  ReducedMap map;
  const Pair none = Pair::identity();
  for (int i = 0; i < chain_states; ++i) {
    bool stays = true;
    for (int j = 0; j < chain_states; ++j) {
      for (const auto& [from, to] : {std::pair{i, j}, std::pair{j, i}}) {
        stays = stays && pair.own.columns[from][to] == none.own.columns[from][to] &&
                pair.met.columns[from][to] == never;
      }
    }
    if (!stays) map.states[map.size++] = static_cast<std::uint8_t>(i);
  }
  for (int j = 0; j < map.size; ++j) {
    for (int i = 0; i < map.size; ++i) {
      map.own[j][i] = pair.own.columns[map.states[j]][map.states[i]];
      map.met[j][i] = pair.met.columns[map.states[j]][map.states[i]];
    }
  }
  return map;
}

UnitMaps::UnitMaps(const Program& program, const std::vector<ChainBlock>& blocks) {
  std::vector<Pair> pairs;
  for (const ChainBlock& block : blocks) pairs.push_back(pair_of(block));
  map_of_phase_ =
      each_phase_map(program, pairs, [&](const Pair& all) { maps_.push_back(reduced(all)); });
}

void UnitMaps::ReducedMap::run(const Chain<NumberTime>& latest, States members) const {
  std::array<std::int64_t, chain_states> together;
  together.fill(never);
  for (int j = 0; j < size; ++j) {
    const std::int64_t x = latest[states[j]].value;
    for (int i = 0; i < size; ++i) together[i] = std::max(together[i], met[j][i] + x);
  }
  for (Chain<NumberTime>* member : members) {
    std::array<std::int64_t, chain_states> out = together;
    for (int j = 0; j < size; ++j) {
      const std::int64_t x = (*member)[states[j]].value;
      for (int i = 0; i < size; ++i) out[i] = std::max(out[i], own[j][i] + x);
    }
    for (int i = 0; i < size; ++i) (*member)[states[i]].value = out[i];
  }
}

}  // namespace orrery::models::traffic
