#pragma once
// A GPU made of threads, with CUDA's manners: its queues do in order what was enqueued, whenever
// they like; marks and waits put queues in order, `write` overtakes all of them, and only `finish`
// and `read` bring the host after them. What they compute is the CPU's.
//
// Every touch of memory is checked (happens_before.hpp), so a missing wait is an error and not a
// chance; random delays make it one of the computed bits too.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/graphs.hpp"
#include "tests/executor/happens_before.hpp"

namespace orrery::executor {

struct QueuedSettings {
  Arithmetic arithmetic = Arithmetic::real;
  std::uint64_t seed = 1;  // of the delays
  bool checks = true;      // of every touch
  /// Planted: is this wait of one queue for a mark on another left out?
  std::function<bool(models::Lane waits, models::Lane marked)> forget = {};
  /// Planted: which graph is launched when one is asked for?
  std::function<std::uint32_t(std::uint32_t)> mistaken = {};
  /// Planted: what goes wrong when this operation is captured.
  std::string uncapturable = {};
};

class QueuedDevice final : public Device {
 public:
  explicit QueuedDevice(QueuedSettings settings);
  ~QueuedDevice() override;

  std::string description() const override { return "threads as queues"; }
  bool synchronous() const override { return false; }
  std::string refusal(const models::Operation& op) const override { return host_.refusal(op); }

  std::byte* allocate(Bytes size) override { return host_.allocate(size); }
  void release(std::byte* memory) noexcept override;
  std::byte* allocate_host(Bytes size) override { return host_.allocate(size); }
  void release_host(std::byte* memory) noexcept override { release(memory); }
  void read(const std::byte* from, void* to, Bytes size) override;
  void write(const void* from, std::byte* to, Bytes size) override;
  void zero(std::byte* memory, Bytes size) override;
  void run(const Kernel& kernel) override;
  Graphs* graphs() const override { return graphs_.get(); }
  void copy(const std::byte* from, std::byte* to, Bytes size, models::Lane queue) override;

  Mark mark(models::Lane queue) override;
  void wait(models::Lane queue, Mark until) override;
  void finish() override;
  Time time_of(Mark mark) override;
  void forget_marks() override;

  // For a fabric on this device's queues, and on lanes of its own next to them.
  struct Touch {
    const std::byte* memory;
    std::int64_t bytes;
    bool writes;
  };
  static std::size_t lane_of(models::Lane queue) { return static_cast<std::size_t>(queue); }
  std::size_t add_lane();
  void enqueue(std::size_t lane, std::string_view name, const std::vector<Touch>& touches,
               std::function<void()> work);
  Mark mark_lane(std::size_t lane);
  void wait_lane(std::size_t lane, Mark until);
  bool reached(Mark mark);
  /// All lanes have ended, well or not.
  void drain() noexcept;

 private:
  struct Event {
    std::size_t lane = 0;
    HappensBefore::Clock ended{};
    bool reached = false;
    Time time{};
  };
  /// One kernel's launch.
  struct Launch {
    std::size_t lane;
    std::string_view name;
    std::vector<Touch> touches;
    std::function<void()> work;
  };
  /// Graphs are lists of launches. What a capture may not meet is an error, as CUDA has it.
  class Recorder final : public Graphs {
   public:
    explicit Recorder(QueuedDevice& device) : device_{device} {}
    Graph capture(const std::function<void()>& work) override;
    void launch(const Graph& graph) override;
    void release(const Graph& graph) noexcept override;

    bool records() const { return records_; }
    /// Enqueues it, or notes it in the graph.
    void take(const models::Operation& operation, Launch launch);

   private:
    QueuedDevice& device_;
    bool records_ = false;
    std::set<const models::Operation*> ran_;
    std::vector<Launch> recorded_;
    std::map<std::uint32_t, std::vector<Launch>> made_;
    std::uint32_t next_ = 0;
  };
  struct Task {
    std::function<void()> work;
    bool always = false;  // marks and waits, also after a failure
  };
  struct Worker {
    std::deque<Task> tasks;  // the first one is running
    std::unique_ptr<CpuDevice> unit;
    std::minstd_rand random;
    std::thread thread;
  };

  void push(std::size_t lane, Task task);
  void work(Worker& lane);
  static void dawdle(Worker& lane);

  void refuse_while_recording(const char* what) const;

  QueuedSettings settings_;
  CpuDevice host_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  HappensBefore order_;  // of the host's thread alone
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Worker>> lanes_;  // models::Lane's first
  std::map<std::uint32_t, std::shared_ptr<Event>> events_;
  std::vector<std::uint32_t> of_step_;  // marks that `forget_marks` may forget
  std::uint32_t next_event_ = 0;
  std::unique_ptr<Recorder> graphs_ = std::make_unique<Recorder>(*this);
  std::exception_ptr error_;
  bool ends_ = false;
};

}  // namespace orrery::executor
