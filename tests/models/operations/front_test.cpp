// A frozen encoder of images in front of a language model: its parameters, FLOPs and memory,
// counted by hand.

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/lowering/lower.hpp"
#include "models/model/counts.hpp"
#include "models/plan/conflicts.hpp"
#include "models/prediction/flops.hpp"
#include "models/program/check/check.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// Two layers of width 64 with 8 patches of 2 x 2 x 3 numbers, of which 2 become a row.
constexpr const char* small_images =
    R"("images": {"layers": 2, "hidden": 64, "heads": 4, "patches": 8, "patch": 2, "merged": 2,
                  "projector": 96, "count": 3})";

Model llama_seeing(const std::string& images) {
  const std::string text =
      R"({"format": "orrery-model", "family": "llama", "layers": 2, "hidden": 128, "heads": 8,
          "kv_heads": 4, "ffn_hidden": 256, "vocab": 1000)" +
      (images.empty() ? "" : ", " + images) + "}";
  return read_model(Document::parse(text, "small.json").root());
}

Plan of_64_tokens(std::int64_t tensor = 1) {
  Plan plan;
  plan.batch.seq_len = 64;
  plan.tensor = tensor;
  return plan;
}

Software fused_stack() {
  Software software = plain_software();
  software.kernels.attention["default"] = "flash-2";
  return software;
}

Program seeing_program(const Model& model, const Plan& plan) {
  Program program = lower(BlockInputs{model, plan, fused_stack()});
  check(program);
  return program;
}

TEST_CASE("An encoder of images adds its patches, positions, layers and projector") {
  // 12 x 64 + 64 of patches, 8 x 64 positions; a layer 4 x 64 x 64 + 4 x 64 of attention,
  // 2 x 64 x 256 + 256 + 64 of the MLP, 4 x 64 of norms; 2 x 64; the projector 128 x 96 + 96 and
  // 96 x 128 + 128.
  const std::int64_t encoder = 832 + 512 + 2 * (16'640 + 33'088 + 256) + 128;
  const std::int64_t projector = 12'384 + 12'416;
  const Model plain = llama_seeing(""), with = llama_seeing(small_images);
  CHECK(with.parameters - plain.parameters == encoder + projector);
  CHECK(with.active_parameters - plain.active_parameters == encoder + projector);
  const Program program = seeing_program(with, of_64_tokens());
  CHECK(program.classes.front().parameters == plain.parameters + projector);
  CHECK(program.classes.front().frozen.count() == 2 * encoder);
}

TEST_CASE("The encoder multiplies forward, the projector's gradients follow") {
  const Model plain = llama_seeing(""), with = llama_seeing(small_images);
  // 24 patches: 2 x 12 x 64, and in each layer 2 x (4 x 64 x 64 + 2 x 64 x 256) and 4 x 64 x 8 of
  // attention to the 8 of its image.
  const double encoder = 24 * (1536 + 2.0 * (2 * 49'152 + 2048));
  const double up = 2.0 * 12 * 128 * 96, down = 2.0 * 12 * 96 * 128;
  const FrontFlops of = front_flops(*with.front, with.hidden);
  CHECK(of.encoder == encoder);
  CHECK(of.project_up == up);
  CHECK(of.project_down == down);
  const double more = training_flops_per_token(with, of_64_tokens()) -
                      training_flops_per_token(plain, of_64_tokens());
  CHECK(64 * more == Approx(encoder + 2 * up + 3 * down).epsilon(1e-9));

  const auto flops = [&](const Model& model, bool backward) {
    const Program program = seeing_program(model, of_64_tokens());
    const LayerKind& kind = program.kind(ModelPart::embedding);
    const Block& block = program.blocks[backward ? kind.backward : kind.forward];
    return static_cast<double>(block.flops().count());
  };
  CHECK(flops(with, false) - flops(plain, false) == Approx(encoder + up + down).epsilon(1e-9));
  CHECK(flops(with, true) - flops(plain, true) == Approx(up + 2 * down).epsilon(1e-9));
}

TEST_CASE("Tensor parallelism halves the encoder's matrices and sums their outputs") {
  const Model with = llama_seeing(small_images);
  const Program one = seeing_program(with, of_64_tokens()),
                two = seeing_program(with, of_64_tokens(2));
  const auto forward = [](const Program& program) {
    return program.blocks[program.kind(ModelPart::embedding).forward];
  };
  const auto gemms = [](const Block& block) {
    Flops sum{};
    for (const Operation& op : block.operations) {
      const bool of_layer = op.name.starts_with("encoder.0.") && op.kind == OpKind::gemm;
      if (of_layer) sum += op.flops;
    }
    return sum;
  };
  CHECK(gemms(forward(two)).count() * 2 == gemms(forward(one)).count());
  const auto reduces = [](const Operation& op) {
    return op.kind == OpKind::collective && op.name.starts_with("encoder.0.");
  };
  CHECK(std::ranges::count_if(forward(two).operations, reduces) == 2);
  CHECK(std::ranges::count_if(forward(one).operations, reduces) == 0);
}

TEST_CASE("Nothing of the encoder is kept for backward but the projector's inputs") {
  const Program program = seeing_program(llama_seeing(small_images), of_64_tokens());
  const Block& forward = program.blocks[program.kind(ModelPart::embedding).forward];
  for (const Operand& each : forward.operands) {
    if (each.name.starts_with("encoder.")) CHECK(each.role != Role::saved);
    if (each.role == Role::parameter) CHECK(each.frozen == each.name.starts_with("encoder."));
  }
}

TEST_CASE("What images do not go with is refused, and so are sizes that do not fit") {
  const Model with = llama_seeing(small_images);
  const auto problem = [&](auto change) {
    Plan plan = of_64_tokens();
    change(plan);
    const auto found = conflicts(plan, with, plan.gpus());
    return found.empty() ? std::string{} : found.front().pointer + ": " + found.front().problem;
  };
  CHECK(problem([](Plan&) {}).empty());
  CHECK(problem([](Plan& p) { p.batch.seq_len = 8; }) ==
        "/seq_len: seq_len 8 is shorter than the 12 rows of a sequence's images");
  CHECK(problem([](Plan& p) { p.task = Task::lora; }) ==
        "/task: with an encoder of images only the task pretrain is simulated");
  CHECK(problem([](Plan& p) { p.context = 2; }) ==
        "/context: context parallelism with an encoder of images is not simulated");
  CHECK_THROWS_WITH(llama_seeing(R"("images": {"layers": 1, "hidden": 64, "heads": 3, "patches": 8,
                                  "patch": 2})"),
                    "small.json:/images/hidden: 64 is not a multiple of the 3 attention heads");
  CHECK_THROWS_WITH(llama_seeing(R"("images": {"layers": 1, "hidden": 64, "heads": 4, "patches": 8,
                                  "patch": 2, "merged": 3})"),
                    "small.json:/images/merged: 3 does not divide the 8 patches of an image");
  CHECK(seeing_program(with, of_64_tokens()).inexact_feature == "an encoder of images");
}

}  // namespace
}  // namespace orrery::models
