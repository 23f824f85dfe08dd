#include "executor/device/cpu/cpu_device.hpp"

#ifdef ORRERY_OPENBLAS
#include "executor/device/cpu/blas.hpp"
#endif
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "executor/device/copy_bytes.hpp"
#include "executor/device/formats.hpp"
#include "executor/device/low_precision.hpp"
#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::DType;
using models::OpKind;

constexpr std::size_t alignment = 64;  // a cache line

bool is_index(DType type) {
  return type == DType::int64 || type == DType::int32 || type == DType::uint8;
}

/// Is an operand stored as the type that is computed in?
template <class T>
bool stored_as(DType type) {
  if constexpr (std::is_same_v<T, float>) return type == DType::fp32 || type == DType::tf32;
  return bits(type) == 64;
}

cpu::KernelTable all_kernels() {
  cpu::KernelTable table;
  cpu::add_casts(table);
  cpu::add_embedding_and_loss(table);
  cpu::add_fused_attention(table);
  cpu::add_gradients(table);
  cpu::add_norms(table);
  cpu::add_orthogonalise(table);
  cpu::add_pointwise(table);
  cpu::add_products(table);
  cpu::add_router(table);
  cpu::add_row_moves(table);
  cpu::add_scans(table);
  cpu::add_unfused_attention(table);
  cpu::add_updates(table);
  return table;
}

template <class T>
void dispatch(const cpu::Call<T>& call) {
  static const cpu::KernelTable table = all_kernels();
  const auto run = table.function<T>(call.operation().kind);
  ensure(run != nullptr, "the CPU was given an operation that it refuses");
  run(call);
}

}  // namespace

CpuDevice::CpuDevice(Arithmetic arithmetic) : arithmetic_{arithmetic} {
#ifdef ORRERY_OPENBLAS
  cpu::blas();  // loads it now, not while a step is timed
#endif
}

std::string CpuDevice::description() const {
#ifdef ORRERY_OPENBLAS
  std::string version{cpu::blas().config()};
  version = version.substr(0, version.find(' ', version.find(' ') + 1));
  return fmt::format("{} ({}), 1 thread", version, cpu::blas().core());
#else
  return "CPU without BLAS, 1 thread";
#endif
}

std::string CpuDevice::refusal(const models::Operation& op) const {
  const bool low_precision = op.dtype == DType::fp8 || op.dtype == DType::fp4;
  switch (op.kind) {
    case OpKind::copy:
      return {};  // to or from host memory: the runner executes it
    case OpKind::grouped_gemm:
    case OpKind::gemm:
    case OpKind::quantise:
      break;
    default:
      if (low_precision)
        return fmt::format("the CPU supports {} only for GEMM operands", name(op.dtype));
  }
  return {};
}

std::byte* CpuDevice::allocate(Bytes size) {
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(size.count(), 1));
  void* memory = std::aligned_alloc(alignment, (wanted + alignment - 1) / alignment * alignment);
  if (memory == nullptr) {
    throw RunFailure{Exit::local_failure,
                     fmt::format("out of memory: {} bytes requested", size.count())};
  }
  return static_cast<std::byte*>(memory);
}

void CpuDevice::release(std::byte* memory) noexcept {
  std::free(memory);
}

void CpuDevice::read(const std::byte* from, void* to, Bytes size) {
  copy_bytes(to, from, size.count());
}
void CpuDevice::write(const void* from, std::byte* to, Bytes size) {
  copy_bytes(to, from, size.count());
}
void CpuDevice::zero(std::byte* memory, Bytes size) {
  if (size.count() > 0) std::memset(memory, 0, static_cast<std::size_t>(size.count()));
}
void CpuDevice::copy(const std::byte* from, std::byte* to, Bytes size, models::Lane) {
  copy_bytes(to, from, size.count());
}

Mark CpuDevice::mark(models::Lane) {
  marks_.push_back(Clock::now());
  return {static_cast<std::uint32_t>(marks_.size() - 1)};
}

Time CpuDevice::time_of(Mark mark) {
  const std::chrono::duration<std::int64_t, std::pico> since = marks_.at(mark.id) - started_;
  return Time{since.count()};
}

void CpuDevice::run(const Kernel& kernel) {
  if (arithmetic_ == Arithmetic::ring) return run_in<cpu::Ring>(kernel);
  const bool product = is_gemm(kernel.operation->kind);
  const bool low_precision =
      product && (is_low_precision(kernel.reads[0]) || is_low_precision(kernel.reads[1]));
  if (low_precision || kernel.operation->kind == OpKind::quantise)
    return run_in_low_precision(kernel);
  const bool adam = kernel.operation->kind == OpKind::adam;
  if (adam && kernel.reads[2].dtype == DType::uint8) return run_adam_in_8_bits(kernel);
  const auto wide = [](const View& view) { return view.dtype == DType::fp64; };
  const bool any = std::any_of(kernel.reads.begin(), kernel.reads.end(), wide) ||
                   std::any_of(kernel.writes.begin(), kernel.writes.end(), wide);
  any ? run_in<double>(kernel) : run_in<float>(kernel);
}

/// Memory of a slot, at least as large as the operand's elements at `width` bytes each.
std::byte* CpuDevice::room_for(const View& view, std::size_t slot, std::size_t width) {
  std::vector<std::byte>& wide = wide_[slot];
  const std::size_t size = static_cast<std::size_t>(view.elements()) * width;
  if (wide.size() < size) wide.resize(size);
  return wide.data();
}

/// The operand as `T`: in place if it is stored so, else a copy in `slot`, which is filled if
/// `keep`.
template <class T>
T* CpuDevice::widened(const View& view, std::size_t slot, bool keep) {
  if (is_index(view.dtype) || stored_as<T>(view.dtype)) return reinterpret_cast<T*>(view.data);
  if constexpr (cpu::in_ring<T>) {
    throw ContractError{"the ring needs operands of 8 bytes"};
  } else {
    T* copy = reinterpret_cast<T*>(room_for(view, slot, sizeof(T)));
    if (keep) load(view, copy);
    return copy;
  }
}

template <class T>
void CpuDevice::run_in(const Kernel& kernel) {
  ensure(kernel.reads.size() <= cpu::most_operands && kernel.writes.size() <= cpu::most_operands,
         "an operation has more operands than a call can hold");
  cpu::Call<T> call{kernel};
  for (std::size_t i = 0; i < kernel.reads.size(); ++i) {
    call.reads[i] = widened<T>(kernel.reads[i], i, true);
  }
  for (std::size_t i = 0; i < kernel.writes.size(); ++i) {
    const View& view = kernel.writes[i];
    // An operand that is read and written in place has one copy.
    std::size_t same = 0;
    while (same < kernel.reads.size() && kernel.reads[same].data != view.data) ++same;
    call.writes[i] = same < kernel.reads.size() ? call.reads[same]
                                                : widened<T>(view, cpu::most_operands + i, true);
  }
  dispatch(call);
  if constexpr (!cpu::in_ring<T>) {
    for (std::size_t i = 0; i < kernel.writes.size(); ++i) {
      const View& view = kernel.writes[i];
      const bool in_place = is_index(view.dtype) || stored_as<T>(view.dtype);
      if (!in_place) store(call.writes[i], view);
    }
  }
}

}  // namespace orrery::executor
