#pragma once
// The procedure of all timing: check the result, warm up, then run until the spread settles or the
// point's share of the budget is spent. Points are measured in random order so that drift affects
// all of them alike. A fixed reference work before and after each batch of runs shows whether the
// machine was disturbed (a throttled clock, a neighbour): such a batch is discarded and counted.
// All other runs are stored. Leaves out what is timed: see calibrate/bench/.

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

/// Source of time; tests substitute their own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() = 0;
  /// Runs a fixed piece of work of about 0.1 ms; returns its time.
  virtual Time reference_work() = 0;
  /// CPU time of the calling thread so far; it does not advance while the thread is preempted.
  virtual Time busy() = 0;
};

/// The machine's monotonic clock.
std::unique_ptr<Clock> machine_clock();

/// One thing to time. A run times all of its parts, one after another.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string name() const = 0;
  virtual std::size_t parts() const = 0;
  /// Allocates memory, runs once and checks the result. Errors  a wrong result: RunFailure
  virtual void prepare() = 0;
  /// Runs once; sets one time for each part. Returns false if the subject knows that the run was
  /// disturbed: such runs are discarded.
  virtual bool run(std::vector<Time>& times) = 0;
  /// Frees memory.
  virtual void finish() = 0;
};

struct Rules {
  int warm_up = 2;
  int least_runs = 5;
  int most_runs = 2000;
  double settled = 0.01;            // interquartile range over median of a run's whole time
  double disturbed = 1.1;           // reference work over its best: above this a batch is discarded
  Time batch{10'000'000'000};       // 10 ms between two runs of the reference work
  Time point{500'000'000'000};      // 0.5 s: the most that one point takes
  Time budget{60'000'000'000'000};  // 60 s for all of them
  bool watches_host = true;         // false: the reference work is ignored
  bool goes_on = false;             // goes on after a subject fails; else its error is thrown
};

/// What was measured of one subject.
struct Measurement {
  std::string name;
  std::vector<std::vector<Time>> parts;  // every kept run of every part
  int discarded_runs = 0;
  double spread = 0;       // interquartile range over median of a run's whole time
  bool settled = false;    // the spread came below `Rules::settled`
  bool disturbed = false;  // no batch was undisturbed: the least disturbed one is kept

  std::size_t runs() const { return parts.empty() ? 0 : parts.front().size(); }
  /// Errors  a part without a run: ContractError
  Time median(std::size_t part) const;
};

/// Interquartile range over median. 0 for less than two values.
double relative_spread(const std::vector<Time>& values);

/// Reports progress; returning false stops with the results so far.
using Watcher = std::function<bool(std::size_t done, std::size_t all)>;
/// Called with each measurement when it is made.
using Taker = std::function<void(const Measurement&)>;

class Harness {
 public:
  /// The clock must outlive the harness; the budget begins now. `seed` determines the order of
  /// points.
  Harness(Clock& clock, Rules rules, std::uint64_t seed);

  /// Measures each subject once, as far as `share` of the remaining budget allows. The answer is in
  /// the order given, without subjects that the budget or the watcher left out.
  std::vector<Measurement> measure(const std::vector<Subject*>& subjects, double share,
                                   const Watcher& watcher = {}, const Taker& taker = {});

  /// Restarts the whole budget now, after setting up.
  void start() { end_ = clock_.now() + rules_.budget; }
  /// Extends the budget by time that was not spent on measuring.
  void extend(Time by) { end_ += by; }
  Time left();
  int discarded_runs() const { return discarded_; }
  /// The subjects that failed, `NAME: WHY`.
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
