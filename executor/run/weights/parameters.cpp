// Initial values of parameters: drawn from the seed, or read from a ParameterSource.

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "executor/device/formats.hpp"
#include "executor/run/weights/random.hpp"
#include "executor/run/weights/weights.hpp"

namespace orrery::executor {

namespace {

constexpr std::int64_t at_once = std::int64_t{1} << 22;    // elements per copy to the device
constexpr std::int64_t of_thread = std::int64_t{1} << 16;  // elements that a thread draws at a time

/// Initial values of one tensor by index in the unsharded model, read or drawn; in ring arithmetic
/// small integers for every tensor.
class InitialValues {
 public:
  InitialValues(const StateTensor& tensor, const RunSettings& settings,
                const ParameterSource* source)
      : tensor_{tensor},
        source_{source},
        random_{settings.seed, stream_number(tensor.name)},
        initial_{tensor.initial} {}

  template <class T>
  void fill(std::int64_t first, std::span<T> to) const {
    const auto begin = static_cast<std::uint64_t>(first);
    if (source_ != nullptr) return read(first, to);
    if constexpr (std::is_integral_v<T>) {
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = static_cast<T>(random_.bits(begin + i) % 7) - 3;
      }
    } else if (initial_.kind != Kind::normal) {
      std::fill(to.begin(), to.end(), initial_.kind == Kind::ones ? T{1} : T{0});
    } else if constexpr (std::is_same_v<T, float>) {
      random_.normals(begin, initial_.deviation, to);
    } else {
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = initial_.deviation * random_.normal(begin + i);
      }
    }
  }

 private:
  using Kind = models::Initial::Kind;

  template <class T>
  void read(std::int64_t first, std::span<T> to) const {
    if constexpr (std::is_same_v<T, double>) {
      source_->fill(tensor_, first, to);
    } else {
      std::vector<double> values(to.size());
      source_->fill(tensor_, first, values);
      std::transform(values.begin(), values.end(), to.begin(),
                     [](double value) { return static_cast<T>(value); });
    }
  }

  const StateTensor& tensor_;
  const ParameterSource* source_;
  RandomStream random_;
  models::Initial initial_;
};

template <class T>
std::span<T> span_of(std::vector<std::byte>& host, std::int64_t count) {
  return {reinterpret_cast<T*>(host.data()), static_cast<std::size_t>(count)};
}

/// Draws in fp32 at least, and stores values rounded to the format from the front of `host`.
void fill_as(Arithmetic arithmetic, models::DType storage, const InitialValues& values,
             std::int64_t first, std::int64_t count, std::vector<std::byte>& host) {
  if (arithmetic == Arithmetic::ring) {
    return values.fill(first, span_of<std::int64_t>(host, count));
  }
  with_format(storage, [&]<class T>(Type<T>) {
    const std::span<T> to = span_of<T>(host, count);
    if constexpr (std::is_floating_point_v<T>) {
      values.fill(first, to);
    } else {
      std::vector<float> wide(to.size());
      values.fill<float>(first, wide);
      convert(wide.data(), count, to.data());
    }
  });
}

/// Consecutive elements of one tensor, and their offset in the destination.
struct Slice {
  const InitialValues* of = nullptr;
  std::int64_t first = 0, count = 0, at = 0;
};

template <class T>
void fill(const std::vector<Slice>& slices, std::byte* to) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < slices.size(); i = next++) {
      const Slice& each = slices[i];
      each.of->fill(each.first, std::span<T>{reinterpret_cast<T*>(to) + each.at,
                                             static_cast<std::size_t>(each.count)});
    }
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < std::min(cores, slices.size())) threads.emplace_back(work);
  } catch (const std::system_error&) {  // the system gives no more threads: go on with fewer
  }
  work();
  for (std::thread& each : threads) each.join();
}

/// Are adapters all that is trained?
bool trains_adapters(const models::Program& program) {
  const auto is_adapter = [](const models::Operand& each) { return each.adapter; };
  return std::any_of(program.blocks.begin(), program.blocks.end(), [&](const models::Block& of) {
    return std::any_of(of.operands.begin(), of.operands.end(), is_adapter);
  });
}

}  // namespace

void Weights::draw() {
  draw_trained();
  draw_frozen();
}

/// Draws or reads frozen parameters and rounds them to the storage format.
void Weights::draw_frozen() {
  const RunSettings& settings = rank_.settings;
  const std::vector<StateTensor>& tensors = rank_.layout.frozen_tensors();
  if (tensors.empty()) return;
  if (settings.initial != nullptr) settings.initial->require(tensors);
  std::vector<std::byte> host;
  for (const PlacedTensor& each : rank_.layout.frozen()) {
    const StateTensor& whole = tensors[each.tensor];
    const InitialValues values{whole, settings, settings.initial};
    for (const StateRun& run : Layout::runs_of(each, whole)) {
      for (std::int64_t i = 0; i < run.count; i += at_once) {
        const std::int64_t count = std::min(at_once, run.count - i);
        host.resize(static_cast<std::size_t>(count * 8));
        fill_as(settings.arithmetic, formats().storage, values, run.offset + i, count, host);
        rank_.device.write(host.data(), frozen(run.local + i),
                           Bytes{count * width_of(formats().storage)});
      }
      if (settings.alive) settings.alive();
    }
  }
}

/// Draws or reads the elements that this rank owns; other ranks get them from here by a gather.
/// Where only adapters are trained they are drawn, because an initial source has none of them.
void Weights::draw_trained() {
  const RunSettings& settings = rank_.settings;
  std::vector<InitialValues> initials;
  ParameterSource* const source = trains_adapters(rank_.program) ? nullptr : settings.initial;
  if (source != nullptr) source->require(rank_.layout.tensors());
  for (const StateTensor& each : rank_.layout.tensors()) {
    initials.emplace_back(each, settings, source);
  }
  const std::int64_t width = width_of(formats().state), all = rank_.layout.owned();
  std::vector<std::byte> host(static_cast<std::size_t>(std::min(at_once, all) * width));
  std::vector<Slice> slices;
  const std::int64_t stored = width_of(formats().master);
  std::byte* to = nullptr;  // destination of the first slice
  std::int64_t gathered = 0, drawn = 0;
  const auto write = [&] {
    if (settings.arithmetic == Arithmetic::ring) {
      fill<std::int64_t>(slices, host.data());
    } else {
      width == 8 ? fill<double>(slices, host.data()) : fill<float>(slices, host.data());
    }
    write_masters(host.data(), to, gathered);
    drawn += gathered;
    if (settings.drawn) settings.drawn(drawn, all);
    slices.clear();
    gathered = 0;
  };
  for (const StateRun& run : rank_.layout.runs()) {
    std::byte* const begin = state(StateKind::parameter, run.local);
    for (std::int64_t i = 0; i < run.count; i += of_thread) {
      const std::int64_t count = std::min(of_thread, run.count - i);
      const bool follows = begin + i * stored == to + gathered * stored;
      if (gathered > 0 && (!follows || gathered + count > at_once)) write();
      if (gathered == 0) to = begin + i * stored;
      slices.push_back({&initials[run.tensor], run.offset + i, count, gathered});
      gathered += count;
    }
  }
  if (gathered > 0) write();
}

}  // namespace orrery::executor
