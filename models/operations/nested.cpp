#include "models/operations/nested.hpp"

#include <algorithm>

namespace orrery::models {

namespace {

class Nesting {
 public:
  Nesting(Block& whole, const Block& part, const std::string& prefix,
          const std::vector<Joined>& joined)
      : whole_{whole}, part_{part}, prefix_{prefix}, joined_{joined} {}

  void run() {
    for (Operation op : part_.operations) {
      op.name = prefix_ + op.name;
      move_operands(op, [&](OperandId id) { return moved(part_.operands[id], op.pass); });
      whole_.operations.push_back(std::move(op));
    }
  }

 private:
  const Joined* joined(const std::string& name) const {
    const auto found = std::ranges::find(joined_, name, &Joined::part);
    return found == joined_.end() ? nullptr : &*found;
  }

  /// Puts the prefix before a model tensor's name; a tied operand keeps the name that it aliases.
  static void rename_tensor(Operand& copy, const std::string& prefix) {
    const bool weight = copy.role == Role::parameter && copy.tensor == copy.name;
    const bool gradient = copy.role == Role::gradient && copy.tensor + ".grad" == copy.name;
    if (weight || gradient) copy.tensor = prefix + copy.tensor;
  }

  OperandId moved(const Operand& operand, Pass pass) {
    Operand copy = operand;
    const Joined* const same = joined(operand.name);
    const bool shared = operand.role == Role::tokens || operand.role == Role::labels;
    if (same == nullptr && !shared) {
      rename_tensor(copy, prefix_);
      copy.name = prefix_ + operand.name;
    }
    if (same != nullptr) {
      if (!same->copy.empty()) rename_tensor(copy, same->copy);
      copy.name = same->whole;
    }
    const bool edge = copy.role == Role::input || copy.role == Role::output;
    if (edge && !prefix_.empty()) {
      copy.role = pass == Pass::forward ? Role::saved : Role::temporary;
    }
    return whole_.add(std::move(copy));
  }

  Block& whole_;
  const Block& part_;
  const std::string& prefix_;
  const std::vector<Joined>& joined_;
};

}  // namespace

void nest(Block& whole, const Block& part, const std::string& prefix,
          const std::vector<Joined>& joined) {
  Nesting{whole, part, prefix, joined}.run();
}

}  // namespace orrery::models
