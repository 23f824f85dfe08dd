#pragma once
// Memory that kernels can reach: the GPU's, or the host's where they are emulated. What a kernel
// writes next to it is found when its values are read.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

#ifndef ORRERY_EMULATED
#include <cuda_runtime_api.h>
#endif

namespace orrery::executor::cuda {

/// Of the device: memory on 256 bytes, copies in both directions, the end of all kernels.
#ifdef ORRERY_EMULATED
inline std::byte* device_memory(std::size_t size) {
  return static_cast<std::byte*>(::operator new (size, std::align_val_t{256}));
}
inline void release_device(std::byte* memory) {
  ::operator delete (memory, std::align_val_t{256});
}
inline void copy_across(void* to, const void* from, std::size_t size) {
  if (size > 0) std::memcpy(to, from, size);
}
inline void finish_device() {}
#else
inline std::byte* device_memory(std::size_t size) {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, size) == cudaSuccess);
  return static_cast<std::byte*>(memory);
}
inline void release_device(std::byte* memory) {
  cudaFree(memory);
}
inline void copy_across(void* to, const void* from, std::size_t size) {
  REQUIRE(cudaMemcpy(to, from, size, cudaMemcpyDefault) == cudaSuccess);
}
inline void finish_device() {
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}
#endif

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values)
      : bytes_{values.size() * sizeof(T)}, memory_{device_memory(bytes_ + 2 * guard)} {
    const std::vector<std::byte> fence(guard, mark);
    copy_across(memory_, fence.data(), guard);
    copy_across(memory_ + guard, values.data(), bytes_);
    copy_across(memory_ + guard + bytes_, fence.data(), guard);
  }
  ~DeviceArray() { release_device(memory_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return reinterpret_cast<T*>(memory_ + guard); }

  std::vector<T> values() const {
    std::vector<std::byte> all(bytes_ + 2 * guard);
    copy_across(all.data(), memory_, all.size());
    const auto is_mark = [](std::byte each) { return each == mark; };
    REQUIRE(std::all_of(all.begin(), all.begin() + guard, is_mark));
    REQUIRE(std::all_of(all.end() - guard, all.end(), is_mark));
    std::vector<T> values(bytes_ / sizeof(T));
    if (bytes_ > 0) std::memcpy(values.data(), all.data() + guard, bytes_);
    return values;
  }

 private:
  static constexpr std::ptrdiff_t guard = 256;
  static constexpr std::byte mark{0xa5};

  std::size_t bytes_;
  std::byte* memory_;
};

}  // namespace orrery::executor::cuda
