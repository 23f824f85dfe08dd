#pragma once
// A device whose memory the host cannot touch: its addresses are those of another device with a bit
// turned that no address of a process has, so that whoever follows one ends there and then.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "executor/device/device.hpp"

namespace orrery::executor {

class FarDevice final : public Device {
 public:
  explicit FarDevice(std::unique_ptr<Device> near) : near_{std::move(near)} {}

  std::string description() const override { return "far " + near_->description(); }
  bool synchronous() const override { return near_->synchronous(); }
  std::string refusal(const models::Operation& op) const override { return near_->refusal(op); }

  std::byte* allocate(Bytes size) override { return turned(near_->allocate(size)); }
  void release(std::byte* memory) noexcept override { near_->release(turned(memory)); }
  std::byte* allocate_host(Bytes size) override { return near_->allocate_host(size); }
  void release_host(std::byte* memory) noexcept override { near_->release_host(memory); }
  void read(const std::byte* from, void* to, Bytes size) override {
    near_->read(turned(from), to, size);
  }
  void write(const void* from, std::byte* to, Bytes size) override {
    near_->write(from, turned(to), size);
  }
  void zero(std::byte* memory, Bytes size) override { near_->zero(turned(memory), size); }
  void run(const Kernel& kernel) override {
    std::vector<View> reads{kernel.reads.begin(), kernel.reads.end()};
    std::vector<View> writes{kernel.writes.begin(), kernel.writes.end()};
    for (View& each : reads) each.data = turned(each.data);
    for (View& each : writes) each.data = turned(each.data);
    Kernel near = kernel;
    near.reads = reads;
    near.writes = writes;
    near_->run(near);
  }
  void copy(const std::byte* from, std::byte* to, Bytes size, models::Lane queue) override {
    near_->copy(either(from), either(to), size, queue);
  }

  Mark mark(models::Lane queue) override { return near_->mark(queue); }
  void wait(models::Lane queue, Mark until) override { near_->wait(queue, until); }
  void finish() override { near_->finish(); }
  Time time_of(Mark mark) override { return near_->time_of(mark); }
  void forget_marks() override { near_->forget_marks(); }

 private:
  static constexpr std::uintptr_t bit = std::uintptr_t{1} << 62;

  template <class Byte>
  static Byte* turned(Byte* memory) {
    if (memory == nullptr) return nullptr;
    return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(memory) ^ bit);
  }
  /// Of either kind, the host's own too.
  template <class Byte>
  static Byte* either(Byte* memory) {
    return (reinterpret_cast<std::uintptr_t>(memory) & bit) != 0 ? turned(memory) : memory;
  }

  std::unique_ptr<Device> near_;
};

}  // namespace orrery::executor
