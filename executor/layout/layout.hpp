#pragma once
// Where the parameters of one rank are stored, and which elements of the unsharded model they are.
// Gradients have the same layout: flat per chunk, in the order in which backward completes them, so
// that a bucket is one range. Under ZeRO a bucket is padded to a multiple of the data degree, and
// each data rank owns one piece of it. A tied table is a bucket of its own, so that its two copies,
// on the first and the last stage, are cut at the same elements. Experts that have replicas of
// their own (MeshView::experts) follow a chunk's other parameters, in buckets of their own.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/layout/state.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// Consecutive columns of each row, here and in the global tensor.
struct ColumnPart {
  std::int64_t local = 0, global = 0, count = 0;
};

/// One parameter of this rank.
struct PlacedTensor {
  std::uint32_t tensor = 0;  // in Layout::tensors
  std::int64_t offset = 0;   // first element in the parameter and gradient buffers
  std::int64_t matrices = 1, rows = 1, columns = 1;
  std::int64_t first_matrix = 0, first_row = 0;  // in the global tensor
  std::int64_t matrix_rows = 1;                  // rows of a matrix in the global tensor
  std::vector<ColumnPart> parts;                 // of a row; what they leave out is padding
  bool counts = true;    // is the first of the norm's ranks that update the same elements
  bool writes = true;    // ... and the first of all such ranks of the stage
  bool partial = false;  // its gradient is a partial sum until the end of the step
  bool copy = false;     // is a second copy: of a tied table, or of the model

  std::int64_t elements() const { return matrices * rows * columns; }
};

/// How many replicas own one piece each of some state, and which of them this rank is.
struct Owners {
  std::int64_t count = 1, index = 0;
};

/// Gradients reduced together; without data parallelism, those of a chunk.
struct Bucket {
  std::int64_t first = 0, count = 0;  // elements, in the buffers
  std::int64_t padded = 0;            // a multiple of the data degree where pieces are owned
  std::int64_t piece = 0;             // elements of one owner
  Owners owners = {};
  models::MeshView view = models::MeshView::dense;  // whose replicas reduce it
  std::int64_t owned = 0;  // where this rank's piece begins among all that it owns
};

/// Consecutive elements of the buffers.
struct Span {
  std::int64_t first = 0, count = 0;
};

class Layout {
 public:
  Layout(const models::Program& program, std::int64_t rank);

  /// Trained tensors; and frozen ones, without gradient or state, which every replica stores apart.
  const std::vector<StateTensor>& tensors() const { return tensors_; }
  const std::vector<StateTensor>& frozen_tensors() const { return frozen_tensors_; }
  const std::vector<PlacedTensor>& frozen() const { return frozen_; }
  std::int64_t frozen_elements() const { return frozen_elements_; }
  const std::vector<PlacedTensor>& placed() const { return placed_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// The buckets that a joint collective reduces: [first, last) of buckets().
  std::pair<std::size_t, std::size_t> reduced(std::uint32_t collective) const;

  std::int64_t elements() const { return elements_; }  // of a buffer, padding included
  std::int64_t owned() const { return owned_; }        // that this rank updates
  bool sharded() const { return dense_.count > 1 || experts_.count > 1; }
  /// Where a bucket's piece of this rank begins in the buffers.
  std::int64_t piece_of(const Bucket& bucket) const;
  /// The bucket that an element of the buffers lies in.
  std::size_t bucket_at(std::int64_t element) const;
  /// Gradients that are partial sums until the ranks of a stage add them up, before the norm; where
  /// gradients are sharded by then, this rank's pieces of them.
  const std::vector<Span>& partial_sums() const { return partial_sums_; }

  /// Where a parameter or gradient begins, by its operand's `tensor`; `layer` is -1 where the block
  /// belongs to no layer.
  std::int64_t offset(std::int64_t layer, const std::string& tensor) const;
  /// The buckets that a gather of one unit's weights fills: [first, last) of buckets().
  std::pair<std::size_t, std::size_t> gathered(const models::JointCollective& joint) const;
  /// The tied table on this rank; null where there is none or it has no second copy.
  const PlacedTensor* tied_table() const;

  /// Elements that are updated here and their place in the unsharded model.
  const std::vector<StateRun>& runs() const { return runs_; }
  /// Elements of one tensor, those that other ranks update included; `local` is in the buffers.
  std::vector<StateRun> runs_of(const PlacedTensor& tensor) const {
    return runs_of(tensor, tensors_[tensor.tensor]);
  }
  static std::vector<StateRun> runs_of(const PlacedTensor& tensor, const StateTensor& whole);
  std::vector<StateRun> frozen_runs() const;  // not trained; `local` is in their buffer
  /// The elements that this rank counts in the gradient norm, so that the ranks that sum the norm
  /// count each element of the model once.
  const std::vector<Span>& counted() const { return counted_; }

 private:
  void name_tensors();
  std::uint32_t tensor_named(std::int64_t layer, const models::Operand& operand);
  void place_chunk(std::uint32_t chunk);
  void place_kind(const models::LayerKind& kind, std::int64_t layer, models::MeshView view);
  std::int64_t begin_of(const models::LayerKind& kind, std::int64_t layer,
                        models::MeshView view) const;
  Owners owners_of(models::AxisSet replicas) const;
  bool is_first(const std::vector<std::int64_t>& of, const models::Operand& operand,
                models::AxisSet replicas) const;
  PlacedTensor cut(const models::Operand& operand, models::MeshView view) const;
  void place_columns(const models::Operand& operand, models::Dimension dimension,
                     PlacedTensor& here) const;
  bool tied_here() const;
  struct Reductions {
    std::vector<std::int64_t> elements;  // of each
    std::vector<std::pair<std::uint32_t, std::size_t>> of_collective;
  };
  Reductions reductions_of(std::uint32_t chunk, models::MeshView view) const;
  void cut_buckets(std::uint32_t chunk, std::size_t first_placed, models::MeshView view);
  std::int64_t add_bucket(std::int64_t first, std::int64_t count, models::MeshView view);
  void list_runs();
  void list_partial_sums();

  const models::Program& program_;
  std::int64_t rank_, stage_;
  Owners dense_, experts_;
  std::vector<std::int64_t> norm_ranks_, stage_ranks_;  // of the stage: that sum the norm; all
  std::vector<StateTensor> tensors_;
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<StateTensor> frozen_tensors_;
  std::vector<PlacedTensor> placed_, frozen_;
  /// By tensor with its layer: is it frozen, and its index in frozen_ or placed_.
  std::map<std::string, std::pair<bool, std::size_t>> by_name_;
  bool ties_ = false;                  // a table has two names
  std::optional<std::uint32_t> tied_;  // in tensors_, where it is trained
  std::vector<Bucket> buckets_;
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> reduced_;
  std::vector<StateRun> runs_;
  std::vector<Span> counted_, partial_sums_;
  std::int64_t elements_ = 0, owned_ = 0, frozen_elements_ = 0;
};

}  // namespace orrery::executor
