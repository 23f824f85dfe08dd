#include <catch2/catch.hpp>

#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Program text_program() {
  Plan plan;
  plan.pipeline = 2;
  plan.data = 2;
  plan.batch.global = 4;
  plan.overlap.gradients = false;
  return tiny_program(plan, 4);
}

/// The lines that begin with `start`, joined.
std::string lines(const std::string& text, const std::string& start) {
  std::string found;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at) + 1;
    if (text.compare(at, start.size(), start) == 0) found += text.substr(at, end - at);
    at = end;
  }
  return found;
}

}  // namespace

TEST_CASE("A rank's list reads one instruction per line, with its peers as ranks") {
  // Rank 1 is replica 1 of stage 0; the same replica of stage 1 is rank 3.
  const std::string text = text_of_rank(text_program(), 1);
  CHECK(lines(text, "rank") == "rank 1 tensor=0 data=1 stage=0\n");
  CHECK(lines(text, "communicator dp") == "communicator dp tensor=0 data=* pipeline=0\n");
  CHECK(lines(text, "communicator tie") == "communicator tie tensor=0 data=1 pipeline=0,1\n");
  CHECK(lines(text, "held") ==
        "held parameters parameter bytes=3872\n"
        "held gradients gradient bytes=7744\n"
        "held optimizer optimizer bytes=23232\n");
  CHECK(lines(text, "i") ==
        "i0 FWD c0 mb0 phase=forward.c0 -> out.c0[0] saved=saved.c0[0] q=compute\n"
        "i1 SEND c0 mb0 out.c0[0] -> rank 3 channel=0 comm=pp_f tag=0 bytes=128 q=comm:pp_f "
        "after=i0 frees=out.c0[0]\n"
        "i2 FWD c0 mb1 phase=forward.c0 -> out.c0[0] saved=saved.c0[1] q=compute\n"
        "i3 SEND c0 mb1 out.c0[0] -> rank 3 channel=0 comm=pp_f tag=1 bytes=128 q=comm:pp_f "
        "after=i2 frees=out.c0[0]\n"
        "i4 RECV c0 mb0 gradient_in.c0[0] <- rank 3 channel=3 comm=pp_b tag=0 bytes=128 "
        "q=comm:pp_b\n"
        "i5 BWD c0 mb0 phase=backward.c0 <- gradient_in.c0[0] saved=saved.c0[0] q=compute after=i4 "
        "frees=saved.c0[0],gradient_in.c0[0]\n"
        "i6 RECV c0 mb1 gradient_in.c0[0] <- rank 3 channel=3 comm=pp_b tag=1 bytes=128 "
        "q=comm:pp_b\n"
        "i7 BWD c0 mb1 phase=backward.c0 <- gradient_in.c0[0] saved=saved.c0[1] q=compute after=i6 "
        "frees=saved.c0[1],gradient_in.c0[0]\n"
        "i8 REDUCE_GRAD c0 'gradients.c0' all_reduce dtype=fp32 bytes=7744 layers=0..1 comm=dp "
        "stages=0 q=comm:dp after=i7\n"
        "i9 SUM 'tied embedding' all_reduce dtype=fp32 bytes=512 comm=tie stages=0,1 q=comm:dp "
        "after=i7\n"
        "i10 OPT phase=gradient_norm q=compute after=i9\n"
        "i11 NORM 'gradient norm' all_reduce dtype=fp32 bytes=4 comm=model stages=0,1 q=comm:dp "
        "after=i10 host_waits\n"
        "i12 OPT phase=adam q=compute after=i11\n");
}

TEST_CASE("A Program's text holds its mesh, blocks with operations, phases and classes") {
  const std::string text = text_of(text_program());
  CHECK(lines(text, "mesh") == "mesh tensor=1 data=2 pipeline=2\n");
  CHECK(lines(text, "phase forward.c1") ==
        "phase forward.c1: layer.forward[layer 2, 2 of them] head.forward\n");
  CHECK(lines(text, "phase backward.c1") ==
        "phase backward.c1: head.backward layer.backward[layer 3, 2 of them]\n");
  CHECK(lines(text, "  operand qkv.weight ") ==
        "  operand qkv.weight parameter bf16 1x8x24 initial=normal\n"
        "  operand qkv.weight parameter bf16 1x8x24 initial=normal\n");
  // [8, 8] x [8, 24] and a bias of 24: 2 * 8 * 24 * 8 FLOPs; (64 + 192 + 192 + 24) bf16.
  CHECK(lines(text, "  o1 qkv ") ==
        "  o1 qkv gemm q=compute pass=forward class=gemm dtype=bf16 "
        "reads=norm1.out,qkv.weight,qkv.bias writes=qkv.out m=8 n=24 k=8 "
        "flops=3072 bytes=944\n");
  CHECK(lines(text, "class") == "class stage=0 parameters=1936\nclass stage=1 parameters=1888\n");
  CHECK(lines(text, "i1 ") ==
        "i1 SEND c0 mb0 out.c0[0] -> stage 1 channel=0 comm=pp_f tag=0 bytes=128 q=comm:pp_f "
        "after=i0 frees=out.c0[0]\n"
        "i1 FWD c1 mb0 phase=forward.c1 saved=saved.c1[0] q=compute after=i0\n");
}

TEST_CASE("Gathers say what they fill, runs what they await, reductions what they add up") {
  // Tied ends of 208 parameters and a layer of 872, in bf16 and fp32; pieces of 436 on two replicas
  // are read and added (3 x 4 bytes), the bucket cleared.
  Plan plan;
  plan.data = 2;
  plan.batch.global = 2;
  plan.sharding.zero = Zero::three;
  const std::string text = text_of_rank(tiny_program(plan, 1), 0);
  CHECK(lines(text, "i0 ") ==
        "i0 UNSHARD mb0 'embedding_and_head' all_gather dtype=bf16 bytes=416 embedding head -> "
        "weights.embedding_and_head[0] "
        "comm=dp stages=0 q=comm:dp\n");
  CHECK(lines(text, "i1 ") ==
        "i1 UNSHARD mb0 'layer 0' all_gather dtype=bf16 bytes=1744 layers=0..0 -> "
        "weights.layer[0] comm=dp stages=0 q=comm:dp\n");
  CHECK(lines(text, "i3 ") ==
        "i3 FWD c0 mb0 phase=forward.c0.1 saved=saved.c0[0] q=compute awaits=i1 "
        "frees=weights.layer[0]\n");
  CHECK(lines(text, "i8 ") ==
        "i8 REDUCE_GRAD c0 mb0 'gradients.c0.1' reduce_scatter dtype=fp32 bytes=3488 layers=0..0 "
        "comm=dp stages=0 q=comm:dp after=i7 bucket=0 sums=8720\n");
}

TEST_CASE("A compression stands before its bucket's reduction and awaits it after") {
  Plan plan;
  plan.data = 2;
  plan.batch.global = 2;
  plan.compression.kind = Compression::fp16;
  const std::string text = text_of_rank(tiny_program(plan, 1), 0);
  CHECK(lines(text, "i2 ") == "i2 COMPRESS phase=narrow q=compute\n");
  CHECK(lines(text, "i3 ") ==
        "i3 REDUCE_GRAD c0 'gradients.c0' all_reduce dtype=fp16 bytes=2160 layers=0..0 comm=dp "
        "stages=0 q=comm:dp after=i2\n");
  CHECK(lines(text, "i4 ") == "i4 COMPRESS phase=widen q=compute awaits=i3\n");
}

TEST_CASE("Two schedules of one plan differ only where their lists do") {
  Plan plan;
  plan.pipeline = 2;
  plan.batch.global = 4;
  Plan other = plan;
  other.stages.schedule = "gpipe";
  const std::string a = text_of(tiny_program(plan, 4)), b = text_of(tiny_program(other, 4));
  CHECK(a != b);
  CHECK(lines(a, "  ") == lines(b, "  "));
  CHECK(lines(a, "phase") == lines(b, "phase"));
  CHECK(text_of(tiny_program(plan, 4)) == a);
}

}  // namespace orrery::models
