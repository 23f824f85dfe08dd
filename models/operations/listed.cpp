#include "models/operations/listed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "models/model/operation_list.hpp"
#include "models/operations/builder.hpp"
#include "models/operations/layouts.hpp"
#include "models/operations/quantisation.hpp"
#include "models/plan/precision_formats.hpp"

namespace orrery::models {

namespace {

Bytes whole_bytes(double count) {
  return nearest_count<Bytes>(count);
}

/// Is it in the way of the step, and due in it?
bool runs_in_step(const ListedOperation& op, const BlockInputs& inputs) {
  if (op.ahead > 0 || op.never_waits) return false;
  return inputs.model.list_step % op.every == 0;
}

/// Writes one kind of layer of a list.
class ListedBuilder {
 public:
  ListedBuilder(const BlockInputs& inputs, const ListedPart& part, Pass pass)
      : inputs_{inputs},
        list_{*part.list},
        operations_{list_.operations(part.kind, listed_sizes(inputs))},
        storage_{storage_dtype(inputs.plan.formats.precision)},
        compute_{multiplied_in(inputs.plan.formats.precision, inputs.software.runs.decodes_blocks)},
        gradients_{gradient_dtype(inputs.plan, inputs.software)},
        block_{list_.kind_name(part.kind) + (pass == Pass::forward ? ".forward" : ".backward"),
               pass, listed_mesh(inputs)} {}

  Block forward() {
    const OperandId x = small("x", Role::input);
    std::vector<std::optional<OperandId>> made(operations_.size());
    std::map<std::string, OperandId> last;
    OperandId end = x;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const ListedOperation& each = operations_[i];
      if (!runs_in_step(each, inputs_) || skipped(each)) continue;
      std::vector<OperandId> waits;
      for (const std::size_t before : each.after) {
        if (made[before]) waits.push_back(*made[before]);
      }
      const auto previous = last.find(each.queue);
      if (previous != last.end()) waits.push_back(previous->second);
      if (waits.empty()) waits.push_back(x);
      const OperandId out = small(each.name, Role::temporary);
      add_forward(each, waits, out);
      made[i] = last[each.queue] = out;
      if (each.queue.empty()) end = out;
    }
    const OperandId y = small("y", Role::output);
    if (Operation* const closing = writer(end)) closing->writes.push_back(y);
    if (block_.size() == 0) block_.add(OpKind::host_work, "nothing", {x}, {y});
    Block block = block_.finish();
    if (Operation* const idle = idle_of(block)) idle->queue = Lane::compute;
    return block;
  }

  /// Operations that have a backward, in reverse order.
  Block backward() {
    OperandId end = small("y.grad", Role::input);
    for (std::size_t i = operations_.size(); i-- > 0;) {
      const ListedOperation& each = operations_[i];
      if (!each.reverses || skipped(each) || !runs_in_step(each, inputs_)) continue;
      end = add_backward(each, end);
    }
    const OperandId dx = small("x.grad", Role::output);
    if (Operation* const closing = writer(end)) {
      closing->writes.push_back(dx);
    } else {
      block_.add(OpKind::host_work, "nothing", {end}, {dx});
    }
    Block block = block_.finish();
    if (Operation* const idle = idle_of(block)) idle->queue = Lane::compute;
    return block;
  }

 private:
  OperandId small(const std::string& name, Role role) {
    return block_.operand(name, role, DType::uint8, {1, 1, 1});
  }
  Operation* writer(OperandId id) {
    for (Operation& each : block_.since(0)) {
      if (std::ranges::find(each.writes, id) != each.writes.end()) last_ = &each;
    }
    return std::exchange(last_, nullptr);
  }
  static Operation* idle_of(Block& block) {
    const bool idle = block.operations.size() == 1 && block.operations[0].name == "nothing";
    return idle ? block.operations.data() : nullptr;
  }
  /// Communication of one rank with itself.
  bool skipped(const ListedOperation& op) const {
    if (op.kind == ListedKind::collective) return list_.ranks_of(op.group, sizes()) == 1;
    return op.to == "neighbours" && inputs_.plan.gpus() == 1;
  }
  ListedSizes sizes() const { return listed_sizes(inputs_); }

  /// Products are computed in the plan's format, whatever its numbers are stored in.
  DType format_of(const ListedOperation& op) const {
    return op.format.value_or(op.is_matrix() ? compute_ : storage_);
  }
  double width_of(const ListedOperation& op) const { return bits(format_of(op)) / 8.0; }
  /// Bytes of one element of its traffic.
  double unit_of(const ListedOperation& op) const { return op.in_elements ? width_of(op) : 1; }

  ModelTensor tensor_of(const ListedOperation& op) const {
    return {.name = op.name + ".weight",
            .uncut = {1, 1, op.parameters},
            .frozen = op.sharded || !op.reverses};
  }

  Bytes kept_by(const ListedOperation& op) const {
    if (op.keeps) return whole_bytes(*op.keeps * (op.keeps_bytes ? 1 : unit_of(op)));
    const double width = width_of(op);
    if (op.kind == ListedKind::gemm) {
      return whole_bytes(width * static_cast<double>(op.m * op.k * op.products));
    }
    if (op.kind == ListedKind::conv) return whole_bytes(width * elements_in(op));
    const ListedAttention& of = op.attention;
    const auto columns = static_cast<double>(of.sequences * of.heads * of.head_dim);
    return whole_bytes(width * columns * static_cast<double>(2 * of.queries + 2 * of.keys));
  }

  /// Elements of a convolution's input and output.
  static double elements_in(const ListedOperation& op) {
    const ListedConvolution& of = op.convolution;
    const double axes = static_cast<double>(of.size.size());
    return static_cast<double>(of.images * of.in * of.outputs) *
           std::pow(static_cast<double>(of.stride), axes);
  }
  static double elements_out(const ListedOperation& op) {
    const ListedConvolution& of = op.convolution;
    return static_cast<double>(of.images * of.out * of.outputs);
  }

  Flops work_of(const ListedOperation& op, double flops) const {
    return nearest_count<Flops>(flops * op.uneven);
  }
  Bytes moved(const ListedOperation& op, const ListedTraffic& traffic) const {
    return whole_bytes((traffic.read + traffic.write) * unit_of(op) * op.uneven);
  }

  Operation& add(OpKind kind, const std::string& name, const std::vector<OperandId>& waits,
                 OperandId out) {
    Operation& op = block_.add(kind, name, {}, {out});
    op.reads = waits;
    op.bytes = Bytes{};
    return op;
  }

  void add_forward(const ListedOperation& of, const std::vector<OperandId>& waits, OperandId out) {
    if (of.kind == ListedKind::transfer && of.to == "neighbours") return exchange(of, waits, out);
    if (of.kind == ListedKind::collective) return collect(of, of.name, waits, out, of.collective);
    Operation& op = add(kind_of(of), of.name, waits, out);
    place(of, op);
    if (list_.trains() && of.reverses && of.is_matrix()) keep(of, op);
    if (list_.trains() && of.reverses && !of.is_matrix() && kept_by(of) > Bytes{}) keep(of, op);
    if (of.parameters > 0) op.reads.push_back(block_.parameter(tensor_of(of), storage_));
  }

  void keep(const ListedOperation& of, Operation& op) { op.writes.push_back(saved(of)); }
  OperandId saved(const ListedOperation& of) {
    return block_.operand(of.name + ".saved", Role::saved, DType::uint8,
                          {1, 1, std::max<std::int64_t>(kept_by(of).count(), 1)});
  }

  static OpKind kind_of(const ListedOperation& of) {
    switch (of.kind) {
      case ListedKind::gemm:
        return of.products > 1 ? OpKind::batched_gemm : OpKind::gemm;
      case ListedKind::conv:
        return OpKind::convolution;
      case ListedKind::attention:
        return OpKind::attention;
      case ListedKind::transfer:
      case ListedKind::file:
        return OpKind::copy;
      case ListedKind::host:
        return OpKind::host_work;
      default:
        return OpKind::kernel;
    }
  }

  /// Its sizes, lane and traffic in forward.
  void place(const ListedOperation& of, Operation& op) const {
    op.dtype = format_of(of);
    switch (of.kind) {
      case ListedKind::gemm:
        return as_product(of, op, {.m = of.m, .n = of.n, .k = of.k, .batch = of.products});
      case ListedKind::conv:
        return as_convolution(of, op, {.m = of.m, .n = of.n, .k = of.k, .batch = of.products});
      case ListedKind::attention:
        return as_attention(of, op, 1);
      case ListedKind::transfer:
        op.queue = Lane::copy;
        op.bytes = whole_bytes(of.bytes);
        return;
      case ListedKind::file:
        op.queue = Lane::copy;
        op.bytes = whole_bytes(of.bytes);
        op.mutable_files() = of.writes_files ? FileUse::write : FileUse::read;
        return;
      case ListedKind::host:
        op.queue = Lane::host;
        op.host_waits = true;
        op.time_class = TimeClass::host;
        op.mutable_host_time() = of.host;
        return;
      default:
        op.mutable_named() = {of.kind == ListedKind::memory ? std::string{} : of.key, of.gathers};
        op.flops = work_of(of, of.flops);
        op.bytes = moved(of, of.traffic);
    }
  }

  void as_product(const ListedOperation& of, Operation& op, GemmShape shape) const {
    op.time_class = TimeClass::gemm;
    op.mutable_gemm() = shape;
    op.flops = work_of(of, of.flops);
    const double elements = static_cast<double>(shape.batch) *
                            (static_cast<double>(shape.m) * static_cast<double>(shape.k) +
                             static_cast<double>(shape.k) * static_cast<double>(shape.n) +
                             static_cast<double>(shape.m) * static_cast<double>(shape.n));
    op.bytes = whole_bytes(elements * width_of(of) * of.uneven);
  }

  /// Traffic of a convolution is that of its tensors, whichever way it goes.
  void as_convolution(const ListedOperation& of, Operation& op, GemmShape shape) const {
    op.time_class = TimeClass::gemm;
    op.mutable_convolution() = {shape, of.convolution.depthwise()};
    op.flops = work_of(of, of.flops);
    const double weights = static_cast<double>(of.convolution.out) * static_cast<double>(of.k);
    op.bytes =
        whole_bytes((elements_in(of) + elements_out(of) + weights) * width_of(of) * of.uneven);
  }

  void as_attention(const ListedOperation& of, Operation& op, double factor) const {
    const ListedAttention& own = of.attention;
    op.time_class = TimeClass::attention;
    AttentionShape& shape = op.mutable_attention();
    shape = {.batch = own.sequences,
             .seq = own.queries,
             .heads = own.heads,
             .kv_heads = own.heads,
             .head_dim = own.head_dim,
             .causal = own.causal,
             .window = own.window};
    if (own.keys != own.queries) shape.keys = own.keys;
    op.flops = work_of(of, of.flops * factor);
    const auto columns = static_cast<double>(own.sequences * own.heads * own.head_dim);
    op.bytes = whole_bytes(width_of(of) * columns *
                           static_cast<double>(2 * own.queries + 2 * own.keys) * factor);
  }

  void collect(const ListedOperation& of, const std::string& name,
               const std::vector<OperandId>& waits, OperandId out, const std::string& word) {
    const bool all = list_.ranks_of(of.group, sizes()) == inputs_.plan.gpus();
    const CommunicatorRole role = all ? CommunicatorRole::data : CommunicatorRole::context;
    Operation& op =
        block_.collective(value_of(collective_words, word), name, role, waits.front(), out);
    op.reads = waits;
    op.bytes = whole_bytes(of.bytes * of.uneven);
  }

  template <class Words>
  static Collective value_of(const Words& words, const std::string& word) {
    for (const auto& each : words) {
      if (each.text == word) return each.value;
    }
    throw ContractError{"a list was read with an unknown collective"};
  }

  /// Messages to both neighbours along each axis of a grid with several ranks: one axis after the
  /// other, or all at once. A rank sends one at a time through its link.
  void exchange(const ListedOperation& of, const std::vector<OperandId>& waits, OperandId out) {
    std::int64_t axes = 0;
    for (const std::int64_t each : of.grid) axes += each > 1 ? 1 : 0;
    const std::int64_t rounds = of.by_axis ? axes : 1, messages = of.by_axis ? 2 : 2 * axes;
    OperandId from = waits.front();
    for (std::int64_t i = 0; i < rounds; ++i) {
      const bool last = i + 1 == rounds;
      const std::string name = rounds > 1 ? fmt::format("{}.axis{}", of.name, i) : of.name;
      const OperandId to = last ? out : small(name, Role::temporary);
      Operation& op =
          block_.collective(Collective::send_receive, name, CommunicatorRole::data, from, to);
      if (i == 0) op.reads = waits;
      op.mutable_sequence().ahead = 1;
      op.bytes = whole_bytes(of.bytes * static_cast<double>(messages) * of.uneven);
      from = to;
    }
  }

  OperandId add_backward(const ListedOperation& of, OperandId from) {
    OperandId end = from;
    const auto step = [&](OpKind kind, const std::string& suffix) -> Operation& {
      const OperandId to = small(of.name + suffix, Role::temporary);
      Operation& op = add(kind, of.name + suffix, {end}, to);
      op.dtype = format_of(of);
      end = to;
      return op;
    };
    if (of.kind == ListedKind::collective) {
      const std::string word = of.collective == "all_gather"       ? "reduce_scatter"
                               : of.collective == "reduce_scatter" ? "all_gather"
                               : of.collective == "broadcast"      ? "all_reduce"
                                                                   : of.collective;
      const OperandId to = small(of.name + ".backward", Role::temporary);
      collect(of, of.name + ".backward", {from}, to, word);
      return to;
    }
    if (of.kind == ListedKind::attention) {
      Operation& op = step(OpKind::attention_backward, ".backward");
      op.reads.push_back(saved(of));
      as_attention(of, op, 2.5);
      return end;
    }
    if (of.is_matrix()) {
      if (!of.first) {
        Operation& op = step(kind_of(of), ".dgrad");
        if (of.parameters > 0) op.reads.push_back(block_.parameter(tensor_of(of), storage_));
        of.kind == ListedKind::conv
            ? as_convolution(of, op, {.m = of.m, .n = of.k, .k = of.n, .batch = of.products})
            : as_product(of, op, {.m = of.m, .n = of.k, .k = of.n, .batch = of.products});
      }
      Operation& op = step(kind_of(of), ".wgrad");
      op.reads.push_back(saved(of));
      of.kind == ListedKind::conv
          ? as_convolution(of, op, {.m = of.k, .n = of.n, .k = of.m, .batch = of.products})
          : as_product(of, op, {.m = of.k, .n = of.n, .k = of.m, .batch = of.products});
      gradient(of, op);
      return end;
    }
    Operation& op = step(OpKind::kernel, ".backward");
    op.mutable_named() = {of.kind == ListedKind::memory ? std::string{} : of.key, of.gathers};
    op.flops = work_of(of, of.reverse_flops);
    op.bytes = moved(of, of.reverse_traffic);
    if (kept_by(of) > Bytes{}) op.reads.push_back(saved(of));
    gradient(of, op);
    return end;
  }

  void gradient(const ListedOperation& of, Operation& op) {
    if (of.parameters == 0 || of.sharded) return;
    op.writes.push_back(block_.gradient(tensor_of(of), gradients_));
  }

  const BlockInputs& inputs_;
  const OperationList& list_;
  std::vector<ListedOperation> operations_;
  DType storage_, compute_, gradients_;
  BlockBuilder block_;
  Operation* last_ = nullptr;
};

/// Parameters that every rank has and updates.
std::int64_t trained_parameters(const OperationList& list) {
  std::map<std::int64_t, std::int64_t> of_kind;
  std::int64_t sum = 0;
  for (std::int64_t layer = 0; layer < list.layers(); ++layer) {
    const auto [own, fresh] = of_kind.try_emplace(list.kind_of(layer), 0);
    if (fresh) {
      for (const ListedOperation& each : list.operations(own->first)) {
        if (each.reverses && !each.sharded) own->second += each.parameters;
      }
    }
    sum += own->second;
  }
  return sum;
}

}  // namespace

ListedSizes listed_sizes(const BlockInputs& inputs) {
  return {.batch = inputs.plan.batch.micro, .gpus = inputs.plan.gpus()};
}

Mesh listed_mesh(const BlockInputs& inputs) {
  const OperationList& list = *inputs.model.list;
  const ListedSizes sizes = listed_sizes(inputs);
  const std::string inner = list.inner_group(sizes);
  if (inner.empty()) return mesh_of(inputs.plan);
  const std::int64_t ranks = list.ranks_of(inner, sizes);
  return Mesh{Mesh::Degrees{.context = ranks, .data = inputs.plan.gpus() / ranks}}.with_experts(1,
                                                                                                1);
}

BlockPair listed_blocks(const BlockInputs& inputs, const ListedPart& part) {
  return {ListedBuilder{inputs, part, Pass::forward}.forward(),
          ListedBuilder{inputs, part, Pass::backward}.backward()};
}

BlockPair empty_end(const char* name) {
  Block forward, backward;
  forward.name = fmt::format("{}.forward", name);
  backward.name = fmt::format("{}.backward", name);
  return {std::move(forward), std::move(backward)};
}

std::optional<Block> listed_update_block(const BlockInputs& inputs, std::int64_t elements) {
  if (!inputs.model.list) return std::nullopt;
  const OperationList& list = *inputs.model.list;
  BlockBuilder block{"update", Pass::step};
  const double share = static_cast<double>(elements) /
                       static_cast<double>(std::max<std::int64_t>(1, trained_parameters(list)));
  const OperandId gradients = block.operand(
      "gradients", Role::input, gradient_dtype(inputs.plan, inputs.software), {1, 1, elements});
  for (const ListedOperation& each : list.update(listed_sizes(inputs))) {
    if (each.kind == ListedKind::collective) continue;
    const OperandId out = block.operand(each.name, Role::temporary, DType::uint8, {1, 1, 1});
    Operation& op = block.add(OpKind::kernel, each.name, {gradients}, {out});
    op.time_class = TimeClass::optimizer;
    op.dtype = each.format.value_or(DType::fp32);
    op.mutable_named() = {each.key, each.gathers};
    op.flops = nearest_count<Flops>(each.flops * share);
    op.bytes = whole_bytes((each.traffic.read + each.traffic.write) * share);
  }
  if (block.size() == 0) return std::nullopt;
  return block.finish();
}

std::vector<AheadWork> ahead_of(const BlockInputs& inputs) {
  std::vector<AheadWork> all;
  if (!inputs.model.list) return all;
  const OperationList& list = *inputs.model.list;
  const double times = static_cast<double>(inputs.plan.micro_batches());
  for (std::int64_t layer = 0; layer < list.layers(); ++layer) {
    for (const ListedOperation& each : list.operations(list.kind_of(layer), listed_sizes(inputs))) {
      if (each.ahead == 0 && !each.never_waits) continue;
      using Use = AheadWork::Use;
      AheadWork work{.name = each.name, .queue = each.queue.empty() ? each.word : each.queue};
      work.bytes = whole_bytes(each.bytes);
      work.host = each.host;
      work.per_step = (list.trains() ? times : 1) / static_cast<double>(each.every);
      work.use = each.kind == ListedKind::host   ? Use::host
                 : each.kind == ListedKind::file ? (each.writes_files ? Use::write : Use::read)
                 : each.to == "gpu"              ? Use::to_gpu
                                                 : Use::to_host;
      if (!each.key.empty()) work.shared = list.storage_rate(each.key, each.writes_files);
      all.push_back(std::move(work));
    }
  }
  return all;
}

}  // namespace orrery::models
