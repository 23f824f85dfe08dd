#pragma once
// A model that is no transformer, as a list of operations with sizes: convolutions, matrix
// products, norms, element-wise kernels, attention, kernels by name, collectives, messages to
// neighbours on a grid, work of the host, files. models/model/README.md describes the JSON. The
// operations of one training step stand under `forward` (backward is derived) and `update`; those
// of a loop without training under `step`. Leaves out which tensor an operation reads: order is by
// queue and by `after`, and sizes are checked only where an operation names its `input`.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hardware/dtype.hpp"
#include "models/model/expression.hpp"
#include "sim/quantity.hpp"
#include "sim/words.hpp"

namespace orrery::models {

/// Numbers that an operation reads and writes: bytes, or elements of its format.
struct ListedTraffic {
  double read = 0, write = 0;
};

/// Sizes of a convolution, [images, in, ...] to [images, out, ...]: as a GEMM of images x outputs
/// by `out / groups` by `in kernel / groups`, for each group.
struct ListedConvolution {
  std::int64_t images = 1, in = 1, out = 1, groups = 1, stride = 1;
  std::int64_t taps = 1;             // elements of the kernel: 9 of 3 x 3
  std::int64_t outputs = 1;          // positions of the output: 112 x 112
  std::vector<std::int64_t> size{};  // of the output, by axis

  bool depthwise() const { return groups > 1 && groups == in && groups == out; }
};

struct ListedAttention {
  std::int64_t sequences = 1, queries = 1, keys = 1, heads = 1, head_dim = 1;
  bool causal = false;
  std::int64_t window = 0;
};

enum class ListedKind : std::uint8_t {
  gemm,
  conv,
  attention,
  memory,
  kernel,
  collective,
  transfer,
  host,
  file
};

/// One operation of a list, with the sizes of one rank.
struct ListedOperation {
  ListedKind kind = ListedKind::memory;
  std::string name, word;                   // "conv1", "conv"
  std::string place;                        // "resnet.json:/forward/3"
  std::optional<hardware::DType> format{};  // of the arithmetic; none: the plan's
  std::string queue{};                      // that it stands in; empty: the main one
  std::vector<std::size_t> after{};         // earlier operations of its layer
  bool after_stated = false;

  std::int64_t m = 0, n = 0, k = 0, products = 1;  // of gemm
  ListedConvolution convolution{};
  ListedAttention attention{};
  double flops = 0;  // forward
  ListedTraffic traffic{}, reverse_traffic{};
  bool in_elements = false;  // both, and `keeps` where it is not stated
  double reverse_flops = 0;
  bool reverses = false;          // has a backward
  bool reverse_assumed = false;   // ... that the list does not state
  bool first = false;             // of the model's matrix products: its input has no gradient
  std::optional<double> keeps{};  // saved for backward; none: what it reads
  bool keeps_bytes = false;       // ... as stated, in bytes
  std::int64_t parameters = 0;    // of one rank
  bool sharded = false;  // each rank has parameters of its own, which are updated where they are
  std::string key{};     // of a kernel: "fft"
  bool gathers = false;  // reads scattered rows
  double uneven = 1;     // the busiest rank's work over the mean

  std::string collective{}, group{};  // "all_reduce", "data"
  double bytes = 0;                   // of a collective, transfer or file
  std::int64_t bucket = 0;            // of a collective that goes in pieces; 0: whole
  bool overlaps = false;
  std::string to{};  // of a transfer: gpu, host, neighbours
  std::vector<std::int64_t> grid{};
  bool by_axis = false;  // messages along one axis wait for those of the axis before
  Time host{};           // of work of the host
  bool writes_files = false;
  std::int64_t ahead = 0;  // steps that the loader is ahead; 0: in the step
  std::int64_t every = 1;  // steps
  bool never_waits = false;

  bool is_matrix() const {
    return kind == ListedKind::gemm || kind == ListedKind::conv || kind == ListedKind::attention;
  }
};

/// What decides about the sizes of one rank.
struct ListedSizes {
  std::int64_t batch = 0, gpus = 0;  // 0: as the list says
};

/// What a rank keeps from one step to the next besides its parameters: features of the frame
/// before.
struct ListedState {
  std::string name;
  std::int64_t bytes = 0;
};

/// A change of the number of GPUs during a run without training.
struct ListedPhase {
  std::int64_t gpus = 0;
  std::optional<double> hours{};  // none: until all steps are done
};

class OperationList {
 public:
  /// Reads and checks a whole list with its own parameters.
  /// Errors  an unknown kind, key or name, sizes that do not chain, a count below its least, a
  ///         cycle: InputError
  explicit OperationList(const Node& root);
  OperationList(const OperationList&) = delete;
  OperationList& operator=(const OperationList&) = delete;

  const std::string& name() const { return name_; }
  /// Does it train? Otherwise it is a loop of equal steps.
  bool trains() const { return trains_; }
  std::int64_t batch() const { return batch_; }  // 0: it has none
  std::int64_t gpus() const { return gpus_; }    // 0: it states none
  /// Layers: a group of operations that is repeated, or operations between two such.
  std::int64_t layers() const { return static_cast<std::int64_t>(layers_.size()); }
  /// Layers that are the same have the same number here.
  std::int64_t kind_of(std::int64_t layer) const {
    return layers_.at(static_cast<std::size_t>(layer)).kind;
  }
  /// Name of a kind of layer: "stage2.rest".
  std::string kind_name(std::int64_t kind) const;
  std::vector<ListedOperation> operations(std::int64_t kind, const ListedSizes& sizes = {}) const;
  /// Those of the update after backward, by `all_parameters`.
  std::vector<ListedOperation> update(const ListedSizes& sizes = {}) const;
  /// Ranks of a named group.
  std::int64_t ranks_of(const std::string& group, const ListedSizes& sizes) const;
  /// The group of fewer ranks than all; empty: none.
  std::string inner_group(const ListedSizes& sizes) const;

  std::int64_t parameters() const { return parameters_; }  // of the whole model
  /// FLOPs of one sample forward, or of one step of a rank.
  double forward_flops() const { return forward_flops_; }
  /// Convolutions, products and attention among them.
  double matrix_flops() const { return matrix_flops_; }
  const std::vector<std::string>& assumed() const { return assumed_; }

  /// Rate of a storage that all ranks share. Errors  the list states none of this name: InputError
  Bandwidth storage_rate(const std::string& storage, bool write) const;
  /// Bytes of a parameter's gradient, and of a bucket (0: not stated), as the update's reduction
  /// states them; nullopt: it states none.
  struct GradientSums {
    std::int64_t width = 4, bucket = 0;
    bool overlaps = false;
  };
  std::optional<GradientSums> gradient_sums() const;
  /// What one rank keeps between steps, rounded up to bytes.
  /// Errors  a size below 0 or above 1e18: InputError
  std::vector<ListedState> state(const ListedSizes& sizes = {}) const;
  /// How often operations of a loop run, ascending, without 1.
  std::vector<std::int64_t> periods() const;

  /// Of a loop: how many steps; its phases; what a change of GPUs costs.
  double steps() const { return steps_; }
  const std::vector<ListedPhase>& phases() const { return phases_; }
  std::vector<ListedOperation> change(const ListedSizes& sizes) const;

 private:
  /// Entries [first, last) of the list, or one group at an index of its repetition.
  struct ListedLayer {
    std::size_t first = 0, last = 0;
    bool group = false;
    std::int64_t index = 0;
    std::int64_t kind = 0;
  };

  Node root() const { return Node{json_, file_, prefix_}; }
  Node entries() const { return root()[trains_ ? "forward" : "step"]; }
  NamedValues values(const ListedSizes& sizes) const;
  void find_layers(const NamedValues& values);
  void check_layers();
  void read_run();

  Json json_;
  std::string file_, prefix_, name_;
  bool trains_ = true;
  std::int64_t batch_ = 0, gpus_ = 0;
  std::vector<ListedLayer> layers_;
  std::vector<ListedLayer> kinds_;
  std::int64_t parameters_ = 0, dense_ = 0;  // all, and those that every rank has
  double forward_flops_ = 0, matrix_flops_ = 0, steps_ = 0;
  std::vector<ListedPhase> phases_;
  std::vector<std::string> assumed_;
};

/// Is the value of `format` that of a list of operations?
bool is_operation_list(const Node& config);

}  // namespace orrery::models
