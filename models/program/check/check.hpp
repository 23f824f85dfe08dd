#pragma once
// The parts of `check` (program.hpp), which states what they verify together. Each throws
// ContractError at the first violation.

#include <string>
#include <string_view>

#include "models/program/program.hpp"

namespace orrery::models {

/// An instruction as error messages name it: "stage 1 i7 receive c1 mb0". Joint collectives and
/// the optimizer have no micro-batch.
std::string place(const Program& program, std::uint32_t rank_class, std::size_t instruction);

/// The check of one class's list: a visitor that passes over what a check does not look at.
class ClassCheck {
 public:
  ClassCheck(const Program& program, std::uint32_t c)
      : program_{program}, ranks_{program.classes[c]}, class_{c} {}

  void phase(Token, const Instruction&) const {}
  void send(Token, const Instruction&) const {}
  void receive(Token, const Instruction&) const {}
  void joint(Token, const Instruction&) const {}

 protected:
  [[noreturn]] void refuse(Token i, std::string_view problem) const;

  const Program& program_;
  const RankClass& ranks_;
  std::uint32_t class_;
};

/// Inside each block, operands exist, temporaries and outputs are written before they are read, and
/// operations wait only for earlier ones. Backward reads only what forward saved.
void check_blocks(const Program& program);
/// Every index of one part of the Program in another, or in an instruction, is in range, and the
/// chunk of an instruction belongs to its stage.
void check_targets(const Program& program);
/// Each chunk runs each of its micro-batches forward once and then backward once, weight gradients
/// of a split backward after that, and all of it before the optimizer. The chunks cover every layer
/// of the model once.
void check_coverage(const Program& program);
/// Each class's list alone. What an instruction awaits was made earlier by the right kind of
/// instruction; what a receive makes is consumed once, by the same micro-batch. A buffer is bound
/// once, used by one micro-batch and freed once; a layer runs while its gathered weights are there.
void check_lists(const Program& program);
/// All lists together. The k-th send of a channel matches its k-th receive: neighbouring chunks,
/// the same micro-batch. A joint collective is reached once by each of its classes and by no other.
/// No deadlock: every rank class reaches the end of its instruction list.
void check_matching(const Program& program);
/// With data parallelism each parameter's gradient is reduced once, when it is complete; where
/// gradients are sharded, once in each micro-batch.
void check_reductions(const Program& program);

}  // namespace orrery::models
