// Whose attention runs: a library made of words stands in for cuDNN, our own kernels run.

#include "executor/device/cuda/attention/attentions.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <utility>

#include "executor/device/cuda/attention/attention_tensors.hpp"
#include "executor/errors.hpp"
#include "sim/errors.hpp"
#include "tests/executor/device/cuda/attention_reference.hpp"
#include "tests/executor/device/cuda/device_array.hpp"

namespace orrery::executor::cuda {
namespace {

using models::AttentionShape;
using models::DType;
using models::Operation;
using models::OpKind;

/// Counts what it is asked for, takes heads of 64 and wider, and computes nothing.
class Words final : public AttentionLibrary {
 public:
  struct Counts {
    int plans = 0, runs = 0;
    bool fails = false;  // whatever runs
  };
  explicit Words(Counts& counts) : counts_{counts} {}

  std::string name() const override { return "Words 1.2.3"; }
  PlannedAttention plan(const Operation& op) override {
    ++counts_.plans;
    if (op.attention().head_dim < 64) return {nullptr, "No plans.\n  Heads are\ttoo narrow.\n"};
    const bool forward = op.kind == OpKind::attention;
    return {std::make_unique<Plan>(counts_, forward ? "" : "as they come"), {}};
  }

 private:
  class Plan final : public AttentionPlan {
   public:
    Plan(Counts& counts, std::string disorder) : counts_{counts}, disorder_{std::move(disorder)} {}
    Bytes workspace() const override { return Bytes{48}; }
    std::string disorder() const override { return disorder_; }
    void run(const Kernel&, Stream, std::byte*) override {
      ++counts_.runs;
      if (counts_.fails) {
        throw RunFailure{Exit::local_failure, "GPU, attention by Words: EXECUTION_FAILED"};
      }
    }

   private:
    Counts& counts_;
    std::string disorder_;
  };
  Counts& counts_;
};

std::function<OpenedLibrary()> opening(Words::Counts& counts) {
  return [&counts]() -> OpenedLibrary { return {std::make_unique<Words>(counts), {}}; };
}
OpenedLibrary nothing() {
  return {nullptr, "libwords.so: cannot open shared object file: No such file or directory"};
}

Operation operation(std::int64_t head_dim, DType format = DType::bf16,
                    OpKind kind = OpKind::attention) {
  Operation op;
  op.kind = kind;
  op.dtype = format;
  op.mutable_attention() = {2, 16, 4, 1, head_dim, true, 0};
  return op;
}

/// One call of the operation, on memory of its own; returns how much scratch was asked for.
std::int64_t run(Attentions& attentions, const Operation& op, bool may_retry = true) {
  const AttentionShape& s = op.attention();
  const auto memory = [&](std::int64_t elements, DType format) {
    return DeviceArray<std::byte>{
        std::vector<std::byte>(static_cast<std::size_t>(elements * bits(format) / 8))};
  };
  const std::int64_t rows = s.batch * s.seq, width = s.heads * s.head_dim;
  const DeviceArray<std::byte> qkv = memory(rows * columns_of(s), op.dtype),
                               out = memory(rows * width, op.dtype),
                               log_sum = memory(s.batch * s.heads * s.seq, DType::fp32),
                               scratch = memory(1 << 20, DType::fp8);
  const std::vector<View> reads{{qkv.data(), op.dtype, {1, rows, columns_of(s)}}};
  const std::vector<View> writes{{out.data(), op.dtype, {1, rows, width}},
                                 {log_sum.data(), DType::fp32, {s.batch, s.heads, s.seq}}};
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = writes;
  std::int64_t asked = 0;
  attentions.launch(kernel, nullptr,
                    {.scratch =
                         [&](Bytes size) {
                           asked = std::max(asked, size.count());
                           return scratch.data();
                         },
                     .may_retry = may_retry});
  finish_device();
  REQUIRE(asked <= 1 << 20);
  return asked;
}

TEST_CASE("A library's attention runs where it takes the shape, our own elsewhere") {
  Words::Counts counts;
  Attentions attentions{AttentionChoice::open, opening(counts)};
  CHECK(attentions.use().by_library == 0);
  const Operation wide = operation(64), narrow = operation(32);
  run(attentions, wide);
  run(attentions, wide);
  CHECK(counts.runs == 2);
  CHECK(counts.plans == 1);  // of each shape once
  run(attentions, narrow);
  CHECK(counts.runs == 2);
  CHECK(counts.plans == 2);
  CHECK(attentions.scratch_bytes(wide) == 48);
  CHECK(attentions.scratch_bytes(narrow) == 0);
  CHECK(attentions.use().library == "Words 1.2.3");
  CHECK(attentions.use().by_library == 1);
  CHECK(attentions.use().by_own == 1);
  CHECK(attentions.notes() ==
        std::vector<std::string>{
            "attention: Words 1.2.3",
            "attention forward bf16 2 x 16, heads 4/1 x 32, causal: own kernel (Words 1.2.3: No "
            "plans. Heads are too narrow.)",
            "attention forward bf16 2 x 16, heads 4/1 x 64, causal: Words 1.2.3, workspace 48 B"});
}

TEST_CASE("A library's kernel that fails to run is given up for its shape, and our own runs") {
  Words::Counts counts{.fails = true};
  Attentions attentions{AttentionChoice::library, opening(counts)};
  const Operation wide = operation(64), other = operation(128);
  CHECK(run(attentions, wide) >= 48);
  CHECK(attentions.use().by_library == 0);
  CHECK(attentions.use().by_own == 1);
  counts.fails = false;
  run(attentions, wide);  // not tried again,
  CHECK(counts.runs == 1);
  run(attentions, other);  // but other shapes are
  CHECK(counts.runs == 2);
  CHECK(attentions.use().by_library == 1);
  CHECK(attentions.notes().at(1) ==
        "attention forward bf16 2 x 16, heads 4/1 x 64, causal: own kernel (Words 1.2.3: its "
        "kernel failed: GPU, attention by Words: EXECUTION_FAILED)");
}

TEST_CASE("Inside a capture, and where our own kernels do not take the shape, a failure ends") {
  Words::Counts counts{.fails = true};
  Attentions attentions{AttentionChoice::open, opening(counts)};
  CHECK_THROWS_WITH(run(attentions, operation(64), false),
                    "GPU, attention by Words: EXECUTION_FAILED");
  CHECK_THROWS_WITH(run(attentions, operation(256)), "GPU, attention by Words: EXECUTION_FAILED");
  counts.fails = false;
  run(attentions, operation(64));
  CHECK(attentions.use().by_library == 2);
}

TEST_CASE("A plan without an order of sums says so") {
  Words::Counts counts;
  Attentions attentions{AttentionChoice::library, opening(counts)};
  Operation backward = operation(64, DType::fp16, OpKind::attention_backward);
  backward.mutable_attention().causal = false;
  backward.mutable_attention().window = 8;
  run(attentions, backward);
  CHECK(attentions.notes().at(1) ==
        "attention backward fp16 2 x 16, heads 4/1 x 64, window 8: Words 1.2.3, workspace 48 B, "
        "equal calls may differ in the last bits (as they come)");
}

TEST_CASE("Without a library our own kernels run, and the notes say why") {
  Attentions absent{AttentionChoice::open, nothing};
  const Operation op = operation(64);
  run(absent, op);
  CHECK(absent.use().library.empty());
  CHECK(absent.use().by_own == 1);
  CHECK(absent.notes() ==
        std::vector<std::string>{
            "attention: own kernels (libwords.so: cannot open shared object file: No such file or "
            "directory)",
            "attention forward bf16 2 x 16, heads 4/1 x 64, causal: own kernel"});
  // Who wishes for our own does not so much as open the library.
  const Attentions own{AttentionChoice::own,
                       []() -> OpenedLibrary { throw ContractError{"asked"}; }};
  CHECK(own.notes() ==
        std::vector<std::string>{"attention: own kernels (ORRERY_ATTENTION is own)"});
}

TEST_CASE("A wish for cuDNN where there is none is refused") {
  CHECK_THROWS_WITH((Attentions{AttentionChoice::library, nothing}),
                    "ORRERY_ATTENTION: cudnn: libwords.so: cannot open shared object file: No such "
                    "file or directory");
}

TEST_CASE("ORRERY_ATTENTION has three words") {
  for (const char* none : {static_cast<const char*>(nullptr), ""}) {
    CHECK(attention_options(none).choice == AttentionChoice::open);
    CHECK(attention_options(none).sums == SumOrder::any);
  }
  CHECK(attention_options("own").choice == AttentionChoice::own);
  CHECK(attention_options("cudnn").choice == AttentionChoice::library);
  CHECK(attention_options("cudnn").sums == SumOrder::any);
  CHECK(attention_options("cudnn-ordered").choice == AttentionChoice::library);
  CHECK(attention_options("cudnn-ordered").sums == SumOrder::fixed);
  CHECK_THROWS_WITH(attention_options("flash"),
                    "ORRERY_ATTENTION: expected own, cudnn or cudnn-ordered, found 'flash'");
}

TEST_CASE("A library widens what attention takes; what both refuse both say") {
  Words::Counts counts;
  Attentions with{AttentionChoice::open, opening(counts)}, without{AttentionChoice::open, nothing};
  CHECK(with.refusal(operation(256)).empty());
  CHECK(without.refusal(operation(256)) ==
        "no fused attention with head_dim 256 in bf16; supported: multiples of 8 up to 128");
  CHECK(with.refusal(operation(36)) ==
        "no fused attention with head_dim 36 in bf16; supported: multiples of 8 up to 128; Words "
        "1.2.3: No plans. Heads are too narrow.");
  CHECK(with.refusal(operation(32)).empty());
  // fp32 is our own kernel's, whatever the library takes.
  CHECK(with.refusal(operation(320, DType::fp32)) ==
        "no fused attention with head_dim 320 in fp32; supported: up to 256; Words 1.2.3: used "
        "only for 16-bit formats");
  CHECK(with.notes().size() == 1);  // asked for, but nothing ran
}

TEST_CASE("Each property of an attention that a plan depends on is in its key") {
  const Operation base = operation(64);
  std::set<Attentions::Key> keys{Attentions::key_of(base)};
  const auto other = [&](const auto& change) {
    Operation changed = base;
    change(changed);
    CHECK(keys.insert(Attentions::key_of(changed)).second);
  };
  other([](Operation& op) { op.kind = OpKind::attention_backward; });
  other([](Operation& op) { op.dtype = DType::fp16; });
  other([](Operation& op) { op.mutable_attention().batch = 3; });
  other([](Operation& op) { op.mutable_attention().seq = 17; });
  other([](Operation& op) { op.mutable_attention().heads = 8; });
  other([](Operation& op) { op.mutable_attention().kv_heads = 2; });
  other([](Operation& op) { op.mutable_attention().head_dim = 72; });
  other([](Operation& op) { op.mutable_attention().causal = false; });
  other([](Operation& op) { op.mutable_attention().window = 15; });
  Operation same = base;
  same.name = "another layer's";
  same.mutable_attention().window = 16;  // of the whole sequence
  CHECK(Attentions::key_of(same) == Attentions::key_of(base));
}

TEST_CASE("What a report says of attention") {
  CHECK(attention_text({}).empty());
  CHECK(attention_text({"cuDNN 9.19.0", 4, 0}) == ", attention by cuDNN 9.19.0");
  CHECK(attention_text({"cuDNN 9.19.0", 12, 3}) ==
        ", attention by cuDNN 9.19.0 in 12 of 15 shapes");
  CHECK(attention_text({"cuDNN 9.19.0", 0, 2}) == ", own attention");
  CHECK(attention_text({"", 0, 2}) == ", own attention");
  CHECK(attention_text({"", 0, 2, "libcudnn.so.9: no such file"}) ==
        ", own attention (libcudnn.so.9: no such file)");
  CHECK(attention_text({"", 0, 0, "libcudnn.so.9: no such file"}).empty());
}

TEST_CASE("Long words are cut") {
  CHECK(in_one_line(std::string(300, 'a')) == std::string(300, 'a'));
  CHECK(in_one_line(std::string(301, 'a')) == std::string(297, 'a') + "...");
}

TEST_CASE("Heads of packed rows are tensors with strides") {
  // Two sequences of 5 tokens; a row has 4 query heads, 2 key heads and 2 value heads of 8: 64
  // elements, and the output's 32.
  const AttentionTensors tensors{AttentionShape{2, 5, 4, 2, 8, true, 0}};
  using Four = std::array<std::int64_t, 4>;
  CHECK(tensors.query.extents == Four{2, 4, 5, 8});
  CHECK(tensors.query.strides == Four{320, 8, 64, 1});
  CHECK(tensors.query.first == 0);
  CHECK(tensors.key.extents == Four{2, 2, 5, 8});
  CHECK(tensors.key.strides == Four{320, 8, 64, 1});
  CHECK(tensors.key.first == 32);
  CHECK(tensors.value.extents == Four{2, 2, 5, 8});
  CHECK(tensors.value.strides == Four{320, 8, 64, 1});
  CHECK(tensors.value.first == 48);
  CHECK(tensors.context.extents == Four{2, 4, 5, 8});
  CHECK(tensors.context.strides == Four{160, 8, 32, 1});
  CHECK(tensors.context.first == 0);
  CHECK(tensors.log_sum.extents == Four{2, 4, 5, 1});
  CHECK(tensors.log_sum.strides == Four{20, 5, 1, 1});
}

}  // namespace
}  // namespace orrery::executor::cuda
