#pragma once
// Where the heads of latent attention (MLA) are: in the rows that attention reads, [queries | keys
// | values], and in the products of the latents, queries as they are and [part of key without
// rotation | value] for each head.

#include "executor/device/anywhere.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor {

struct LatentHeads {
  std::int64_t heads, dim, rotary, columns, value;  // columns: of attention's rows

  LatentHeads(const models::Operation& op, const View& attended)
      : heads{op.heads().queries},
        dim{op.heads().dim},
        rotary{2 * std::ssize(op.frequencies())},
        columns{attended.shape[2]},
        value{(columns - 2 * heads * dim) / heads} {}

  ORRERY_ANYWHERE std::int64_t plain() const { return dim - rotary; }
  ORRERY_ANYWHERE std::int64_t made() const { return plain() + value; }
  ORRERY_ANYWHERE std::int64_t key(std::int64_t h) const { return (heads + h) * dim; }
  ORRERY_ANYWHERE std::int64_t value_of(std::int64_t h) const {
    return 2 * heads * dim + h * value;
  }
};

}  // namespace orrery::executor
