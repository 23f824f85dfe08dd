#include "calibrate/shapes/work_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "calibrate/fit/experts.hpp"
#include "executor/layout/block_plan.hpp"
#include "models/lowering/lower.hpp"
#include "models/model/model.hpp"
#include "models/operations/grouped.hpp"

namespace orrery::calibrate {

namespace {

using models::Operation;
using models::OpKind;

Json model_json(const CalibrationCase& of) {
  Json json{{"format", "orrery-model"}, {"name", of.family},
            {"family", of.family},      {"layers", 2},
            {"hidden", of.hidden},      {"heads", of.heads},
            {"kv_heads", of.kv_heads},  {"vocab", of.vocab},
            {"max_positions", of.seq}};
  if (of.ffn > 0) json["ffn_hidden"] = of.ffn;
  return json;
}

Json plan_json(const CalibrationCase& of) {
  Json json{
      {"tensor", of.tensor}, {"micro_batch", of.micro_batch}, {"global_batch", of.micro_batch},
      {"seq_len", of.seq},   {"precision", of.precision},     {"recompute", "none"}};
  if (*of.moments != 0) json["moments"] = of.moments;
  return json;
}

/// A Llama with a small vocabulary, in bf16 with fused attention; as many KV heads as heads.
struct LlamaShape {
  std::int64_t hidden, heads, ffn, seq, micro_batch;
};
CalibrationCase llama(const LlamaShape& of) {
  return {Target::gpu,
          Timed::whole,
          "llama",
          of.hidden,
          of.heads,
          of.heads,
          of.ffn,
          of.seq,
          of.micro_batch,
          1,
          512,
          "bf16",
          CaseAttention::fused};
}

std::string words_of(const CalibrationCase& of) {
  return fmt::format("{} {} {} x {} x {} h{}/{} t{} v{}{}{}{}", of.precision, of.family, of.hidden,
                     of.seq, of.micro_batch, of.heads, of.kv_heads, of.tensor, of.vocab,
                     of.attention == CaseAttention::unfused ? " unfused" : "",
                     *of.moments != 0 ? " moments " : "", of.moments);
}

class WorkMaker {
 public:
  WorkMaker(models::Software software, const WorkQuestion& question)
      : software_{std::move(software)}, asked_{question} {}

  WorkList make() {
    for (const PlanToMeasure& plan : asked_.plans) {
      if (plan.model.hidden > asked_.widest) continue;
      const models::Program& program = lowered(plan.model, plan.plan, CaseAttention::fused);
      add_blocks(program, {.name = plan.name, .first = true});
      add_products(program, true);
    }
    for (const CalibrationCase& of : calibration_cases) {
      if (of.target == asked_.target && of.hidden <= asked_.widest) add_case(of);
    }
    add_experts();
    if (asked_.target == Target::gpu) {
      add_launches();
      add_loads();
    }
    return std::move(made_);
  }

 private:
  void add_case(const CalibrationCase& of) {
    const models::Program& program = lowered(of);
    if (of.timed == Timed::products) return add_products(program, false);
    if (of.timed == Timed::attention) return add_attentions(program);
    add_blocks(program, {.name = words_of(of),
                         .compared = of.target == Target::processor,
                         .with_others = of.timed == Timed::at_once});
  }

  const models::Program& lowered(const models::Model& model, const models::Plan& plan,
                                 CaseAttention attention) {
    models::Software software = software_;
    const bool fused = attention == CaseAttention::fused;
    software.kernels.attention = {{"default", fused ? "flash-2" : "unfused"}};
    made_.programs.push_back(std::make_unique<models::Program>(
        models::lower({model, plan, software, asked_.generation})));
    return *made_.programs.back();
  }

  const models::Program& lowered(const CalibrationCase& of) {
    const Document model_file = Document::from(model_json(of), "calibration model");
    const Document plan_file = Document::from(plan_json(of), "calibration plan");
    const models::Model model = models::read_model(model_file.root());
    std::vector<std::string> defaults;
    const models::Plan plan =
        models::read_plan(plan_file.root(), model, static_cast<int>(of.tensor), defaults);
    return lowered(model, plan, of.attention);
  }

  /// The block as the executor runs it; times are recorded for the Program's own operations.
  const models::Block& run_of(const models::Block& block) {
    made_.made.push_back(std::make_unique<models::Block>(executor::executed(block)));
    return *made_.made.back();
  }

  /// Adds the program's blocks. `as` has their settings, and its name is put before the block's.
  void add_blocks(const models::Program& program, const TimedBlock& as) {
    for (const models::Block& block : program.blocks) {
      TimedBlock made = as;
      made.name += " " + block.name;
      if (block.operations.empty() || !names_.insert(made.name).second) continue;
      made.block = &run_of(block);
      made.tokens = program.vocabulary;
      made.priced = &block;
      made_.points.push_back(std::move(made));
    }
  }

  TimedBlock alone(std::string name, const models::Block& block, const Operation& op,
                   std::int64_t tokens) {
    made_.made.push_back(std::make_unique<models::Block>(single(block, op)));
    return {.name = std::move(name),
            .block = made_.made.back().get(),
            .tokens = tokens,
            .alone = true,
            .compared = true};
  }

  /// Adds the program's GEMMs, each shape, format and layout once.
  void add_products(const models::Program& program, bool first) {
    for (const models::Block& block : program.blocks) {
      const models::Block& run = run_of(block);
      for (std::size_t i = 0; i < run.operations.size(); ++i) {
        const Operation& op = run.operations[i];
        if (op.kind != OpKind::gemm) continue;
        const models::GemmShape& s = op.gemm();
        std::string name = fmt::format("gemm {} {} x {} x {} {}{}{}", hardware::name(op.dtype), s.m,
                                       s.n, s.k, s.transpose_a ? "t" : "n",
                                       s.transpose_b ? "t" : "n", s.accumulate ? " added" : "");
        if (!names_.insert(name).second) continue;
        TimedBlock made = alone(std::move(name), run, op, program.vocabulary);
        made_.made.push_back(std::make_unique<models::Block>(single(block, block.operations[i])));
        made.priced = made_.made.back().get();
        made.first = first;
        made_.points.push_back(std::move(made));
      }
    }
  }

  static std::string attention_name(const Operation& op) {
    const models::AttentionShape& of = op.attention();
    return fmt::format("{} {} {} x {} h{}/{} d{}{}", models::name(op.kind),
                       hardware::name(op.dtype), of.seq, of.batch, of.heads, of.kv_heads,
                       of.head_dim, of.causal ? "" : " whole");
  }

  /// Adds the program's attention calls, each also without its causal mask, for twice the work.
  void add_attentions(const models::Program& program) {
    for (const models::Block& block : program.blocks) {
      for (const Operation& op : block.operations) {
        if (op.kind != OpKind::attention && op.kind != OpKind::attention_backward) continue;
        Operation unmasked = op;
        unmasked.mutable_attention().causal = false;
        unmasked.flops = Flops{2 * op.flops.count()};
        for (const Operation* each : {&op, &std::as_const(unmasked)}) {
          std::string name = attention_name(*each);
          if (!names_.insert(name).second) continue;
          made_.points.push_back(alone(std::move(name), block, *each, program.vocabulary));
        }
      }
    }
  }

  /// Adds the expert cases, each with even rows and with rows by Zipf's law. The first case is
  /// small enough for every trial.
  void add_experts() {
    bool first = true;
    for (const ExpertCase& of : expert_cases) {
      if (of.target != asked_.target) continue;
      if (std::max(of.k, of.n) > asked_.widest && !first) continue;
      first = false;
      add_experts({.rows = even_rows(of.rows, of.experts), .k = of.k, .n = of.n}, "");
      add_experts({.rows = zipf_rows(of.rows, of.experts), .k = of.k, .n = of.n}, " skewed");
    }
  }

  void add_experts(const models::ExpertsShape& shape, const char* how) {
    using models::ExpertsProduct;
    for (const auto which : {ExpertsProduct::forward, ExpertsProduct::input_gradient,
                             ExpertsProduct::weight_gradient}) {
      made_.made.push_back(std::make_unique<models::Block>(experts_block(shape, which)));
      const models::Block& block = *made_.made.back();
      made_.points.push_back({.name = fmt::format("{} {} {} x {} x {}, {} rows{}", block.name,
                                                  hardware::name(shape.dtype), shape.rows.size(),
                                                  shape.k, shape.n, shape.all_rows(), how),
                              .block = &block,
                              .alone = true,
                              .compared = true});
    }
  }

  /// Adds a layer so small that only its launches take time.
  void add_launches() {
    const models::Program& program =
        lowered(llama({.hidden = 128, .heads = 2, .ffn = 384, .seq = 64, .micro_batch = 1}));
    const models::Block& forward = program.blocks[program.kind(models::ModelPart::layer).forward];
    made_.launches.push_back(
        {.name = "a small layer.forward", .block = &forward, .tokens = program.vocabulary});
    made_.launches.push_back(
        {.name = "a small layer.backward",
         .block = &program.blocks[program.kind(models::ModelPart::layer).backward],
         .tokens = program.vocabulary});
    const auto add = std::ranges::find_if(
        forward.operations, [](const Operation& op) { return op.kind == OpKind::add; });
    if (add == forward.operations.end()) return;
    made_.launches.push_back(alone("one kernel", forward, *add, program.vocabulary));
  }

  /// Adds what runs for seconds: a square GEMM (at 8192, one or two milliseconds on today's GPUs),
  /// the GEMM into a Llama's MLP and its weight gradient, and the backward of its attention.
  void add_loads() {
    const std::int64_t wide = 8192, hidden = 2048, ffn = 11008;
    add_load({.m = wide, .n = wide, .k = wide, .transpose_b = true});
    add_load({.m = wide, .n = ffn, .k = hidden});
    add_load({.m = hidden, .n = ffn, .k = wide, .transpose_a = true});
    const models::Program& program = lowered(
        asked_.widest < hidden
            ? llama({.hidden = 128, .heads = 2, .ffn = 384, .seq = 64, .micro_batch = 1})
            : llama({.hidden = hidden, .heads = 16, .ffn = 5504, .seq = 2048, .micro_batch = 4}));
    const models::Block& block = program.blocks[program.kind(models::ModelPart::layer).backward];
    for (const Operation& op : block.operations) {
      if (op.kind != OpKind::attention_backward) continue;
      made_.loads.push_back(alone(attention_name(op), block, op, program.vocabulary));
    }
  }

  void add_load(models::GemmShape shape) {
    for (std::int64_t* side : {&shape.m, &shape.n, &shape.k})
      *side = std::min(*side, asked_.widest);
    auto block = std::make_unique<models::Block>();
    const auto operand = [&](const char* name, std::int64_t rows, std::int64_t columns) {
      block->operands.push_back(
          {name, models::Role::temporary, models::DType::bf16, {1, rows, columns}});
    };
    operand("a", shape.transpose_a ? shape.k : shape.m, shape.transpose_a ? shape.m : shape.k);
    operand("b", shape.transpose_b ? shape.n : shape.k, shape.transpose_b ? shape.k : shape.n);
    operand("c", shape.m, shape.n);
    Operation product;
    product.name = "load";
    product.dtype = models::DType::bf16;
    product.reads = {0, 1};
    product.writes = {2};
    product.mutable_gemm() = shape;
    product.flops = Flops{2 * shape.m * shape.n * shape.k};
    product.bytes = Bytes{2 * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n)};
    block->operations.push_back(std::move(product));
    made_.made.push_back(std::move(block));
    made_.loads.push_back(
        {.name = fmt::format("gemm bf16 {} x {} x {} {}{}", shape.m, shape.n, shape.k,
                             shape.transpose_a ? "t" : "n", shape.transpose_b ? "t" : "n"),
         .block = made_.made.back().get(),
         .alone = true,
         .compared = true});
  }

  models::Software software_;
  const WorkQuestion& asked_;
  std::set<std::string> names_;
  WorkList made_;
};

}  // namespace

WorkList work_list(const models::Software& software, const WorkQuestion& question) {
  return WorkMaker{software, question}.make();
}

}  // namespace orrery::calibrate
