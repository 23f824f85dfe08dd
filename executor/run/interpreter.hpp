#pragma once
// How a Runner works: the loop over a rank's instructions, and the memory that they use.
//
// Order. Operations of the compute lane run in program order. A collective of a block is waited for
// by the operation that the block says waits for it, by the next one on its lane, and at the
// block's end; reductions over the data axis by what reads the sums; transfers as pipe.hpp says.

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/layout/layout.hpp"
#include "executor/layout/memory_plan.hpp"
#include "executor/run/calls.hpp"
#include "executor/run/captured.hpp"
#include "executor/run/groups.hpp"
#include "executor/run/loss_scale.hpp"
#include "executor/run/pipe.hpp"
#include "executor/run/recording.hpp"
#include "executor/run/runner.hpp"

namespace orrery::executor {

/// Device memory that is given back.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, std::int64_t bytes)
      : device_{&device}, data_{device.allocate(Bytes{bytes})}, bytes_{bytes} {}
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_ != nullptr) device_->release(data_);
  }

  std::byte* data() const { return data_; }
  Bytes bytes() const { return Bytes{bytes_}; }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

class Runner::Interpreter {
 public:
  Interpreter(const models::Program& program, const models::Software& software, Device& device,
              Fabric& fabric, RunSettings settings);

  StepOutcome step(std::int64_t index);
  void record(TraceDetail detail) { recording_.set(recordable(detail, program_.graphs)); }
  Progress progress() const;
  const MeasuredMemory& memory() const { return memory_; }
  const GraphCounts& graphs() const { return captured_.counts(); }
  const Trace& trace() const;
  const Layout& layout() const { return layout_; }
  models::DType state_format() const { return state_; }
  models::DType gradient_format() const { return gradient_; }
  std::byte* state_at(StateKind kind, std::int64_t local) const;
  Device& device() const { return device_; }
  std::int64_t size_of_state(StateKind kind) const;
  void finish_loading(std::int64_t steps);
  LossScale& loss_scale() { return scale_; }
  void give_up() noexcept;

 private:
  using Instruction = models::Instruction;

  /// Where one bucket's compressed forms lie.
  struct Compressed {
    std::size_t bucket = 0;
    bool in_place = false;                       // what is sent becomes what is received
    std::vector<std::byte*> sent{}, received{};  // by JointCollective::part
    std::byte* residual = nullptr;
  };

  // setup.cpp
  void bind_ends();
  void bind_parameters(std::uint32_t block);
  void allocate();
  void allocate_buckets();
  void allocate_compressed();
  void allocate_parts(const models::Block& block, Compressed& of);
  std::vector<View> views_of(const models::Block& block, const Compressed& of) const;
  std::int64_t addend_bytes() const;

  // parameters.cpp
  void draw_parameters();
  void follow_masters();

  // interpreter.cpp: the step
  void load_batch(std::int64_t step);
  struct Dispatch;
  void execute(std::uint32_t i);
  void hold(std::uint32_t i, bool at_end);
  void poison(std::int64_t offset, std::int64_t bytes);
  void alive() const {
    if (settings_.alive) settings_.alive();
  }
  void run_phase(std::uint32_t i);
  void keep_statistics(std::uint32_t micro_batch);
  const View& statistics_view() const;
  std::byte* saved_of(std::uint32_t i, std::uint32_t block, std::int64_t layer) const;
  std::byte* output_of(std::uint32_t i, const ChunkPlan& chunk, std::size_t place);
  void report(StepOutcome& outcome);

  // run_block.cpp: one block on its operands
  void run_block(std::uint32_t i, std::uint32_t block, std::int64_t layer, std::byte* input,
                 std::byte* output);
  void bind_operands(std::uint32_t i, std::uint32_t block, std::int64_t layer, std::byte* input,
                     std::byte* output);
  void run_operation(std::uint32_t i, std::uint32_t block, std::int64_t layer, std::size_t op);
  void run_kernel(const models::Operation& op);
  void wait_for_block(const models::Operation& op);
  void start_collective(std::uint32_t i, std::uint32_t block, std::int64_t layer, std::size_t op);

  // joint.cpp: what ranks do together between blocks
  void reduce(std::uint32_t i);
  void reduce_compressed(std::uint32_t i, std::size_t bucket);
  std::uint32_t compressed_for(std::uint32_t i) const;
  void add_to_sums(const PendingCall& pending);
  void compress(std::uint32_t i);
  void unshard(std::uint32_t i);
  void fill_next_bucket(std::uint32_t i);
  void wait_until_empty(const std::byte* bucket);
  void await(models::Token collective);
  void tie(std::uint32_t i);
  void sum_addends(std::uint32_t i, std::uint16_t communicator);
  void norm(std::uint32_t i);
  void optimize(std::uint32_t i);
  void squared_norm(const models::Operation& op);
  void adam(const models::Operation& op);
  void leave_out_update();
  void update(const models::Operation& op, const AdamStep& numbers, std::byte* gradient,
              std::byte* working, std::int64_t owned, std::int64_t count);
  void gather(std::uint32_t i);
  void gather_parameters(std::uint16_t communicator, models::Collective kind, std::size_t entry,
                         std::uint32_t i);
  std::size_t begin_joint(std::uint32_t i);
  void collective(std::uint32_t i, std::uint16_t communicator, CollectiveCall call,
                  std::size_t entry);
  void wait_for_joint(PendingCall& pending);
  void wait_for_data();
  void poll();
  Element element(models::DType type) const;
  void read_norm();
  /// Where an element of the layout lies, for the running block; and one that this rank owns.
  std::byte* weight_at(std::int64_t element) const;
  std::byte* gradient_at(std::int64_t element) const;
  std::byte* owned_gradient_at(std::int64_t element) const;

  const models::Program& program_;
  Device& device_;
  Fabric& fabric_;
  RunSettings settings_;
  std::unique_ptr<TokenSource> own_tokens_;
  std::int64_t rank_, stage_, tensor_, data_;
  const models::RankClass& ranks_;
  Layout layout_;
  MemoryPlan plan_;
  std::vector<BlockPlan> blocks_;
  Captured captured_;
  std::vector<Group> groups_;
  models::DType storage_{}, gradient_{}, state_{};
  bool separate_master_ = false;

  DeviceMemory parameters_, gradients_, optimizer_, arena_, batch_, statistics_, scalars_;
  /// ZeRO-2 and 3: gradients_ are the owned sums, and backward fills buckets; under ZeRO-3
  /// parameters_ are the owned ones, and gathered where the arena says.
  bool shards_sums_ = false, shards_weights_ = false;
  DeviceMemory buckets_;
  std::vector<std::int64_t> bucket_offsets_;        // by JointCollective::buffer
  std::vector<std::byte*> filled_at_, weights_at_;  // by the layout's bucket
  std::vector<DeviceMemory> compressed_memory_;
  std::map<std::uint32_t, Compressed> compressed_;  // by instruction
  models::Operation accumulate_, narrow_;
  std::vector<std::int64_t> layer_base_;  // first parameter of each layer of the model held here
  Place place_;
  double mean_ = 1;  // 1 / tokens of the global batch
  LossScale scale_;
  std::int64_t statistics_operand_ = -1;

  std::array<std::byte*, base_count> bases_{};
  std::vector<View> views_;
  std::byte* flowing_ = nullptr;  // the gradient that backward passes on
  int next_edge_ = 0;
  std::vector<PendingCall> tensor_pending_, data_pending_;
  std::size_t next_change_ = 0;
  double norm_ = 0;
  std::uint64_t ring_norm_ = 0;
  std::int64_t updates_ = 0;
  bool gradients_seen_ = false;

  models::MemoryByKind held_{};
  MeasuredMemory memory_;
  Recording recording_;
  StepPosition at_;
  Calls calls_{device_, fabric_, recording_, at_};
  Pipe pipe_{program_, ranks_, groups_, plan_, device_, fabric_, recording_, calls_};
  mutable Trace trace_;
  mutable bool trace_made_ = true;
};

}  // namespace orrery::executor
