#pragma once
// How anything is timed here: the result is checked first, then a warm-up, then runs until their
// spread settles or the point's share of the budget is spent, in a random order of points so that
// drift falls on all of them alike. A fixed piece of work before and after each batch of runs shows
// whether the machine was disturbed (a throttled clock, a neighbour): such a batch is discarded and
// counted. Every kept run is kept. Leaves out what is timed: see calibrate/bench/.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sim/quantity.hpp"
#include "sim/statistics.hpp"

namespace orrery::calibrate {

/// Where time comes from; a test brings its own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() = 0;
  /// Time of a fixed piece of work on this machine, of about 0.1 ms.
  virtual Time reference_work() = 0;
  /// Processor time of the calling thread so far: what a preempted thread does not get.
  virtual Time busy() = 0;
};

/// The machine's monotonic clock.
std::unique_ptr<Clock> machine_clock();

/// One thing to time. Its parts are timed in one go, one after another.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string name() const = 0;
  virtual std::size_t parts() const = 0;
  /// Takes memory, computes once and compares. Errors  a wrong result: RunFailure
  virtual void prepare() = 0;
  /// Once: one time for each part. Whether the processor was its own meanwhile, as far as the
  /// subject knows: other runs are discarded.
  virtual bool run(std::vector<Time>& times) = 0;
  /// Gives memory back.
  virtual void finish() = 0;
};

struct Rules {
  int warm_up = 2;
  int least_runs = 5;
  int most_runs = 2000;
  double settled = 0.01;            // interquartile range over median of a run's whole time
  double disturbed = 1.1;           // reference work over its best: above this a batch is discarded
  Time batch{10'000'000'000};       // 10 ms between two looks at the reference
  Time point{500'000'000'000};      // 0.5 s: the most that one point takes
  Time budget{60'000'000'000'000};  // 60 s for all of them
  bool watches_host = true;         // false: the reference's pace says nothing of the subjects
  bool goes_on = false;             // after a subject that fails; else its error is thrown
};

/// What was measured of one subject.
struct Measurement {
  std::string name;
  std::vector<std::vector<Time>> parts;  // every kept run of every part
  int discarded_runs = 0;
  double spread = 0;       // interquartile range over median of the whole
  bool settled = false;    // ... came below the rule's
  bool disturbed = false;  // no batch was undisturbed: the least disturbed one is kept

  std::size_t runs() const { return parts.empty() ? 0 : parts.front().size(); }
  /// Errors  a part without a run: ContractError
  Time median(std::size_t part) const;
};

/// Interquartile range over median. 0 for less than two values.
double relative_spread(const std::vector<Time>& values);

/// Says how far it is; false: stop with what is there.
using Watcher = std::function<bool(std::size_t done, std::size_t all)>;
/// Gets each measurement when it is made.
using Taker = std::function<void(const Measurement&)>;

class Harness {
 public:
  /// Clock outlives the harness; the budget begins now. `seed` settles the order of points.
  Harness(Clock& clock, Rules rules, std::uint64_t seed);

  /// Measures all that the budget allows, each once, within `share` of what is left of it.
  /// Subjects that the budget or the watcher left out are not in the answer; order as given.
  std::vector<Measurement> measure(const std::vector<Subject*>& subjects, double share,
                                   const Watcher& watcher = {}, const Taker& taker = {});

  /// The whole budget again, from now on: what came before was setting up.
  void start() { end_ = clock_.now() + rules_.budget; }
  /// What took so long was no measuring.
  void extend(Time by) { end_ += by; }
  Time left();
  int discarded_runs() const { return discarded_; }
  /// Of subjects that failed, `NAME: WHY`.
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  Measurement measure_one(Subject& subject, Time limit);
  struct Batch;
  Batch run_batch(Subject& subject, Time limit);
  static bool less_disturbed(const Batch& batch, const std::optional<Batch>& other);

  Clock& clock_;
  Rules rules_;
  std::mt19937_64 order_;
  Time end_{};
  Time best_reference_{};
  int discarded_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace orrery::calibrate
