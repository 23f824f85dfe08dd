// What parameters begin with, and their working copies after a load.

#include <cstring>
#include <vector>

#include "executor/half.hpp"
#include "executor/interpreter.hpp"
#include "executor/random.hpp"

namespace orrery::executor {

namespace {

using models::DType;

/// Deviation of drawn weights.
/// Source  Radford et al. 2019, GPT-2; initializer_range of its config.json
constexpr double deviation = 0.02;

/// Stores a drawn number in a format; in the ring it is an integer.
void put(double value, DType type, Arithmetic arithmetic, std::byte* to) {
  if (arithmetic == Arithmetic::ring) {
    const auto whole = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    std::memcpy(to, &whole, sizeof whole);
  } else if (type == DType::fp64) {
    std::memcpy(to, &value, sizeof value);
  } else if (type == DType::bf16) {
    narrow(static_cast<float>(value), *reinterpret_cast<Bf16*>(to));
  } else if (type == DType::fp16) {
    narrow(static_cast<float>(value), *reinterpret_cast<Fp16*>(to));
  } else {
    const auto single = static_cast<float>(value);
    std::memcpy(to, &single, sizeof single);
  }
}

}  // namespace

/// A parameter of the uncut model by its index: weights normal, scales of norms 1, biases 0; in the
/// ring small integers, all of them.
double Runner::Interpreter::drawn(const std::string& tensor, std::uint64_t seed,
                                  std::int64_t index) const {
  const auto at = static_cast<std::uint64_t>(index);
  const RandomStream random{seed, stream_number(tensor)};
  if (settings_.arithmetic == Arithmetic::ring) {
    return static_cast<double>(random.bits(at) % 7) - 3.0;
  }
  const auto ends_with = [&](std::string_view end) {
    return tensor.size() >= end.size() &&
           tensor.compare(tensor.size() - end.size(), end.size(), end) == 0;
  };
  if (ends_with(".bias")) return 0.0;
  if (tensor.find("norm") != std::string::npos) return 1.0;
  return deviation * random.normal(at);
}

void Runner::Interpreter::draw_parameters() {
  std::vector<std::byte> host;
  const auto draw_runs = [&](DType type, auto&& place) {
    for (const StateRun& run : layout_.runs()) {
      host.resize(static_cast<std::size_t>(run.count * width_of(type)));
      for (std::int64_t i = 0; i < run.count; ++i) {
        put(drawn(layout_.tensors()[run.tensor].name, settings_.seed, run.offset + i), type,
            settings_.arithmetic, host.data() + i * width_of(type));
      }
      device_.write(host.data(), place(run.local), Bytes{static_cast<std::int64_t>(host.size())});
    }
  };
  if (separate_master_) {
    draw_runs(state_, [&](std::int64_t at) { return state_at(StateKind::parameter, at); });
  }
  if (shards_weights_) {
    return draw_runs(storage_,
                     [&](std::int64_t at) { return parameters_.data() + at * width_of(storage_); });
  }
  for (const PlacedTensor& each : layout_.placed()) {
    const std::string& name = layout_.tensors()[each.tensor].name;
    host.assign(static_cast<std::size_t>(each.elements() * width_of(storage_)), std::byte{0});
    for (const StateRun& run : layout_.runs_of(each)) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        put(drawn(name, settings_.seed, run.offset + i), storage_, settings_.arithmetic,
            host.data() + (run.local - each.offset + i) * width_of(storage_));
      }
    }
    device_.write(host.data(), parameters_.data() + each.offset * width_of(storage_),
                  Bytes{static_cast<std::int64_t>(host.size())});
  }
}

}  // namespace orrery::executor
