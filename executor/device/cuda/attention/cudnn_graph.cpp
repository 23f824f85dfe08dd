#include "executor/device/cuda/attention/cudnn_graph.hpp"

#include <cmath>
#include <memory>

#include "executor/device/cuda/attention/attention_tensors.hpp"

namespace orrery::executor::cuda {

namespace {

namespace graph = cudnn_frontend::graph;
using cudnn_frontend::DataType_t;
using models::AttentionShape;
using models::Operation;
using models::OpKind;
using Tensor = std::shared_ptr<graph::Tensor_attributes>;

DataType_t stored_as(models::DType format) {
  return format == models::DType::bf16 ? DataType_t::BFLOAT16 : DataType_t::HALF;
}

template <class Of>
void set_place(Of& tensor, Operand operand, const HeadTensor& of, DataType_t type) {
  tensor.set_uid(static_cast<std::int64_t>(operand))
      .set_dim({of.extents.begin(), of.extents.end()})
      .set_stride({of.strides.begin(), of.strides.end()})
      .set_data_type(type);
}

/// Sets the scale of scores and which keys a query sees: a band about the diagonal, whose left
/// bound is the number of keys up to the query's own, and whose right bound is the number beyond
/// it.
template <class Attributes>
void set_sight(Attributes& attributes, const AttentionShape& shape) {
  attributes.set_attn_scale(static_cast<float>(shape.score_scale()));
  attributes.set_diagonal_alignment(cudnn_frontend::DiagonalAlignment_t::TOP_LEFT);
  if (shape.causal) attributes.set_diagonal_band_right_bound(0);
  if (shape.window > 0 && shape.window < shape.seq) {
    attributes.set_diagonal_band_left_bound(static_cast<int>(shape.window));
  }
}

class AttentionGraph {
 public:
  AttentionGraph(const Operation& op, Sums sums, int capability)
      : shape_{op.attention}, tensors_{op.attention}, type_{stored_as(op.dtype)} {
    made_.set_io_data_type(type_)
        .set_intermediate_data_type(DataType_t::FLOAT)
        .set_compute_data_type(DataType_t::FLOAT)
        .set_sm_version(capability);  // before any operation is added, as each reads it then
    op.kind == OpKind::attention ? add_forward() : add_backward(sums);
  }

  graph::Graph made() { return std::move(made_); }

 private:
  Tensor read(Operand operand, const HeadTensor& of) { return read(operand, of, type_); }
  Tensor read(Operand operand, const HeadTensor& of, DataType_t type) {
    graph::Tensor_attributes tensor;
    set_place(tensor, operand, of, type);
    return made_.tensor(tensor);
  }
  void write(const Tensor& tensor, Operand operand, const HeadTensor& of) {
    write(tensor, operand, of, type_);
  }
  void write(const Tensor& tensor, Operand operand, const HeadTensor& of, DataType_t type) {
    set_place(*tensor, operand, of, type);
    tensor->set_output(true);
  }

  void add_forward() {
    graph::SDPA_attributes attributes;
    attributes.set_name("attention").set_generate_stats(true);
    set_sight(attributes, shape_);
    const auto [out, log_sum] =
        made_.sdpa(read(Operand::query, tensors_.query), read(Operand::key, tensors_.key),
                   read(Operand::value, tensors_.value), attributes);
    write(out, Operand::context, tensors_.context);
    write(log_sum, Operand::log_sum, tensors_.log_sum, DataType_t::FLOAT);
  }

  void add_backward(Sums sums) {
    graph::SDPA_backward_attributes attributes;
    attributes.set_name("attention_backward")
        .set_deterministic_algorithm(sums == Sums::in_one_order);
    set_sight(attributes, shape_);
    const auto [d_query, d_key, d_value] = made_.sdpa_backward(
        read(Operand::query, tensors_.query), read(Operand::key, tensors_.key),
        read(Operand::value, tensors_.value), read(Operand::context, tensors_.context),
        read(Operand::d_context, tensors_.context),
        read(Operand::log_sum, tensors_.log_sum, DataType_t::FLOAT), attributes);
    write(d_query, Operand::d_query, tensors_.query);
    write(d_key, Operand::d_key, tensors_.key);
    write(d_value, Operand::d_value, tensors_.value);
  }

  AttentionShape shape_;
  AttentionTensors tensors_;
  DataType_t type_;
  graph::Graph made_;
};

}  // namespace

graph::Graph attention_graph(const Operation& op, Sums sums, int capability) {
  return AttentionGraph{op, sums, capability}.made();
}

}  // namespace orrery::executor::cuda
