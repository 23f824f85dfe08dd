#pragma once
// Memory of a device, or page-locked memory of its host, that is released with its owner.

#include <memory>

#include "executor/device/device.hpp"

namespace orrery::calibrate {

struct ReleaseMemory {
  executor::Device* device = nullptr;
  bool of_host = false;
  void operator()(std::byte* memory) const {
    of_host ? device->release_host(memory) : device->release(memory);
  }
};
using DeviceMemory = std::unique_ptr<std::byte, ReleaseMemory>;

/// Errors  no room: RunFailure
inline DeviceMemory allocated(executor::Device& device, Bytes size) {
  return {device.allocate(size), {.device = &device}};
}

}  // namespace orrery::calibrate
