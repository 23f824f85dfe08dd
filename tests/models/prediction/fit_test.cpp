#include "models/prediction/fit.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "models/prediction/error/published_errors.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

MemoryNeed certain(Bytes bytes) {
  return memory_need(bytes, Bytes{});
}

TEST_CASE("A plan fits, fits tightly or does not, by what it leaves free") {
  // 10 % of 100 GB are 10 GB.
  CHECK(fit_of(certain(90_GB), 100_GB, 0.1) == Fit::yes);
  CHECK(fit_of(certain(90_GB + 1_B), 100_GB, 0.1) == Fit::tight);
  CHECK(fit_of(certain(100_GB), 100_GB, 0.1) == Fit::tight);
  CHECK(fit_of(certain(100_GB + 1_B), 100_GB, 0.1) == Fit::no);
  CHECK(fit_of(certain(100_GB), 100_GB, 0) == Fit::yes);
}

TEST_CASE("A verdict says what its chance says, of a plan that was assumed, too") {
  CHECK(weighed(Fit::yes, 1, false) == Fit::yes);
  CHECK(weighed(Fit::tight, 0.6, true) == Fit::tight);
  CHECK(weighed(Fit::doubtful, 0.05, false) == Fit::doubtful);
  CHECK(weighed(Fit::doubtful, 0.00005, false) == Fit::doubtful);
  CHECK(weighed(Fit::no, 0.22, false) == Fit::doubtful);
  CHECK(weighed(Fit::no, 0.05, false) == Fit::no);
  CHECK(weighed(Fit::no, 0.05, true) == Fit::doubtful);
  CHECK(weighed(Fit::no, 1e-9, true) == Fit::no);
}

TEST_CASE("A plan does not fit where even the least that it may need is too much") {
  // What is counted is certain; what is allocated as the step goes lies between bounds.
  const MemoryNeed need = memory_need(60_GB, 50_GB);
  CHECK(need.predicted == 110_GB);
  CHECK(need.least > 60_GB);
  CHECK(need.least < need.predicted);
  CHECK(need.most > need.predicted);
  CHECK(fit_of(need, need.predicted - 1_B, 0) == Fit::doubtful);
  CHECK(fit_of(need, need.least, 0) == Fit::doubtful);
  CHECK(fit_of(need, need.least - 1_B, 0) == Fit::no);
}

TEST_CASE("What does not fit is the fullest stage, with its peak") {
  // DualPipe: several stages do not fit, and the first of them is not the fullest.
  const Prediction found = predict(
      question("deepseek-v3", "hgx-h800 x 256",
               "pipeline=16,expert=64,zero=1,precision=fp8-block,global_batch=15360,micro_batch=1,"
               "seq_len=4096,schedule=dualpipe,recompute=selective",
               "megatron-core"));
  const StageMemory& fullest = found.memory[found.fullest];
  REQUIRE(found.out_of_memory);
  REQUIRE(fullest.stage > 0);
  CHECK(found.memory[0].total > found.out_of_memory->available);
  CHECK(found.out_of_memory->needed == fullest.total);
  CHECK(found.out_of_memory->rank == found.program->mesh.first_rank(fullest.stage));
  CHECK(fullest.need.least < found.out_of_memory->needed);
  CHECK(found.out_of_memory->needed < fullest.need.most);
}

TEST_CASE("A stack whose log prints its allocator's peak reports less than the device holds") {
  Question asked = question("llama2-7b", "dgx-a100-80gb", "tensor=8,micro_batch=1,seq_len=2048");
  asked.software.memory.context = 1_GB;
  asked.software.memory.workspace = 2_GB;
  asked.software.memory.per_communicator = 4_GB;  // one, of the tensor ranks
  const auto reported_less = [&] {
    const Prediction predicted = predict(asked);
    const StageMemory& fullest = predicted.memory[predicted.fullest];
    return fullest.total - fullest.reported;
  };
  asked.software.memory.reported = ReportedMemory::device;
  CHECK(reported_less() == Bytes{});
  asked.software.memory.reported = ReportedMemory::allocator;
  CHECK(reported_less() == 5_GB);
}

TEST_CASE("A rank holds a communicator of each axis in use, and two of experts and of a pipeline") {
  const auto communicators = [](const std::string& plan) {
    Question asked = question("mixtral-8x7b", "dgx-a100-80gb x 2",
                              "micro_batch=1,global_batch=16,seq_len=1024," + plan);
    asked.software.memory.fragmentation = asked.software.memory.state_fragmentation = 0;
    asked.software.memory.per_communicator = Bytes{};
    const Bytes without = predict(asked).memory.front().total;
    asked.software.memory.per_communicator = 1_GB;
    return (predict(asked).memory.front().total - without).count() / 1'000'000'000;
  };
  CHECK(communicators("data=16") == 1);           // replicas
  CHECK(communicators("data=16,expert=8") == 3);  // and experts, and replicas of the experts
  CHECK(communicators("tensor=8,data=2,sequence=true") == 2);
  CHECK(communicators("tensor=8,pipeline=2,data=1,sequence=true") ==
        3);  // two between stages: up and down
}

TEST_CASE("A loss in fp32 holds copies of the logits, one in place not even the saved one") {
  // 2 x 2048 tokens of 32,000 logits over 4 ranks, 4 bytes each.
  Question asked = question("llama2-7b", "dgx-a100-80gb",
                            "tensor=4,data=2,micro_batch=2,global_batch=4,seq_len=2048");
  asked.software.memory.fragmentation = 0;
  const auto peak = [&](double copies) {
    asked.software.memory.loss_copies = copies;
    return estimate(asked).memory;
  };
  const Bytes logits{std::int64_t{2} * 2048 * 32000 / 4 * 4};
  // The peak is at the loss; a rank's columns are whole multiples of 128.
  CHECK(peak(4) - peak(2) == Bytes{std::int64_t{2} * 2048 * 8064 * 4} * 2);
  CHECK(peak(0) - peak(-1) == logits);
  asked.plan.kernels.fused_cross_entropy = true;
  CHECK(peak(2) == peak(0));
}

TEST_CASE("Copies of the logits are gone, and the logits freed, when the layers' backward begins") {
  // Full recomputation of one sequence: the peak is at the loss where the vocabulary is large, and
  // in the backward of a layer where it is small.
  const auto peak = [](std::int64_t vocab, double copies) {
    Question asked = question("llama2-7b", "dgx-a100-80gb",
                              "data=8,micro_batch=1,global_batch=8,seq_len=2048,recompute=full");
    asked.model.embedding.vocab = vocab;
    asked.software.memory.fragmentation = 0;
    asked.software.memory.loss_copies = copies;
    return estimate(asked).memory;
  };
  const auto logits = [](std::int64_t vocab) { return Bytes{std::int64_t{2048} * vocab * 4}; };
  CHECK(peak(128'000, 3) - peak(128'000, 2) == logits(128'000));
  CHECK(peak(2'000, 3) == peak(2'000, 2));
  CHECK(peak(2'000, 0) - peak(2'000, 2) >= logits(2'000));  // and the rows that the head saved
}

TEST_CASE("Eager norms keep their input in fp32 and gated activations the gate, in no more time") {
  // Llama 2 7B, 2,048 tokens: 32 layers of two norms of 4,096 and 11,008 activated columns, and the
  // norm before the head. An fp32 copy and the normalised rows take the place of the 16-bit input:
  // 4 bytes more. Where a norm's weight is frozen its normalised rows are not kept: 2 bytes more.
  const auto more = [](const std::string& task, const std::string& model = "llama2-7b") {
    Question asked = question(model, "dgx-a100-80gb",
                              "data=8,micro_batch=1,global_batch=8,seq_len=2048,recompute=" + task);
    asked.software.memory.fragmentation = 0;
    const Prediction fused = predict(asked);
    asked.software.memory.saves_unfused = true;
    const Prediction eager = predict(asked);
    CHECK(eager.step == fused.step);
    return eager.memory.front().total - fused.memory.front().total;
  };
  const auto of_layers = [](std::int64_t layers, std::int64_t bytes_of_norm) {
    return Bytes{2048 * layers * (2 * bytes_of_norm * 4096 + 2 * 11008)};
  };
  const auto of_head = [](std::int64_t bytes) { return Bytes{2048 * bytes * 4096}; };
  CHECK(more("none") == of_layers(32, 4) + of_head(4));
  // Of one layer at the most, where the peak is in the recomputed one.
  CHECK(more("full") > of_head(4));
  CHECK(more("full") <= of_layers(1, 4) + of_head(4));
  // The peak is in the backward of a layer, after the head's.
  const std::string adapters = "none,task=lora,lora_rank=16,lora_targets=qkv";
  CHECK(more(adapters) == of_layers(32, 2));
  // A copy of fp32 in fp32 is the input itself: gates alone are more.
  CHECK(more(adapters + ",precision=fp32") == Bytes{std::int64_t{2048} * 32 * 4 * 11008});
  // Qwen3 8B has norms of 32 and 8 heads of 128 as well, and 12,288 activated columns in 36 layers.
  CHECK(more("none", "qwen3-8b") ==
        Bytes{std::int64_t{2048} * 36 * (4 * (2 * 4096 + 40 * 128) + 2 * 12288)} + of_head(4));
}

TEST_CASE("The headroom that is taken is the measured error of predicted peaks") {
  CHECK(usual_headroom() == published_errors().memory_median_pct / 100);
  CHECK(usual_headroom() > 0.02);
  CHECK(usual_headroom() < 0.15);
  CHECK(Question{}.headroom == usual_headroom());
}

TEST_CASE("The chance to fit follows from how far measured peaks were off") {
  // Room up to the upper decile: nine in ten fit; down to the lower one: one in ten.
  Evidence peaks;
  peaks.low = 0.1;
  peaks.high = 0.3;
  const auto chance = [&](double room) {
    return fit_probability(10_GB, Bytes{static_cast<std::int64_t>(1e10 * std::exp(room))}, peaks);
  };
  CHECK(chance(0.3) == Approx(0.9).margin(0.001));
  CHECK(chance(0) == Approx(0.5).margin(0.001));
  CHECK(chance(-0.1) == Approx(0.1).margin(0.001));
  CHECK(chance(3) == 1);
  CHECK(fit_probability(80_GB, 1_GB, peaks) < 1e-9);
  const PeakRange range = peak_range(10_GB, peaks);
  CHECK(range.p10.count() == Approx(1e10 * std::exp(-0.1)));
  CHECK(range.p90.count() == Approx(1e10 * std::exp(0.3)));
}

TEST_CASE("A prediction says how well its fullest rank fits") {
  Question asked = question("llama2-7b", "dgx-a100-80gb", "tensor=8,micro_batch=1,seq_len=2048");
  const Bytes needed = estimate(asked).memory;
  // Just enough: it fits as predicted and has nothing to spare.
  asked.cluster.node.gpu.memory = needed;
  const Estimate tight = estimate(asked);
  CHECK(!tight.out_of_memory);
  CHECK(tight.fit == Fit::tight);
  CHECK(tight.fit_probability < 0.9);
  const Prediction predicted = predict(asked);
  CHECK(predicted.fit == Fit::tight);
  CHECK(predicted.fit_probability == tight.fit_probability);
  asked.headroom = 0;
  CHECK(estimate(asked).fit == Fit::yes);
  asked.cluster.node.gpu.memory = needed - 1_B;
  CHECK(estimate(asked).fit == Fit::doubtful);
  const StageMemory& fullest = predicted.memory[predicted.fullest];
  asked.cluster.node.gpu.memory = fullest.need.least - 1_B;
  CHECK(estimate(asked).fit ==
        weighed(Fit::no, estimate(asked).fit_probability, asked.plan_is_assumed));
  asked.cluster.node.gpu.memory = fullest.held();
  CHECK(estimate(asked).fit == Fit::no);
  CHECK(fullest.need.predicted == fullest.total);
  CHECK(fullest.held() < fullest.need.least);
}

}  // namespace
}  // namespace orrery::models
