#include "models/evaluation/replay.hpp"

#include "models/evaluation/replayer.hpp"

namespace orrery::models {

namespace {

struct Functions {
  const ReplayObserver& of;

  bool only_waits() const { return of.operation == nullptr; }
  void at_once(std::uint32_t, std::size_t, Time, Time) const {}
  void instruction(const InstructionRecord& record) const {
    if (of.instruction) of.instruction(record);
  }
  void operation(const OperationRecord& record) const {
    if (of.operation) of.operation(record);
  }
};

}  // namespace

void replay(const PricedProgram& priced, const StepTimes& times, std::uint32_t rank_class,
            const ReplayObserver& observer) {
  Functions functions{observer};
  Replayer<Functions>{priced, times, rank_class, functions}.run();
}

}  // namespace orrery::models
