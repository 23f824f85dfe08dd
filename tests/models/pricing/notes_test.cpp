#include "models/pricing/notes.hpp"

#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// One product of 16-bit numbers.
Program program_of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t seq) {
  Operation op;
  op.kind = OpKind::gemm;
  op.dtype = DType::bf16;
  op.mutable_gemm() = {.m = m, .n = n, .k = k};
  Program program;
  program.step.seq_len = seq;
  program.blocks.push_back({});
  program.blocks.back().operations.push_back(op);
  return program;
}

std::vector<std::string> notes_of(const Program& program) {
  Software software = plain_software();
  software.kernels.attention["hopper"] = "flash-3";
  std::vector<std::string> notes;
  note_shapes(hardware::named_gpu("h100-sxm-80gb"), program, software, notes);
  return notes;
}

TEST_CASE("A product outside the measured shapes is an assumption, one inside is none") {
  CHECK(notes_of(program_of(1024, 4096, 4096, 2048)).empty());
  CHECK(notes_of(program_of(1024, 4096, 512, 2048)) ==
        std::vector<std::string>{
            "gemm bf16 curve of h100-sxm-80gb: 1 of 1 GEMM shapes lie outside its measured range "
            "(m 1 to 32768, n 1024 to 65536, k 1024 to 16384), at m 1024, n 4096, k 512 2 times "
            "beyond"});
}

TEST_CASE("A sequence longer than any measured one is an assumption") {
  CHECK(notes_of(program_of(1024, 4096, 4096, 32768)) ==
        std::vector<std::string>{"attention flash-3 curve of h100-sxm-80gb: 32768 tokens lie "
                                 "outside its measured range (512 to 16384), 2 times beyond"});
}

TEST_CASE("Borrowed curves are counted and each is named once") {
  // The A800 has no curves of its own: products, attention and memory traffic are the A100's.
  const hardware::Gpu gpu = hardware::named_gpu("a800-sxm-80gb");
  Program program = program_of(1024, 4096, 4096, 2048);
  program.formats.compute = DType::bf16;
  Software software = plain_software();
  software.kernels.attention["default"] = "flash-2";
  std::vector<std::string> notes;
  CHECK(note_fallbacks(gpu, program, software, notes) == 3);
  CHECK(note_fallbacks(gpu, program, software, notes) == 3);
  CHECK(notes ==
        std::vector<std::string>{
            "gemm bf16 curve of a800-sxm-80gb is missing; that of a100-sxm-80gb is used",
            "attention flash-2 curve of a800-sxm-80gb is missing; that of a100-sxm-80gb is used",
            "memory-bound curve of a800-sxm-80gb is missing; that of a100-sxm-80gb is used"});
}

TEST_CASE(
    "What ranks lose by computing and communicating at once is reported where it was measured") {
  hardware::Gpu gpu = hardware::named_gpu("h100-sxm-80gb");
  Program program = program_of(1024, 4096, 4096, 2048);
  program.mesh = {1, 2, 1};
  std::vector<std::string> notes;
  note_concurrent_slowdown(gpu, program, notes);
  CHECK(notes.empty());
  gpu.calibration.beside_communication = {.compute = 1.07, .communication = 1.2};
  note_concurrent_slowdown(gpu, program, notes);
  CHECK(notes ==
        std::vector<std::string>{
            "kernels next to communication take 1.07 times as long, as measured on h100-sxm-80gb; "
            "communication next to kernels, measured to take 1.2 times as long, is priced as if "
            "alone"});
  notes.clear();
  program.mesh = {1, 1, 1};  // it talks to nobody
  note_concurrent_slowdown(gpu, program, notes);
  CHECK(notes.empty());
}

TEST_CASE("A processor's fp8 is reported to be priced as fp32, a GPU's is not") {
  Program program = program_of(1024, 4096, 4096, 2048);
  program.formats.compute = DType::fp8;
  std::vector<std::string> notes;
  note_stored_fp8(hardware::named_gpu("h100-sxm-80gb"), program, notes);
  CHECK(notes.empty());
  const hardware::Gpu processor = hardware::named_gpu("cpu-core");
  note_stored_fp8(processor, program, notes);
  CHECK(notes == std::vector<std::string>{
                     "fp8 GEMMs of cpu-core are priced as fp32 GEMMs, because it computes in fp32; "
                     "quantising weights in each GEMM may take longer and is not priced"});
  notes.clear();
  program.formats.compute = DType::bf16;
  note_stored_fp8(processor, program, notes);
  CHECK(notes.empty());
}

}  // namespace
}  // namespace orrery::models
