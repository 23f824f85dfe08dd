#include <algorithm>
#include <array>
#include <string>

#include "models/evaluation/event_actors.hpp"
#include "models/lowering/lower.hpp"
#include "sim/engine.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace events {
namespace {

/// What one rank is made of, besides the wires between ranks.
struct Rank {
  explicit Rank(const PhaseWalk::Blocks& blocks) : walk{blocks} {}

  const RankClass* list = nullptr;
  std::uint32_t rank_class = 0, replica = 0;
  Progress progress;
  std::array<Lane, queue_count> lanes;
  std::vector<std::uint32_t> outgoing;  // wires
  // The host.
  std::size_t at = 0;               // instruction
  std::vector<TaskId> first_tasks;  // of the instructions met so far
  PhaseWalk walk;
  TaskId received = no_task;  // the input of the compute instruction to come
  TaskId output = no_task;    // of the compute instruction before
  TaskId awaited = no_task;   // what the host waits for
  Time host_end{};

  Lane& lane(Queue queue) { return lanes[static_cast<std::size_t>(queue)]; }
  bool host_done() const { return at == list->instructions.size(); }
  bool done() const { return host_done() && progress.first_pending() == progress.next(); }
};

bool runs_phase(Opcode op) {
  return op == Opcode::forward || op == Opcode::backward || op == Opcode::optimizer;
}

/// Every rank class stands for `tensor` x `data` replicas; one each is the folded run. Replicas,
/// tensor varying fastest, are numbered within everything that there is one of per class, channel
/// or collective.
class EventRun {
 public:
  EventRun(const PricedProgram& priced, std::int64_t tensor, std::int64_t data)
      : priced_{priced},
        program_{*priced.program},
        tensor_{static_cast<std::uint32_t>(tensor)},
        replicas_{static_cast<std::uint32_t>(tensor * data)},
        launched_{engine_.add_kind<&EventRun::launched>(*this)},
        ended_{engine_.add_kind<&EventRun::ended>(*this)},
        transferred_{engine_.add_kind<&EventRun::transferred>(*this)} {
    ensure(priced.blocks.size() == program_.blocks.size() &&
               priced.channels.size() == program_.channels.size() &&
               priced.collectives.size() == program_.collectives.size() &&
               priced.collective_launch.size() == program_.collectives.size(),
           "the prices are of another program");
    prepare_steps();
    prepare_ranks();
    prepare_wires();
    prepare_meetings();
  }

  StepTimes run() {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      engine_.at(priced_.step_launch, [this, r] {
        meet_instruction(ranks_[r]);
        proceed(r);
      });
    }
    engine_.run();
    refuse_unfinished();
    return result();
  }

 private:
  // --- what there is -----------------------------------------------------------------------

  void prepare_steps() {
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
      const Block& block = program_.blocks[b];
      ensure(priced_.blocks[b].size() == block.operations.size(),
             "the prices are of another program");
      std::vector<Step>& steps = blocks_.emplace_back();
      for (const Operation& op : block.operations) {
        Step& step = steps.emplace_back();
        step.index = static_cast<std::uint32_t>(steps.size() - 1);
        step.launch = priced_.blocks[b][step.index].launch;
        step.duration = priced_.blocks[b][step.index].duration;
        step.after = &op.after;
        step.queue = op.queue;
        step.host_waits = op.host_waits || op.queue == Queue::host ||
                          (priced_.synchronous && op.queue == Queue::compute);
        step.writes_output = std::any_of(op.writes.begin(), op.writes.end(), [&](OperandId id) {
          return block.operands[id].role == Role::output;
        });
        step.with_tensor_group = op.kind == OpKind::collective && op.communicator == tensor_group;
      }
    }
    for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
      Step& step = joints_.emplace_back();
      step.launch = priced_.collective_launch[j];
      step.duration = priced_.collectives[j];
      step.after = &compute_queue_;
      step.queue = Queue::data;
      step.host_waits = program_.collectives[j].host_waits;
    }
  }

  void prepare_ranks() {
    for (std::uint32_t c = 0; c < program_.classes.size(); ++c) {
      for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
        Rank& rank = ranks_.emplace_back(blocks_);
        rank.list = &program_.classes[c];
        rank.rank_class = c;
        rank.replica = replica;
      }
    }
  }

  void prepare_wires() {
    for (std::size_t c = 0; c < program_.channels.size(); ++c) {
      for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
        Wire& wire = wires_.emplace_back();
        wire.from = program_.channels[c].from * replicas_ + replica;
        wire.to = program_.channels[c].to * replicas_ + replica;
        wire.duration = priced_.channels[c];
        ranks_[wire.from].outgoing.push_back(static_cast<std::uint32_t>(wires_.size() - 1));
      }
    }
  }

  /// A joint collective is held once by each of its groups, under the first replica of the group;
  /// the tensor groups' own meetings follow, by class, data coordinate and queue.
  void prepare_meetings() {
    meetings_.resize(program_.collectives.size() * replicas_);
    for (std::uint32_t j = 0; j < program_.collectives.size(); ++j) {
      for (const std::uint32_t c : program_.collectives[j].classes) {
        for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
          meetings_[joint_meeting(j, replica)].lanes.push_back(
              lane_of(c * replicas_ + replica, Queue::data));
        }
      }
    }
    tensor_meetings_ = static_cast<std::uint32_t>(meetings_.size());
    if (tensor_ == 1) return;
    meetings_.resize(meetings_.size() + ranks_.size() / tensor_ * queue_count);
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      for (int q = 0; q < queue_count; ++q) {
        const auto queue = static_cast<Queue>(q);
        meetings_[tensor_meeting(r, queue)].lanes.push_back(lane_of(r, queue));
      }
    }
  }

  bool spans(std::uint32_t joint, MeshAxis axis) const {
    const std::uint16_t id = program_.collectives[joint].communicator;
    const std::vector<MeshAxis>& axes = program_.communicators.at(id).spans;
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }

  std::uint32_t joint_meeting(std::uint32_t joint, std::uint32_t replica) const {
    std::uint32_t t = replica % tensor_, d = replica / tensor_;
    if (t > 0 && spans(joint, MeshAxis::tensor)) t = 0;
    if (d > 0 && spans(joint, MeshAxis::data)) d = 0;
    return joint * replicas_ + t + tensor_ * d;
  }

  std::uint32_t tensor_meeting(std::uint32_t rank, Queue queue) const {
    return tensor_meetings_ + rank / tensor_ * queue_count + static_cast<std::uint32_t>(queue);
  }

  static std::uint32_t lane_of(std::uint32_t rank, Queue queue) {
    return rank * queue_count + static_cast<std::uint32_t>(queue);
  }

  // --- the host ----------------------------------------------------------------------------

  /// The host has come to an instruction.
  void meet_instruction(Rank& rank) {
    if (rank.host_done()) return;
    const Instruction& each = rank.list->instructions[rank.at];
    rank.first_tasks.push_back(rank.progress.next());
    if (!runs_phase(each.op)) return;
    const bool step = each.op == Opcode::optimizer;
    rank.walk.begin(program_.phases[each.target],
                    step ? rank.lane(Queue::data).last() : rank.received);
    rank.received = no_task;
  }

  void leave_instruction(Rank& rank) {
    ++rank.at;
    meet_instruction(rank);
  }

  /// The host begins to launch what comes next.
  void proceed(std::uint32_t r) {
    Rank& rank = ranks_[r];
    while (!rank.host_done()) {
      const Instruction& each = rank.list->instructions[rank.at];
      if (!runs_phase(each.op)) {
        const bool transfer = each.op == Opcode::send || each.op == Opcode::receive;
        return begin_launch(r, transfer ? priced_.transfer_launch : joints_[each.target].launch);
      }
      if (const Step* step = rank.walk.next()) return begin_launch(r, step->launch);
      rank.output = rank.walk.output();
      leave_instruction(rank);
    }
    rank.host_end = engine_.now();
  }

  void begin_launch(std::uint32_t r, Time cost) {
    engine_.signal(engine_.now() + cost, launched_, r);
  }

  /// Event: the host has launched what it began to.
  void launched(Engine::Word word) {
    const auto r = static_cast<std::uint32_t>(word);
    Rank& rank = ranks_[r];
    const Instruction& each = rank.list->instructions[rank.at];
    switch (each.op) {
      case Opcode::forward:
      case Opcode::backward:
      case Opcode::optimizer:
        launch_operation(r);
        break;
      case Opcode::send:
        launch_send(rank, each.target);
        break;
      case Opcode::receive:
        launch_receive(rank, each.target);
        break;
      default:
        launch_joint(r, each.target);
    }
    if (rank.awaited == no_task) proceed(r);
  }

  void launch_operation(std::uint32_t r) {
    Rank& rank = ranks_[r];
    const Step& step = *rank.walk.next();
    const bool meets = step.with_tensor_group && tensor_ > 1;
    const Task task{&step, rank.progress.add(), rank.walk.input(),
                    meets ? tensor_meeting(r, step.queue) : no_meeting};
    rank.walk.launched(task.id);
    enqueue(r, task);
  }

  void launch_joint(std::uint32_t r, std::uint32_t joint) {
    Rank& rank = ranks_[r];
    const Task task{&joints_[joint], rank.progress.add(), rank.lane(Queue::compute).last(),
                    joint_meeting(joint, rank.replica)};
    enqueue(r, task);
    leave_instruction(rank);
  }

  void launch_send(Rank& rank, std::uint32_t channel) {
    const std::uint32_t wire = channel * replicas_ + rank.replica;
    wires_[wire].sends.push_back(rank.output);
    leave_instruction(rank);
    look(wire);
  }

  void launch_receive(Rank& rank, std::uint32_t channel) {
    const std::uint32_t wire = channel * replicas_ + rank.replica;
    rank.received = rank.progress.add();
    wires_[wire].receives.push_back(rank.received);
    if (priced_.blocking_receive) rank.awaited = rank.received;
    leave_instruction(rank);
    look(wire);
  }

  void enqueue(std::uint32_t r, const Task& task) {
    Rank& rank = ranks_[r];
    const Queue queue = task.step->queue;
    if (task.step->host_waits) rank.awaited = task.id;
    rank.lane(queue).push(task);
    look(r, queue);
  }

  // --- queues, wires and meetings ----------------------------------------------------------

  /// A queue looks whether its head may begin.
  void look(std::uint32_t r, Queue queue) {
    Lane& lane = ranks_[r].lane(queue);
    if (!lane.ready(ranks_[r].progress)) return;
    lane.engage();
    const Task& head = lane.head();
    if (head.meeting == no_meeting) return begin(lane_of(r, queue));
    Meeting& meeting = meetings_[head.meeting];
    if (++meeting.arrived < meeting.lanes.size()) return;
    meeting.arrived = 0;
    meeting.start = engine_.now();
    for (const std::uint32_t member : meeting.lanes) begin(member);
  }

  void begin(std::uint32_t id) {
    const Lane& lane = ranks_[id / queue_count].lanes[id % queue_count];
    engine_.signal(engine_.now() + lane.head().step->duration, ended_, id);
  }

  /// A wire looks whether its next transfer may begin.
  void look(std::uint32_t id) {
    Wire& wire = wires_[id];
    if (!wire.ready(ranks_[wire.from].progress)) return;
    wire.busy = true;
    engine_.signal(engine_.now() + wire.duration, transferred_, id);
  }

  /// Event: the head of a queue has ended.
  void ended(Engine::Word word) {
    const auto r = static_cast<std::uint32_t>(word / queue_count);
    Lane& lane = ranks_[r].lanes[word % queue_count];
    const TaskId id = lane.head().id;
    lane.head_ended(engine_.now());
    conclude(r, id);
  }

  /// Event: a transfer has ended.
  void transferred(Engine::Word word) {
    const auto id = static_cast<std::uint32_t>(word);
    Wire& wire = wires_[id];
    const TaskId receive = wire.receives.front();
    wire.sends.pop_front();
    wire.receives.pop_front();
    wire.busy = false;
    wire.ends.push_back(engine_.now());
    conclude(wire.to, receive);
    look(id);
  }

  /// All of a rank that may have waited for a task looks again.
  void conclude(std::uint32_t r, TaskId id) {
    Rank& rank = ranks_[r];
    rank.progress.end(id);
    for (int q = 0; q < queue_count; ++q) look(r, static_cast<Queue>(q));
    for (const std::uint32_t wire : rank.outgoing) look(wire);
    if (rank.awaited != id) return;
    rank.awaited = no_task;
    proceed(r);
  }

  // --- what was found ----------------------------------------------------------------------

  /// Names the first instruction of each class that has not ended on some rank.
  void refuse_unfinished() const {
    std::string text;
    for (std::size_t r = 0, named = 0; r < ranks_.size(); ++r) {
      const Rank& rank = ranks_[r];
      if (rank.done() || rank.rank_class < named) continue;
      named = rank.rank_class + 1;
      text += (text.empty() ? " stage " : "; stage ") + std::to_string(rank.list->stage) +
              waiting_at(rank);
    }
    if (!text.empty()) throw ContractError{"the schedule cannot proceed:" + text};
  }

  std::string waiting_at(const Rank& rank) const {
    const auto& firsts = rank.first_tasks;
    const auto behind =
        std::upper_bound(firsts.begin(), firsts.end(), rank.progress.first_pending());
    const auto at = static_cast<std::size_t>(behind - firsts.begin()) - 1;
    const Instruction& each = rank.list->instructions[at];
    std::string text = " waits at i" + std::to_string(at) + " " + std::string{name(each.op)};
    if (each.op != Opcode::receive) return text;
    const std::uint32_t from = program_.channels[each.target].from;
    return text + " from stage " + std::to_string(from);
  }

  StepTimes result() {
    StepTimes times;
    for (Rank& rank : ranks_) {
      times.ranks.push_back({rank.host_end, rank.lane(Queue::compute).free(),
                             rank.lane(Queue::tensor).free(), rank.lane(Queue::data).free(),
                             rank.lane(Queue::copy).free()});
    }
    for (Wire& wire : wires_) times.transfers.push_back(std::move(wire.ends));
    for (std::uint32_t j = 0; j < program_.collectives.size(); ++j) {
      for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
        times.collective_starts.push_back(meetings_[joint_meeting(j, replica)].start);
      }
    }
    times.step = engine_.now();
    return times;
  }

  const PricedProgram& priced_;
  const Program& program_;
  const std::uint32_t tensor_, replicas_;
  const std::vector<OpId> compute_queue_{block_input};  // a joint's input: what is computed
  PhaseWalk::Blocks blocks_;
  std::vector<Step> joints_;
  std::vector<Rank> ranks_;
  std::vector<Wire> wires_;
  std::vector<Meeting> meetings_;
  std::uint32_t tensor_meetings_ = 0;
  Engine engine_;
  Engine::Kind launched_, ended_, transferred_;
};

}  // namespace
}  // namespace events

StepTimes evaluate_events(const PricedProgram& priced) {
  return events::EventRun{priced, 1, 1}.run();
}

StepTimes evaluate_all_ranks(const PricedProgram& priced) {
  const Mesh& mesh = priced.program->mesh;
  return events::EventRun{priced, mesh.tensor, mesh.data}.run();
}

}  // namespace orrery::models
