#include <catch2/catch.hpp>

#include "models/operations/blocks.hpp"
#include "models/plan/conflicts.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t few_tokens = 1024, few_hidden = 4096;

BlockPair layer_in(const std::string& precision) {
  Question asked = question("llama3-8b", "dgx-b200 x 1",
                            "data=8,global_batch=8,seq_len=1024,precision=" + precision, "generic");
  return layer_blocks({asked.model, asked.plan, asked.software, "blackwell"});
}

const Operation& operation_of(const Block& block, const std::string& name) {
  for (const Operation& op : block.operations) {
    if (op.name == name) return op;
  }
  throw ContractError{"no operation " + name};
}

Bytes kept_of(const Block& backward, const std::string& name) {
  const auto found = backward.find(name);
  return found && backward.operands[*found].role == Role::saved ? backward.operands[*found].bytes()
                                                                : Bytes{};
}

TEST_CASE("Scales of blocks need a copy by rows and one by columns, of which backward keeps one") {
  const BlockPair layer = layer_in("mxfp8");
  // Two bytes read; twice one byte and a scale for 32 written.
  CHECK(operation_of(layer.forward, "norm1.out.fp8").bytes.count() ==
        few_tokens * few_hidden * 4 + 2 * few_tokens * few_hidden / 32);
  CHECK(kept_of(layer.backward, "norm1.out.fp8").count() == 0);
  CHECK(kept_of(layer.backward, "norm1.out.fp8.columns").count() == few_tokens * few_hidden);
  CHECK(kept_of(layer.backward, "norm1.out.fp8.columns.scales").count() ==
        few_tokens * few_hidden / 32);
  CHECK(operation_of(layer.backward, "qkv.wgrad").dtype == DType::fp8);
}

TEST_CASE("nvfp4 reads a tensor for its largest number and again to write it in 4 bits") {
  const BlockPair layer = layer_in("nvfp4");
  CHECK(operation_of(layer.forward, "norm1.out.fp4.largest").bytes.count() ==
        2 * few_tokens * few_hidden + 4);
  CHECK(operation_of(layer.forward, "norm1.out.fp4").bytes.count() ==
        2 * few_tokens * few_hidden +
            2 * (few_tokens * few_hidden / 2 + few_tokens * few_hidden / 16));
  CHECK(kept_of(layer.backward, "norm1.out.fp4.columns").count() == few_tokens * few_hidden / 2);
  CHECK(operation_of(layer.forward, "qkv").dtype == DType::fp4);
}

TEST_CASE("Current scaling finds the scale first, blocks of 128 have fp32 scales") {
  const BlockPair current = layer_in("fp8-current");
  CHECK(operation_of(current.forward, "norm1.out.fp8.largest").bytes.count() ==
        2 * few_tokens * few_hidden + 4);
  CHECK(operation_of(current.forward, "norm1.out.fp8").bytes.count() ==
        3 * few_tokens * few_hidden);
  CHECK(operation_of(layer_in("fp8-block").forward, "norm1.out.fp8").bytes.count() ==
        few_tokens * few_hidden * 4 + 2 * 4 * few_tokens * few_hidden / 128);
}

TEST_CASE("A GPU without a format, or without scales of blocks, refuses it by name") {
  const auto refusal = [](const std::string& cluster, const std::string& precision) {
    const Question asked = question("llama3-8b", cluster, "precision=" + precision, "generic");
    const std::vector<Conflict> found = conflicts(asked);
    return found.empty() ? "" : found.front().problem;
  };
  CHECK(refusal("dgx-h100 x 1", "nvfp4") == "h100-sxm-80gb does not compute in fp4");
  CHECK(refusal("dgx-h100 x 1", "mxfp8") ==
        "h100-sxm-80gb is not known to multiply with a scale for each block, as mxfp8 does");
  CHECK(refusal("dgx-a100-80gb x 1", "mxfp8") == "a100-sxm-80gb does not compute in fp8");
  CHECK(refusal("dgx-h100 x 1", "fp8-block").empty());
  CHECK(refusal("dgx-b200 x 1", "mxfp8").empty());
  CHECK(refusal("dgx-b200 x 1", "nvfp4").empty());
}

TEST_CASE("Weights gathered in 8 bits are half the traffic") {
  const auto gathered = [](const std::string& more) {
    const Program program = lower(
        question("llama3-8b", "dgx-h100 x 1",
                 "data=8,zero=1,global_batch=8,seq_len=1024,precision=fp8" + more, "generic"));
    return program.collectives.back().bytes.count();
  };
  CHECK(gathered("") == 2 * gathered(",low_precision_gather=true"));
}

}  // namespace
}  // namespace orrery::models
