#pragma once
// Maps the tensors of a model to those of a checkpoint of the transformers library: under which
// names they are stored, fused or separate, [in, out] or [out, in].

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executor/layout/state.hpp"
#include "models/model/model.hpp"

namespace orrery::executor {

/// Rows and columns of one of our tensors, [rows, columns], that are stored in one of theirs.
struct StoredPart {
  std::string tensor;                  // "model.layers.0.self_attn.q_proj.weight"
  std::string once{};                  // its name in files of older versions, if another
  std::int64_t rows = 1, columns = 1;  // theirs
  bool vector = false;                 // theirs has one dimension, `columns`
  /// Theirs, where it has more dimensions: experts [count, in, out], convolutions [columns, 1,
  /// taps].
  std::vector<std::int64_t> shape{};
  bool transposed = false;              // their rows are our columns
  std::int64_t at = 0;                  // the first of their rows, if transposed, or columns
  std::int64_t row = 0, row_count = 1;  // ours
  std::int64_t column = 0, column_count = 1;
  std::int64_t step = 1;  // from one of our columns to the next in theirs, if not transposed

  /// The index in their tensor of our element [row, column]; `stride` is the distance from there to
  /// the next column's.
  std::int64_t element(std::int64_t of_row, std::int64_t of_column) const;
  std::int64_t stride() const { return transposed ? columns : step; }
};

/// The parts that one of our tensors consists of, by column within each row.
/// Errors  InputError `--init: ...`: a model whose checkpoints are not known; known ones listed
std::vector<StoredPart> stored_parts(const models::Model& model, const StateTensor& tensor,
                                     std::string_view flag);

}  // namespace orrery::executor
