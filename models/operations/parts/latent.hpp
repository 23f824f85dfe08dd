#pragma once
// Queries, keys and values from latents.

#include <string>

#include "models/operations/parts/attention_operands.hpp"

namespace orrery::models {

class LatentQkv : private AttentionOperands {
 public:
  using AttentionOperands::AttentionOperands;

  void forward(OperandId in, OperandId qkv);
  void backward(OperandId saved_in, OperandId gradient, OperandId gradient_in);

 private:
  /// Down-projection to a latent, a norm, and up-projection to heads; one GEMM where rank is 0.
  struct Path {
    std::string name;            // "query", "key_value"
    std::int64_t rank = 0;       // columns of the latent that are normalised
    std::int64_t plain = 0;      // columns after those that are not: the rotated part of keys
    std::int64_t columns = 0;    // output columns of all heads
    std::int64_t head_unit = 1;  // output columns of one head
  };
  Path queries() const;
  Path keys_and_values() const;
  Linear down(const Path& path) const;
  Linear up(const Path& path) const;
  OperandId up_columns(const Path& path, std::string_view name);
  ModelTensor latent_norm(const Path& path) const;
  void latent_forward(const Path& path, OperandId in);
  void expand(const Path& path, OperandId from, OperandId heads);
  void latent_backward(const Path& path, OperandId saved_in, OperandId gradient_in);
  OperandId shared_key_gradient();
  void join_shared_gradient(std::size_t first, OperandId normed);
  void rotates(Operation& op) const;
};

}  // namespace orrery::models
