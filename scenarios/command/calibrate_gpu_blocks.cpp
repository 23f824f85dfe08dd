#include "scenarios/command/calibrate_gpu_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "calibrate/fit/experts.hpp"
#include "models/lowering/lower.hpp"
#include "models/model.hpp"
#include "models/operations/grouped.hpp"

namespace orrery::scenarios {

namespace {

using calibrate::TimedBlock;
using models::Operation;
using models::OpKind;

enum class Attention { fused, unfused };

/// One model of two layers, and how a rank runs it. ffn 0: four times hidden.
struct GpuCase {
  const char* family;
  std::int64_t hidden, heads, kv_heads, ffn, seq, micro_batch, tensor, vocab;
  const char* precision = "bf16";
  Attention attention = Attention::fused;
};

/// Every operation of their blocks is timed: norms, losses, updates over sizes.
constexpr GpuCase whole[] = {
    {"llama", 128, 2, 2, 384, 128, 1, 1, 512},
    {"gpt", 128, 2, 2, 0, 64, 2, 1, 512},
    {"gpt", 512, 8, 8, 0, 512, 1, 1, 8192},
    {"gpt", 768, 12, 12, 0, 1024, 1, 1, 50304},
    {"gpt", 1024, 16, 16, 0, 1024, 4, 1, 50304},
    {"gpt", 2048, 16, 16, 0, 2048, 4, 1, 50304},
    {"gpt", 2048, 32, 32, 0, 1000, 1, 1, 32000},
    {"llama", 1024, 16, 4, 2816, 4096, 1, 1, 32000},
    {"llama", 2048, 16, 16, 5632, 2048, 1, 1, 32000},
    {"llama", 2048, 32, 8, 8192, 2048, 4, 1, 32000},
    {"llama", 4096, 32, 8, 14336, 4096, 1, 1, 32000},
    {"llama", 4096, 32, 8, 14336, 8192, 2, 4, 128256},
    {"gpt", 1024, 16, 16, 0, 1024, 2, 1, 8192, "bf16", Attention::unfused},
    {"gpt", 2048, 16, 16, 0, 2048, 1, 1, 8192, "bf16", Attention::unfused},
    {"gpt", 1024, 16, 16, 0, 512, 2, 1, 8192, "fp32", Attention::unfused},
    {"gpt", 1024, 16, 16, 0, 1024, 4, 1, 8192, "fp16"},
    {"llama", 1024, 16, 4, 2816, 1024, 1, 1, 8192, "fp8"},
    {"llama", 4096, 32, 8, 14336, 4096, 1, 1, 8192, "fp8"},
};

/// Their products alone are timed, forward, input gradient and weight gradient; many are one
/// tensor rank's of a wider model.
constexpr GpuCase products[] = {
    {"llama", 128, 2, 2, 384, 96, 1, 1, 512},
    {"llama", 1024, 16, 16, 2816, 512, 1, 1, 32768},
    {"llama", 1024, 16, 16, 2816, 4096, 4, 1, 32768},
    {"llama", 2048, 16, 16, 5632, 1000, 1, 1, 32768},
    {"llama", 2048, 16, 16, 5632, 8192, 1, 1, 32768},
    {"llama", 4096, 32, 8, 14336, 2048, 1, 1, 32768},
    {"llama", 4096, 32, 8, 14336, 8192, 1, 1, 32768},
    {"llama", 4096, 32, 32, 11008, 4096, 1, 2, 32768},
    {"llama", 5120, 40, 40, 13824, 4096, 1, 1, 32768},
    {"llama", 5120, 40, 40, 13824, 1000, 3, 4, 32768},
    {"llama", 8192, 64, 8, 28672, 4096, 1, 8, 32768},
    {"llama", 8192, 64, 8, 28672, 8192, 2, 4, 32768},
    {"llama", 8192, 64, 8, 28672, 2048, 1, 1, 32768},
    {"llama", 16384, 128, 8, 53248, 8192, 1, 8, 32768},
    {"llama", 16384, 128, 8, 53248, 512, 1, 8, 32768},
    {"llama", 2048, 16, 16, 5632, 4096, 1, 1, 32768, "fp16"},
    {"llama", 4096, 32, 8, 14336, 4096, 1, 1, 32768, "fp16"},
    {"llama", 1024, 16, 16, 2816, 1000, 1, 1, 32768, "tf32"},
    {"llama", 2048, 16, 16, 5632, 4096, 1, 1, 32768, "tf32"},
    {"llama", 4096, 32, 8, 14336, 4096, 1, 1, 32768, "tf32"},
    {"llama", 2048, 16, 16, 5632, 2048, 1, 1, 32768, "fp32"},
    {"llama", 128, 2, 2, 384, 64, 1, 1, 512, "fp8"},
    {"llama", 2048, 16, 16, 5632, 2048, 1, 1, 32768, "fp8"},
    {"llama", 4096, 32, 8, 14336, 8192, 1, 1, 32768, "fp8"},
    {"llama", 8192, 64, 8, 28672, 4096, 1, 8, 32768, "fp8"},
    {"llama", 8192, 64, 8, 28672, 8192, 1, 4, 32768, "fp8"},
};

/// Their attention alone: lengths 512 to 16384, heads of 64 and 128, groups of queries.
constexpr GpuCase attentions[] = {
    {"llama", 128, 2, 2, 384, 64, 1, 1, 512},        {"llama", 2048, 16, 16, 5632, 512, 16, 1, 512},
    {"llama", 2048, 16, 16, 5632, 1024, 8, 1, 512},  {"llama", 2048, 16, 16, 5632, 2048, 4, 1, 512},
    {"llama", 2048, 16, 16, 5632, 4096, 2, 1, 512},  {"llama", 2048, 16, 16, 5632, 8192, 1, 1, 512},
    {"llama", 2048, 16, 16, 5632, 16384, 1, 1, 512}, {"llama", 2048, 32, 32, 5632, 512, 16, 1, 512},
    {"llama", 2048, 32, 32, 5632, 2048, 4, 1, 512},  {"llama", 2048, 32, 32, 5632, 4096, 2, 1, 512},
    {"llama", 2048, 32, 32, 5632, 16384, 1, 1, 512}, {"llama", 4096, 32, 8, 14336, 1024, 4, 1, 512},
    {"llama", 4096, 32, 8, 14336, 4096, 1, 1, 512},  {"llama", 4096, 32, 8, 14336, 8192, 1, 1, 512},
    {"llama", 4096, 32, 8, 14336, 16384, 1, 1, 512},
};

/// Layers of experts: few wide ones, many narrow ones; of so many tokens in all.
constexpr struct {
  std::int64_t experts, k, n, rows;
} expert_layers[] = {
    {4, 128, 256, 96},       {8, 4096, 14336, 4096}, {8, 14336, 4096, 4096},
    {64, 2048, 1408, 16384}, {64, 2048, 1408, 4096}, {16, 4096, 4096, 8192},
};

Json gpu_model_json(const GpuCase& of) {
  Json json{{"format", "orrery-model"}, {"name", of.family},
            {"family", of.family},      {"layers", 2},
            {"hidden", of.hidden},      {"heads", of.heads},
            {"kv_heads", of.kv_heads},  {"vocab", of.vocab},
            {"max_positions", of.seq}};
  if (of.ffn > 0) json["ffn_hidden"] = of.ffn;
  return json;
}

Json gpu_plan_json(const GpuCase& of) {
  return {{"tensor", of.tensor}, {"micro_batch", of.micro_batch}, {"global_batch", of.micro_batch},
          {"seq_len", of.seq},   {"precision", of.precision},     {"recompute", "none"}};
}

std::string words_of(const GpuCase& of) {
  return fmt::format("{} {} {} x {} x {} h{}/{} t{} v{}{}", of.precision, of.family, of.hidden,
                     of.seq, of.micro_batch, of.heads, of.kv_heads, of.tensor, of.vocab,
                     of.attention == Attention::unfused ? " unfused" : "");
}

class GpuBlockMaker {
 public:
  GpuBlockMaker(models::Software software, hardware::Generation generation, std::int64_t widest)
      : software_{std::move(software)}, generation_{generation}, widest_{widest} {}

  GpuBlocks make() {
    for (const GpuCase& of : whole) {
      if (of.hidden <= widest_) add_blocks(of);
    }
    for (const GpuCase& of : products) {
      if (of.hidden <= widest_) add_products(of);
    }
    for (const GpuCase& of : attentions) {
      if (of.hidden <= widest_) add_attentions(of);
    }
    add_experts();
    add_launches();
    add_load();
    return std::move(made_);
  }

 private:
  const models::Program& lowered(const GpuCase& of) {
    const Document model_file = Document::from(gpu_model_json(of), "calibration model");
    const Document plan_file = Document::from(gpu_plan_json(of), "calibration plan");
    const models::Model model = models::read_model(model_file.root());
    std::vector<std::string> defaults;
    const models::Plan plan =
        models::read_plan(plan_file.root(), model, static_cast<int>(of.tensor), defaults);
    models::Software software = software_;
    const bool fused = of.attention == Attention::fused;
    software.kernels.attention = {{"default", fused ? "flash-2" : "unfused"}};
    made_.programs.push_back(
        std::make_unique<models::Program>(models::lower({model, plan, software, generation_})));
    return *made_.programs.back();
  }

  void add_blocks(const GpuCase& of) {
    const models::Program& program = lowered(of);
    for (const models::Block& block : program.blocks) {
      std::string name = words_of(of) + " " + block.name;
      if (block.operations.empty() || !names_.insert(name).second) continue;
      made_.blocks.push_back({std::move(name), &block, &program.model});
    }
  }

  TimedBlock alone(std::string name, const models::Block& block, const Operation& op,
                   const models::Model& model) {
    made_.single.push_back(std::make_unique<models::Block>(calibrate::single(block, op)));
    return {std::move(name), made_.single.back().get(), &model};
  }

  /// Products of one shape, format and layout once.
  void add_products(const GpuCase& of) {
    const models::Program& program = lowered(of);
    for (const models::Block& block : program.blocks) {
      for (const Operation& op : block.operations) {
        if (op.kind != OpKind::gemm) continue;
        const models::GemmShape& s = op.gemm;
        std::string name = fmt::format("gemm {} {} x {} x {} {}{}{}", hardware::name(op.dtype), s.m,
                                       s.n, s.k, s.transpose_a ? "t" : "n",
                                       s.transpose_b ? "t" : "n", s.accumulate ? " added" : "");
        if (!names_.insert(name).second) continue;
        made_.operations.push_back(alone(std::move(name), block, op, program.model));
      }
    }
  }

  static std::string attention_name(const Operation& op) {
    const models::AttentionShape& of = op.attention;
    return fmt::format("{} {} {} x {} h{}/{} d{}{}", models::name(op.kind),
                       hardware::name(op.dtype), of.seq, of.batch, of.heads, of.kv_heads,
                       of.head_dim, of.causal ? "" : " whole");
  }

  /// Each also without its mask, for twice the work.
  void add_attentions(const GpuCase& of) {
    const models::Program& program = lowered(of);
    for (const models::Block& block : program.blocks) {
      for (const Operation& op : block.operations) {
        if (op.kind != OpKind::attention && op.kind != OpKind::attention_backward) continue;
        Operation unmasked = op;
        unmasked.attention.causal = false;
        unmasked.flops = Flops{2 * op.flops.count()};
        for (const Operation* each : {&op, &std::as_const(unmasked)}) {
          std::string name = attention_name(*each);
          if (!names_.insert(name).second) continue;
          made_.operations.push_back(alone(std::move(name), block, *each, program.model));
        }
      }
    }
  }

  /// Each with rows that are alike and with rows by Zipf's law.
  void add_experts() {
    for (const auto& of : expert_layers) {
      if (std::max(of.k, of.n) > widest_ && of.experts != expert_layers[0].experts) continue;
      add_experts({.rows = calibrate::even_rows(of.rows, of.experts), .k = of.k, .n = of.n}, "");
      add_experts({.rows = calibrate::zipf_rows(of.rows, of.experts), .k = of.k, .n = of.n},
                  " skewed");
    }
  }

  void add_experts(const models::ExpertsShape& shape, const char* how) {
    using models::ExpertsProduct;
    for (const auto which : {ExpertsProduct::forward, ExpertsProduct::input_gradient,
                             ExpertsProduct::weight_gradient}) {
      made_.single.push_back(std::make_unique<models::Block>(experts_block(shape, which)));
      const models::Block& block = *made_.single.back();
      made_.operations.push_back(
          {fmt::format("{} {} {} x {} x {}, {} rows{}", block.name, hardware::name(shape.dtype),
                       shape.rows.size(), shape.k, shape.n, shape.all_rows(), how),
           &block, &made_.programs.front()->model});
    }
  }

  /// A layer so small that only its launches take time.
  void add_launches() {
    const models::Program& program = lowered({"llama", 128, 2, 2, 384, 64, 1, 1, 512});
    const models::Block& forward = program.blocks[models::layer_forward];
    made_.launches.push_back({"a small layer.forward", &forward, &program.model});
    made_.launches.push_back(
        {"a small layer.backward", &program.blocks[models::layer_backward], &program.model});
    const auto add = std::find_if(forward.operations.begin(), forward.operations.end(),
                                  [](const Operation& op) { return op.kind == OpKind::add; });
    if (add == forward.operations.end()) return;
    made_.launches.push_back(alone("one kernel", forward, *add, program.model));
  }

  /// A square product: of 8192 it takes a millisecond or two of today's GPUs.
  void add_load() {
    const std::int64_t side = std::min<std::int64_t>(8192, widest_);
    auto block = std::make_unique<models::Block>();
    for (const char* name : {"a", "b", "c"}) {
      block->operands.push_back(
          {name, models::Role::temporary, models::DType::bf16, {1, side, side}});
    }
    Operation product;
    product.name = "load";
    product.dtype = models::DType::bf16;
    product.reads = {0, 1};
    product.writes = {2};
    product.gemm = {.m = side, .n = side, .k = side, .transpose_b = true};
    product.flops = Flops{2 * side * side * side};
    product.bytes = Bytes{3 * 2 * side * side};
    block->operations.push_back(std::move(product));
    made_.single.push_back(std::move(block));
    made_.load = {fmt::format("gemm bf16 {} x {} x {}", side, side, side),
                  made_.single.back().get(), &made_.programs.back()->model};
  }

  models::Software software_;
  hardware::Generation generation_;
  std::int64_t widest_;
  std::set<std::string> names_;
  GpuBlocks made_;
};

}  // namespace

GpuBlocks gpu_blocks(const models::Software& software, hardware::Generation generation,
                     std::int64_t widest) {
  return GpuBlockMaker{software, generation, widest}.make();
}

}  // namespace orrery::scenarios
