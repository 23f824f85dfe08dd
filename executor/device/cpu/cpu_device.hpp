#pragma once
// The host's processor as a device: one thread, every operation done when `run` returns. Computes
// in fp32, in fp64 where an operand is fp64, or in the ring; 16-bit and 8-bit formats are storage
// only.

#include <array>
#include <chrono>
#include <vector>

#include "executor/device/cpu/call.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor {

class CpuDevice : public Device {
 public:
  explicit CpuDevice(Arithmetic arithmetic = Arithmetic::real);

  std::string description() const override;
  bool synchronous() const override { return true; }
  std::string refusal(const models::Operation& operation) const override;

  std::byte* allocate(Bytes size) override;
  void release(std::byte* memory) noexcept override;
  std::byte* allocate_host(Bytes size) override { return allocate(size); }
  void release_host(std::byte* memory) noexcept override { release(memory); }
  void read(const std::byte* from, void* to, Bytes size) override;
  void write(const void* from, std::byte* to, Bytes size) override;
  void zero(std::byte* memory, Bytes size) override;

  void run(const Kernel& kernel) override;
  void copy(const std::byte* from, std::byte* to, Bytes size, models::Lane queue) override;

  Mark mark(models::Lane queue) override;
  void wait(models::Lane, Mark) override {}
  void finish() override {}
  Time time_of(Mark mark) override;
  void forget_marks() override { marks_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;

  template <class T>
  void run_in(const Kernel& kernel);
  void run_in_low_precision(const Kernel& kernel);
  void quantise(const Kernel& kernel);
  void run_adam_in_8_bits(const Kernel& kernel);
  std::byte* room_for(const View& view, std::size_t slot, std::size_t width);
  template <class T>
  T* widened(const View& view, std::size_t slot, bool keep);

  Arithmetic arithmetic_;
  Clock::time_point started_ = Clock::now();
  std::vector<Clock::time_point> marks_;
  std::array<std::vector<std::byte>, 2 * cpu::most_operands> wide_;  // copies of narrow operands
};

}  // namespace orrery::executor
