#include "tests/executor/queued_device.hpp"

#include <algorithm>
#include <chrono>

#include "executor/device/copy_bytes.hpp"
#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

constexpr std::size_t compute = static_cast<std::size_t>(models::Lane::compute);

std::int64_t size_of(const View& view) {
  return view.elements() * bits(view.dtype) / 8;
}

}  // namespace

QueuedDevice::QueuedDevice(QueuedSettings settings)
    : settings_{std::move(settings)}, host_{settings_.arithmetic} {
  for (int queue = 0; queue < models::lane_count; ++queue) add_lane();
}

QueuedDevice::~QueuedDevice() {
  drain();
  {
    const std::lock_guard guard{lock_};
    ends_ = true;
    changed_.notify_all();
  }
  for (const auto& lane : lanes_) {
    if (lane->thread.joinable()) lane->thread.join();
  }
}

std::size_t QueuedDevice::add_lane() {
  auto lane = std::make_unique<Worker>();
  lane->unit = std::make_unique<CpuDevice>(settings_.arithmetic);
  lane->random.seed(static_cast<std::uint32_t>(settings_.seed * 1000 + lanes_.size() + 1));
  const std::lock_guard guard{lock_};
  lanes_.push_back(std::move(lane));
  ensure(lanes_.size() <= HappensBefore::most_lanes, "more lanes than a test's device has");
  return lanes_.size() - 1;
}

/// A thread comes with the first task: most queues never have one.
void QueuedDevice::push(std::size_t lane, Task task) {
  refuse_while_recording("a queue is given something");
  const std::lock_guard guard{lock_};
  Worker& to = *lanes_[lane];
  to.tasks.push_back(std::move(task));
  if (!to.thread.joinable()) to.thread = std::thread{[this, &to] { work(to); }};
  changed_.notify_all();
}

/// Now and then a task begins late.
void QueuedDevice::dawdle(Worker& lane) {
  const auto drawn = static_cast<std::int64_t>(lane.random() % 1024);
  if (drawn < 32) std::this_thread::sleep_for(std::chrono::microseconds{drawn * 10});
  if (drawn > 512) std::this_thread::yield();
}

void QueuedDevice::work(Worker& lane) {
  std::unique_lock guard{lock_};
  while (true) {
    changed_.wait(guard, [&] { return ends_ || !lane.tasks.empty(); });
    if (lane.tasks.empty()) return;
    Task& task = lane.tasks.front();
    const bool runs = task.always || !error_;
    guard.unlock();
    std::exception_ptr failed;
    try {
      dawdle(lane);
      if (runs) task.work();
    } catch (...) {
      failed = std::current_exception();
    }
    guard.lock();
    if (failed && !error_) error_ = failed;
    lane.tasks.pop_front();
    changed_.notify_all();
  }
}

void QueuedDevice::enqueue(std::size_t lane, std::string_view name,
                           const std::vector<Touch>& touches, std::function<void()> work) {
  if (settings_.checks) {
    order_.begin(lane);
    for (const Touch& each : touches) {
      order_.touch(lane, name, each.memory, each.bytes, each.writes);
    }
  }
  push(lane, {std::move(work), false});
}

void QueuedDevice::release(std::byte* memory) noexcept {
  drain();
  host_.release(memory);
}

void QueuedDevice::drain() noexcept {
  std::unique_lock guard{lock_};
  changed_.wait(guard, [&] {
    return std::all_of(lanes_.begin(), lanes_.end(),
                       [](const auto& lane) { return lane->tasks.empty(); });
  });
}

void QueuedDevice::finish() {
  refuse_while_recording("the host waits");
  const auto queues = static_cast<std::ptrdiff_t>(models::lane_count);
  {
    std::unique_lock guard{lock_};
    changed_.wait(guard, [&] {
      return std::all_of(lanes_.begin(), lanes_.begin() + queues,
                         [](const auto& lane) { return lane->tasks.empty(); });
    });
    if (error_) std::rethrow_exception(error_);
  }
  for (std::size_t lane = 1; lane < models::lane_count; ++lane) {
    order_.join(HappensBefore::host, order_.now(lane));
  }
  order_.forget_ended();
}

void QueuedDevice::read(const std::byte* from, void* to, Bytes size) {
  finish();
  if (settings_.checks) {
    order_.begin(HappensBefore::host);
    order_.touch(HappensBefore::host, "read", from, size.count(), false);
  }
  copy_bytes(to, from, size.count());
}

void QueuedDevice::write(const void* from, std::byte* to, Bytes size) {
  refuse_while_recording("memory is written");
  if (settings_.checks) {
    order_.begin(HappensBefore::host);
    order_.touch(HappensBefore::host, "write", to, size.count(), true);
  }
  copy_bytes(to, from, size.count());
}

void QueuedDevice::zero(std::byte* memory, Bytes size) {
  enqueue(compute, "zero", {{memory, size.count(), true}},
          [this, memory, size] { host_.zero(memory, size); });
}

void QueuedDevice::copy(const std::byte* from, std::byte* to, Bytes size, models::Lane queue) {
  enqueue(lane_of(queue), "copy", {{from, size.count(), false}, {to, size.count(), true}},
          [from, to, size] { copy_bytes(to, from, size.count()); });
}

void QueuedDevice::run(const Kernel& kernel) {
  const std::size_t lane = lane_of(kernel.operation->queue);
  std::vector<Touch> touches;
  for (const View& each : kernel.reads) touches.push_back({each.data, size_of(each), false});
  for (const View& each : kernel.writes) touches.push_back({each.data, size_of(each), true});
  std::vector<View> reads{kernel.reads.begin(), kernel.reads.end()};
  std::vector<View> writes{kernel.writes.begin(), kernel.writes.end()};
  CpuDevice* const unit = lanes_[lane]->unit.get();
  graphs_->take(*kernel.operation,
                {lane, kernel.operation->name, std::move(touches), [unit, kernel, reads, writes] {
                   Kernel launched = kernel;
                   launched.reads = reads;
                   launched.writes = writes;
                   unit->run(launched);
                 }});
}

void QueuedDevice::refuse_while_recording(const char* what) const {
  if (graphs_->records()) {
    throw RunFailure{Exit::local_failure, std::string{what} + " while a graph is captured"};
  }
}

void QueuedDevice::Recorder::take(const models::Operation& operation, Launch launch) {
  if (!records_) {
    ran_.insert(&operation);
    return device_.enqueue(launch.lane, launch.name, launch.touches, std::move(launch.work));
  }
  if (operation.name == device_.settings_.uncapturable) {
    throw RunFailure{Exit::local_failure, "'" + operation.name + "' cannot be captured"};
  }
  if (ran_.count(&operation) == 0) {
    throw RunFailure{Exit::local_failure, "'" + operation.name + "' is captured before it ran"};
  }
  recorded_.push_back(std::move(launch));
}

Graph QueuedDevice::Recorder::capture(const std::function<void()>& work) {
  ensure(!records_, "a capture inside a capture");
  recorded_.clear();
  records_ = true;
  try {
    work();
  } catch (...) {
    records_ = false;
    throw;
  }
  records_ = false;
  const Graph graph{next_++, static_cast<std::int64_t>(recorded_.size())};
  made_[graph.id] = recorded_;
  return graph;
}

void QueuedDevice::Recorder::launch(const Graph& graph) {
  const auto& mistaken = device_.settings_.mistaken;
  const std::vector<Launch>& launches = made_.at(mistaken ? mistaken(graph.id) : graph.id);
  for (const Launch& each : launches) {
    device_.enqueue(each.lane, each.name, each.touches, each.work);
  }
}

void QueuedDevice::Recorder::release(const Graph& graph) noexcept {
  device_.drain();
  made_.erase(graph.id);
}

Mark QueuedDevice::mark_lane(std::size_t lane) {
  const auto event = std::make_shared<Event>();
  event->lane = lane;
  event->ended = order_.now(lane);
  const Mark mark{next_event_++};
  events_[mark.id] = event;
  push(lane, {[this, event] {
                const std::chrono::duration<std::int64_t, std::pico> since =
                    std::chrono::steady_clock::now() - started_;
                const std::lock_guard guard{lock_};
                event->reached = true;
                event->time = Time{since.count()};
                changed_.notify_all();
              },
              true});
  return mark;
}

void QueuedDevice::wait_lane(std::size_t lane, Mark until) {
  const std::shared_ptr<Event> event = events_.at(until.id);
  order_.join(lane, event->ended);
  push(lane, {[this, event] {
                std::unique_lock guard{lock_};
                changed_.wait(guard, [&] { return event->reached; });
              },
              true});
}

void QueuedDevice::wait(models::Lane queue, Mark until) {
  const auto marked = static_cast<models::Lane>(events_.at(until.id)->lane);
  if (settings_.forget && settings_.forget(queue, marked)) return;
  wait_lane(lane_of(queue), until);
}

bool QueuedDevice::reached(Mark mark) {
  const std::lock_guard guard{lock_};
  if (error_) std::rethrow_exception(error_);
  return events_.at(mark.id)->reached;
}

Time QueuedDevice::time_of(Mark mark) {
  const std::lock_guard guard{lock_};
  ensure(events_.at(mark.id)->reached, "the time of a mark that no queue has reached");
  return events_.at(mark.id)->time;
}

Mark QueuedDevice::mark(models::Lane queue) {
  const Mark made = mark_lane(lane_of(queue));
  of_step_.push_back(made.id);
  return made;
}

/// A fabric's marks on lanes stay.
void QueuedDevice::forget_marks() {
  for (const std::uint32_t id : of_step_) events_.erase(id);
  of_step_.clear();
}

}  // namespace orrery::executor
