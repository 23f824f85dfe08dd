#include "models/software/software.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/software/resolved_profile.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

Software profile(const std::string& text) {
  const Document document = Document::parse(text, "mine.json");
  return read_software(document.root());
}

std::string with(const std::string& host) {
  return R"({"name": "mine", "source": "a test", "host": )" + host +
         R"(, "kernels": {"gemm_derate": {"default": 1}, "attention": {"default": "unfused"}},
             "overlap": {}, "accumulation": "fused", "gradient": "fp32", "memory": {}})";
}

const std::string plain_host =
    R"({"forward_launch": "1 us", "backward_launch": "1 us", "communication_launch": "1 us"})";

TEST_CASE("A loss makes whole copies of its logits, or writes over a part of the saved one") {
  Json profile = software_profile("nanotron");
  const auto read = [&](double copies) {
    profile["memory"]["loss_copies"] = copies;
    return read_software(Node{profile, "mine.json", ""}).memory.loss_copies;
  };
  CHECK(read(2) == 2);
  CHECK(read(-0.5) == -0.5);
  CHECK_THROWS_WITH(read(1.5), Catch::Contains("mine.json:/memory/loss_copies: expected a whole "
                                               "number of copies"));
}

TEST_CASE("Every shipped profile loads under its own name and says where it comes from") {
  REQUIRE(software_names().size() >= 15);
  for (const std::string& name : software_names()) {
    const Software software = read_software(Document::from(software_profile(name), name).root());
    CHECK(software.name == name);
    CHECK(software.source.size() > 20);
  }
}

TEST_CASE("An unknown profile is answered with those that exist") {
  CHECK_THROWS_WITH(software_profile("mega"),
                    Catch::StartsWith("unknown software 'mega'; known: "));
}

TEST_CASE("A scope holds a stack in its years and on its number of nodes") {
  const Scope scope{.stack = "x", .from_year = 2023, .to_year = 2024, .nodes = Scope::Nodes::one};
  CHECK(scope.holds({"x", 2023, 1}));
  CHECK(scope.holds({"x", 2024, 1}));
  CHECK_FALSE(scope.holds({"x", 2022, 1}));
  CHECK_FALSE(scope.holds({"x", 2025, 1}));
  CHECK_FALSE(scope.holds({"x", 2023, 2}));
  CHECK_FALSE(scope.holds({"y", 2023, 1}));

  const Scope there{.stack = "x", .site = "lab"};
  CHECK(there.holds({"x", 2023, 1, "lab"}));
  CHECK_FALSE(there.holds({"x", 2023, 1, "other"}));
  CHECK_FALSE(there.holds({"x", 2023, 1}));
}

TEST_CASE("A run's own profile stands before the shipped one of the same stack") {
  std::vector<std::string> assumptions;
  Software own = profile(with(plain_host));
  own.stands_for = {{.stack = "megatron-lm"}};
  CHECK(software_for_run({"megatron-lm", 2021, 8}, {own}, assumptions).name == "mine");
  CHECK(software_for_run({"megatron-lm", 2021, 8}, {}, assumptions).name == "megatron-lm");
  CHECK(assumptions.empty());
}

TEST_CASE("A stack without a profile takes the generic one and says so") {
  std::vector<std::string> assumptions;
  CHECK(software_for_run({"homegrown", 2024, 1}, {}, assumptions).name == "generic");
  CHECK(assumptions ==
        std::vector<std::string>{"/software: no profile of 'homegrown'; generic assumed"});
}

TEST_CASE("A factor out of bounds is refused with its place") {
  const std::string text =
      R"({"name": "mine", "source": "a test", "host": )" + plain_host +
      R"(, "kernels": {"gemm_derate": {"default": 0}, "attention": {"default": "unfused"}},
          "overlap": {}, "accumulation": "fused", "gradient": "fp32", "memory": {}})";
  CHECK_THROWS_WITH(
      profile(text),
      "mine.json:/kernels/gemm_derate/default: expected a number from 0.2 to 20, found 0");
}

TEST_CASE("Communication moves on by itself unless the profile says that it blocks the host") {
  CHECK(profile(with(plain_host)).host.communication == Communication::itself);
  const std::string launches =
      R"({"forward_launch": "1 us", "backward_launch": "1 us", "communication_launch": "1 us",)";
  CHECK(profile(with(launches + R"("communication": "blocking"})")).host.communication ==
        Communication::blocking);
  CHECK_THROWS_WITH(profile(with(launches + R"("communication": "sometimes"})")),
                    "mine.json:/host/communication: expected one of \"itself\", \"blocking\", "
                    "found \"sometimes\"");
}

TEST_CASE("What the launch of a CUDA graph costs may be left open") {
  CHECK_FALSE(profile(with(plain_host)).host.graph_launch);
  const std::string launches =
      R"({"forward_launch": "1 us", "backward_launch": "1 us", "communication_launch": "1 us",)";
  CHECK(profile(with(launches + R"("graph_launch": "3 us"})")).host.graph_launch == 3_us);
}

TEST_CASE("Runs in fp16 may have gradients of their own, all others share one type") {
  using hardware::DType;
  const auto read = [](const std::string& gradient) {
    std::string text = with(plain_host);
    const std::string one = R"("gradient": "fp32")";
    return profile(text.replace(text.find(one), one.size(), R"("gradient": )" + gradient));
  };
  CHECK(read(R"("fp32")").gradient_dtype_for(DType::fp16) == DType::fp32);
  const Software two = read(R"({"default": "fp32", "fp16": "fp16"})");
  CHECK(two.gradient_dtype_for(DType::fp16) == DType::fp16);
  CHECK(two.gradient_dtype_for(DType::bf16) == DType::fp32);
  CHECK_THROWS_WITH(read(R"({"fp16": "fp16"})"), "mine.json:/gradient/default: missing");
  CHECK_THROWS_WITH(read(R"({"default": "fp8"})"),
                    "mine.json:/gradient/default: expected one of \"fp32\", \"bf16\", \"fp16\", "
                    "found \"fp8\"");
}

TEST_CASE("Stacks are found by the names that files give them") {
  std::vector<std::string> assumptions;
  const auto found = [&](const char* stack, int year) {
    return software_for_run({stack, year, 1}, {}, assumptions).name;
  };
  CHECK(found("hf-accelerate", 2024) == "huggingface");
  CHECK(found("fsdp-qlora", 2024) == "huggingface");
  CHECK(found("hf-accelerate-te", 2024) == "huggingface-te");
  CHECK(found("lit-gpt", 2024) == "litgpt");
  for (const char* same : {"unsloth", "nemo-automodel", "primus", "paddlenlp", "ms-swift",
                           "nanochat", "oneflow", "pytorch-te"}) {
    CHECK(found(same, 2025) == same);
  }
  CHECK(assumptions.empty());
}

TEST_CASE("Transformer Engine on MI300X had no fused attention before 2025") {
  std::vector<std::string> assumptions;
  const auto kernel = [&](int year) {
    return std::string{
        software_for_run({"pytorch-te", year, 1}, {}, assumptions).attention("cdna3")};
  };
  CHECK(kernel(2024) == "unfused");
  CHECK(kernel(2025) == "flash-2");
  // Nor had ROCm the GEMMs of 2025.
  const auto of_gemms = [&](int year) {
    return software_for_run({"pytorch-te", year, 1}, {}, assumptions).kernels.gemm_derate;
  };
  CHECK(of_gemms(2024).at("cdna3") == 1.08);
  CHECK(of_gemms(2025).count("cdna3") == 0);
}

TEST_CASE("On CDNA PyTorch's own attention is AOTriton's, Transformer Engine's is not") {
  std::vector<std::string> assumptions;
  const auto kernel = [&](const std::string& stack, int year) {
    return std::string{software_for_run({stack, year, 1}, {}, assumptions).attention("cdna3")};
  };
  for (const char* stack :
       {"pytorch-compile", "pytorch-fsdp", "huggingface", "torchtitan", "fms"}) {
    INFO(stack);
    CHECK(kernel(stack, 2025) == "aotriton");
  }
  CHECK(kernel("huggingface-te", 2025) == "flash-2");
  CHECK(kernel("megatron-core", 2025) == "flash-2");
  CHECK(kernel("huggingface", 2023) == "unfused");
}

TEST_CASE("DeepSpeed's gradients have the model's 16 bits, and overlap where it shards") {
  using hardware::DType;
  const Software software = catalogue_software("deepspeed");
  CHECK(software.gradient_dtype_for(DType::bf16) == DType::bf16);
  CHECK(software.gradient_dtype_for(DType::fp16) == DType::fp16);
  CHECK_FALSE(software.overlap.gradients);
  CHECK(software.overlap.sharded_gradients);
  // The script is Transformers', whose layers run a kernel for each operation.
  const Software script = catalogue_software("huggingface");
  CHECK(software.kernels.memory_derate == script.kernels.memory_derate);
  CHECK(software.memory.fragmentation == script.memory.fragmentation);
}

TEST_CASE("A loss that is compiled with the model moves 4 bytes a logit in each pass") {
  const KernelChoices compiled = catalogue_software("pytorch-compile").kernels;
  CHECK(compiled.loss_forward_bytes * compiled.memory_derate == Approx(4).epsilon(0.01));
  CHECK(compiled.loss_backward_bytes * compiled.memory_derate == Approx(4).epsilon(0.01));
  // Scripts around Transformer Engine's layers launch the loss eagerly.
  CHECK(catalogue_software("pytorch-te").kernels.loss_forward_bytes == 36);
}

TEST_CASE("Eager models keep what each operation saves, fused and compiled ones do not") {
  const auto saves = [](const char* stack) {
    return catalogue_software(stack).memory.saves_unfused;
  };
  for (const char* eager : {"huggingface", "litgpt", "deepspeed", "pytorch-fsdp"})
    CHECK(saves(eager));
  for (const char* fused : {"unsloth", "huggingface-te", "pytorch-compile", "megatron-core"}) {
    CHECK_FALSE(saves(fused));
  }
}

TEST_CASE("A profile needs the cost of a launch") {
  CHECK_THROWS_WITH(profile(with(R"({"backward_launch": "1 us"})")),
                    "mine.json:/host/forward_launch: missing");
}

TEST_CASE("No stack of today attends unfused where the GPU has a fused kernel") {
  // FlashAttention-2 runs on compute capability 8.0 and up and on CDNA2 and CDNA3. These stacks are
  // of other years, or say themselves which kernels they have.
  const std::vector<std::string> apart{"nvidia-examples",
                                       "megatron-lm",
                                       "megatron-deepspeed",
                                       "orrery-cpu",
                                       "megatron-deepspeed-node",
                                       "orrery-cuda",
                                       "oneflow"};
  for (const std::string& name : software_names()) {
    if (std::ranges::count(apart, name) > 0) continue;
    const Document document = Document::from(software_profile(name, 2025), name);
    const Software software = read_software(document.root());
    for (const char* generation : {"ampere", "ada", "hopper", "blackwell", "cdna2", "cdna3"}) {
      INFO(name << " on " << generation);
      CHECK(software.attention(generation) != "unfused");
    }
    CHECK(software.attention("volta") == "unfused");
  }
}

}  // namespace
}  // namespace orrery::models
