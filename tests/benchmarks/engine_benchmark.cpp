// The hold model: N events are pending; each that fires schedules one more. per_event is pop,
// handler and push. The same program runs on a 4-ary heap of 16-byte keys, the best of the heaps.
// Targets at 1e2 / 1e4 / 1e6 pending, on a core where the heap takes 35 / 67 / 526 ns:
// exponential 40 / 55 / 130 ns, ties 25 / 25 / 50 ns.

#include <benchmark/benchmark.h>

#include "sim/engine.hpp"
#include "tests/benchmarks/hold.hpp"

namespace orrery {
namespace {

/// Receives every signal and answers with one more.
class Holder {
 public:
  Holder(Engine& engine, Spread spread)
      : engine_{engine}, kind_{engine.add_kind<&Holder::hear>(*this)}, increments_{spread} {}
  void hear(Engine::Word word) {
    ++events_;
    engine_.signal(engine_.now() + increments_.next(), kind_, word);
  }
  std::int64_t events() const { return events_; }

 private:
  Engine& engine_;
  Engine::Kind kind_;
  Increments increments_;
  std::int64_t events_ = 0;
};

void engine_signals(benchmark::State& state, Spread spread) {
  Engine engine;
  Holder holder{engine, spread};
  for (std::int64_t i = 0; i < state.range(0); ++i) holder.hear(static_cast<Engine::Word>(i));
  const Time step = window(spread, state.range(0));
  // Each event has fired a few times before the clock counts.
  while (holder.events() < 4 * state.range(0)) engine.run_until(engine.now() + step);
  const std::int64_t before = holder.events();
  for (auto _ : state) engine.run_until(engine.now() + step);
  report(state, holder.events() - before);
}

/// The public `after` with a capture of 24 bytes.
void engine_handlers(benchmark::State& state, Spread spread) {
  struct Again {
    Engine* engine;
    Increments* increments;
    std::int64_t* events;
    void operator()() {
      ++*events;
      engine->after(increments->next(), *this);
    }
  };
  Engine engine;
  Increments increments{spread};
  std::int64_t events = 0;
  for (std::int64_t i = 0; i < state.range(0); ++i) Again{&engine, &increments, &events}();
  const Time step = window(spread, state.range(0));
  while (events < 4 * state.range(0)) engine.run_until(engine.now() + step);
  const std::int64_t before = events;
  for (auto _ : state) engine.run_until(engine.now() + step);
  report(state, events - before);
}

#define ORRERY_HOLD(function, spread) \
  BENCHMARK_CAPTURE(function, spread, Spread::spread)->Arg(100)->Arg(10'000)->Arg(1'000'000)

ORRERY_HOLD(engine_signals, exponential);
ORRERY_HOLD(engine_signals, ties);
ORRERY_HOLD(engine_handlers, exponential);
ORRERY_HOLD(engine_handlers, ties);
ORRERY_HOLD(four_ary_heap, exponential);
ORRERY_HOLD(four_ary_heap, ties);

}  // namespace
}  // namespace orrery
