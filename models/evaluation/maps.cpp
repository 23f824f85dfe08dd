#include "models/evaluation/sweep.hpp"

namespace orrery::models {

namespace {

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

  /// `in(j)` is read one number at a time: a wide load behind narrow stores would stall.
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
    Map result = identity();
    for (Map base = *this; count > 0; count /= 2, base = base.then(base)) {
      if (count % 2 == 1) result = result.then(base);
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

/// Runs a phase by one application of its map.
class MapRunner {
 public:
  explicit MapRunner(const PricedProgram& priced) {
    const Program& program = *priced.program;
    std::vector<Map> blocks;
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      blocks.push_back(map_of(priced, b));
    }
    phases_.reserve(program.phases.size());
    for (const Phase& phase : program.phases) {
      Map map = Map::identity();
      for (const Invocation& run : phase.invocations) {
        map = map.then(run.count == 1 ? blocks[run.block] : blocks[run.block].power(run.count));
      }
      phases_.push_back(map);
    }
  }

  void operator()(std::uint32_t phase, Chain<NumberTime>& state) const {
    const auto out = phases_[phase].apply([&](int j) { return state[j].value; });
    for (int i = 0; i < chain_states; ++i) state[i].value = out[i];
  }

 private:
  std::vector<Map> phases_;
};

}  // namespace

StepTimes evaluate_maps(const PricedProgram& priced) {
  return Sweep{priced, MapRunner{priced}}.run();
}

}  // namespace orrery::models
