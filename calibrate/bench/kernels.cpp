#include "calibrate/bench/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "executor/errors.hpp"

namespace orrery::calibrate {

namespace {

using executor::Kernel;
using executor::View;
using models::DType;
using models::Operand;
using models::Operation;
using models::OpKind;
using models::Role;

constexpr std::size_t layers_in_turn = 4;

bool timed(const Operation& op) {
  return op.kind != OpKind::collective && op.kind != OpKind::copy;
}

/// Numbers that no kernel minds: tokens inside the vocabulary, small positive values elsewhere, so
/// that nothing overflows, cancels or becomes denormal.
class Filler {
 public:
  explicit Filler(std::int64_t vocab) : vocab_{vocab} {}

  void fill(const Operand& operand, std::vector<std::byte>& bytes) {
    const auto count = static_cast<std::size_t>(operand.elements());
    bytes.resize(static_cast<std::size_t>(operand.bytes().count()));
    switch (operand.dtype) {
      case DType::fp32:
        return put<float>(bytes, count, [&] { return static_cast<float>(value()); });
      case DType::fp64:
        return put<double>(bytes, count, [&] { return value(); });
      case DType::int64:
        return put<std::int64_t>(bytes, count, [&] { return token(); });
      case DType::int32:
        return put<std::int32_t>(bytes, count, [&] { return static_cast<std::int32_t>(token()); });
      case DType::bf16:
      case DType::fp16:
        return put<std::uint16_t>(bytes, count, [] { return std::uint16_t{0x2c00}; });
      default:
        std::fill(bytes.begin(), bytes.end(), std::byte{0});
    }
  }

 private:
  template <class T, class Make>
  static void put(std::vector<std::byte>& bytes, std::size_t count, Make make) {
    for (std::size_t i = 0; i < count && (i + 1) * sizeof(T) <= bytes.size(); ++i) {
      const T each = make();
      std::memcpy(bytes.data() + i * sizeof(T), &each, sizeof(T));
    }
  }
  std::uint64_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 33;
  }
  double value() { return 0.01 + 0.09 * static_cast<double>(next()) / 2147483648.0; }
  std::int64_t token() {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(vocab_));
  }

  std::int64_t vocab_;
  std::uint64_t state_ = 1;
};

double element(const executor::Device& device, const View& view, std::int64_t index) {
  auto& reader = const_cast<executor::Device&>(device);
  if (view.dtype == DType::fp64) {
    double value = 0;
    reader.read(view.data + index * 8, &value, Bytes{8});
    return value;
  }
  float value = 0;
  reader.read(view.data + index * 4, &value, Bytes{4});
  return value;
}

}  // namespace

struct BlockSubject::Copy {
  /// `contents` are the operands' bytes, alike for all copies.
  Copy(executor::Device& on, const models::Block& block,
       const std::vector<std::vector<std::byte>>& contents)
      : device{on} {
    for (std::size_t i = 0; i < block.operands.size(); ++i) {
      const Operand& operand = block.operands[i];
      views.push_back({.data = device.allocate(std::max(operand.bytes(), Bytes{64})),
                       .dtype = operand.dtype,
                       .shape = operand.shape});
      device.write(contents[i].data(), views.back().data, operand.bytes());
    }
  }
  ~Copy() {
    for (const View& view : views) device.release(view.data);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  executor::Device& device;
  std::vector<View> views;  // as the block's operands
};

BlockSubject::BlockSubject(std::string name, const models::Block& block, const models::Model& model,
                           const Ranks& ranks)
    : name_{std::move(name)}, block_{block}, model_{model}, ranks_{ranks} {
  for (const Operation& op : block.operations) {
    if (timed(op)) operations_.push_back(&op);
  }
}

BlockSubject::~BlockSubject() = default;

void BlockSubject::prepare() {
  Filler filler{std::max<std::int64_t>(1, model_.vocab)};
  std::vector<std::vector<std::byte>> contents(block_.operands.size());
  for (std::size_t i = 0; i < contents.size(); ++i) filler.fill(block_.operands[i], contents[i]);
  copies_.resize(ranks_.devices.size());
  for (std::size_t rank = 0; rank < copies_.size(); ++rank) {
    for (std::size_t layer = 0; layer < layers_in_turn; ++layer) {
      copies_[rank].push_back(std::make_unique<Copy>(*ranks_.devices[rank], block_, contents));
    }
  }
  turn_ = 0;
  check_products(0);
}

void BlockSubject::finish() {
  copies_.clear();
}

void BlockSubject::run_rank(int rank, std::vector<Time>& times) {
  executor::Device& device = *ranks_.devices[static_cast<std::size_t>(rank)];
  const Copy& copy = *copies_[static_cast<std::size_t>(rank)][turn_ % layers_in_turn];
  std::vector<View> reads, writes;
  executor::Place place;
  place.loss_scale = 1e-3;
  const bool own_core = ranks_.team.ranks() <= ranks_.cores && device.synchronous();
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Operation& op = *operations_[i];
    reads.clear();
    writes.clear();
    for (const auto id : op.reads) reads.push_back(copy.views[id]);
    for (const auto id : op.writes) writes.push_back(copy.views[id]);
    const Time busy = ranks_.clock.busy(), before = ranks_.clock.now();
    device.run(Kernel{.operation = &op,
                      .reads = reads,
                      .writes = writes,
                      .model = &model_,
                      .place = place,
                      .adam = {.learning_rate = 1e-6}});
    if (!device.synchronous()) device.finish();
    times[i] = ranks_.clock.now() - before;
    if (own_core) times[i] = std::min(times[i], ranks_.clock.busy() - busy);
  }
}

bool BlockSubject::run(std::vector<Time>& times) {
  const std::size_t ranks = ranks_.devices.size();
  std::vector<std::vector<Time>> of(ranks, std::vector<Time>(operations_.size()));
  ranks_.team.all([&](int rank) {
    ranks_.gate.pass();
    run_rank(rank, of[static_cast<std::size_t>(rank)]);
  });
  ++turn_;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    Time sum{};
    for (const auto& each : of) sum += each[i];
    times[i] = Time{sum.count() / static_cast<std::int64_t>(ranks)};
  }
  return true;
}

/// Some elements of every plain product against a sum in doubles.
void BlockSubject::check_products(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  executor::Device& device = *ranks_.devices[at];
  const Copy& copy = *copies_[at].front();
  for (const Operation* op : operations_) {
    const bool wide = op->dtype == DType::fp32 || op->dtype == DType::fp64;
    if (op->kind != OpKind::gemm || op->reads.size() > 2 || !wide) continue;
    const View a = copy.views[op->reads[0]], b = copy.views[op->reads[1]];
    const View out = copy.views[op->writes[0]];
    const auto& [m, n, k, batch, transpose_a, transpose_b, accumulate] = op->gemm;
    const std::int64_t row = m / 3, column = n / 2;
    const double before = accumulate ? element(device, out, row * n + column) : 0;
    std::vector<View> reads, writes;
    for (const auto id : op->reads) reads.push_back(copy.views[id]);
    for (const auto id : op->writes) writes.push_back(copy.views[id]);
    device.run(Kernel{.operation = op,
                      .reads = reads,
                      .writes = writes,
                      .model = &model_,
                      .place = {},
                      .adam = {}});
    device.finish();
    double expected = before;
    for (std::int64_t i = 0; i < k; ++i) {
      const double left = element(device, a, transpose_a ? i * m + row : row * k + i);
      const double right = element(device, b, transpose_b ? column * k + i : i * n + column);
      expected += left * right;
    }
    const double found = element(device, out, row * n + column);
    if (!(std::abs(found - expected) <= 1e-3 * (1 + std::abs(expected)))) {
      throw executor::RunFailure{
          executor::Exit::local_failure,
          fmt::format("{} computes {} where {} is right: not timed", op->name, found, expected)};
    }
  }
}

}  // namespace orrery::calibrate
