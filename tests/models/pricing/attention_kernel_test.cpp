// A plan's own attention kernel: what it changes, and where it is refused.

#include <catch2/catch.hpp>

#include "models/plan/conflicts.hpp"
#include "models/pricing/price.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Question on_h100(const std::string& kernel) {
  return question("llama3-8b", "dgx-h100 x 1",
                  "data=8,global_batch=8,seq_len=4096,attention=" + kernel, "megatron-core");
}

Time attention_of(const Question& asked) {
  return predict(asked).breakdown[static_cast<std::size_t>(TimeClass::attention)];
}

std::string first_conflict(const Question& asked) {
  const std::vector<Conflict> found = conflicts(asked);
  return found.empty() ? "" : found.front().pointer + ": " + found.front().problem;
}

TEST_CASE("A plan's attention kernel takes the time that its curve says") {
  // 32 layers of 1 x 4,096 tokens, forward and backward, on an H100.
  const Question asked = on_h100("flash-2");
  const hardware::Gpu& gpu = asked.cluster.gpu();
  const Flops causal{2LL * 4096 * 4096 * 32 * 128};  // half of the scores, and of their products
  const hardware::AttentionCall forward{.work = causal, .seq = 4096};
  const hardware::AttentionCall backward{
      .work = Flops{causal.count() / 2 * 5}, .seq = 4096, .pass = hardware::Pass::backward};
  const auto layers = [&](const char* kernel) {
    return 32 * (gpu.attention_time(kernel, hardware::DType::bf16, forward) +
                 gpu.attention_time(kernel, hardware::DType::bf16, backward));
  };
  CHECK(attention_of(asked) == layers("flash-2"));
  CHECK(attention_of(on_h100("stack")) == layers("cudnn"));
  CHECK(layers("flash-2") > layers("cudnn"));
}

TEST_CASE("An unfused kernel keeps the scores, which context ranks cannot share") {
  CHECK(first_conflict(on_h100("unfused")).empty());
  CHECK(first_conflict(question("llama3-8b", "dgx-h100 x 1",
                                "context=2,data=4,global_batch=4,seq_len=4096,attention=unfused",
                                "megatron-core"))
            .rfind("/plan/context: context parallelism needs a fused attention kernel", 0) == 0);
  const auto held = [](const std::string& kernel) {
    return predict(on_h100(kernel)).memory.front().total.count();
  };
  CHECK(held("unfused") > held("flash-2"));
}

TEST_CASE("A kernel that has no times on the GPU is refused by name") {
  CHECK(first_conflict(question("gpt2", "cpu-host x 1",
                                "attention=flash-2,global_batch=8,seq_len=64", "orrery-cpu"))
            .rfind("/plan/attention: cpu-core has no attention kernel flash-2; known:", 0) == 0);
}

}  // namespace
}  // namespace orrery::models
