#pragma once
// Two operations on a few numbers: what a campaign can time in no time.

#include "models/program/block.hpp"

namespace orrery::calibrate {

/// out [8, 4] = a [8, 6] x b [6, 4], then sum = out + out.
inline models::Block small_block() {
  using models::OpKind;
  models::Block block;
  block.name = "small";
  const auto operand = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    block.operands.push_back(
        {name, models::Role::temporary, models::DType::fp32, {1, rows, columns}});
  };
  operand("a", 8, 6);
  operand("b", 6, 4);
  operand("out", 8, 4);
  operand("sum", 8, 4);
  models::Operation product;
  product.kind = OpKind::gemm;
  product.name = "product";
  product.dtype = models::DType::fp32;
  product.reads = {0, 1};
  product.writes = {2};
  product.mutable_gemm() = {.m = 8, .n = 4, .k = 6};
  product.flops = Flops{2 * 8 * 4 * 6};
  product.bytes = Bytes{4 * (48 + 24 + 32)};
  models::Operation add;
  add.kind = OpKind::add;
  add.name = "add";
  add.dtype = models::DType::fp32;
  add.reads = {2, 2};
  add.writes = {3};
  add.bytes = Bytes{4 * 96};
  block.operations = {product, add};
  return block;
}

}  // namespace orrery::calibrate
