#include "models/operations/pooler.hpp"

#include <utility>

namespace orrery::models {

/// [b, columns]: a row for the first token of each sequence.
OperandId PoolerBuilder::firsts(std::string_view name, Role role, std::int64_t columns) {
  return block_.operand(name, role, storage_, {1, inputs_.plan.batch.micro, columns});
}

/// Copies the rows of the first tokens; the traffic is that of these rows alone.
void PoolerBuilder::take_firsts(OperandId from, OperandId to) {
  block_.add(OpKind::cast, "first", {from}, {to}).bytes = block_.at(to).bytes() * 2;
}

void PoolerBuilder::pool(OperandId in) {
  const std::int64_t h = inputs_.model.hidden;
  const OperandId first = firsts("first", Role::saved, h);
  const OperandId out = firsts("pooler.out", Role::saved, h);
  const OperandId active = firsts("pooler.active", Role::saved, h);
  const OperandId answer = firsts("relation.out", Role::temporary, 2);
  take_firsts(in, first);
  linear_.forward(pooler(), first, out);
  block_.add(OpKind::activation, "pooler.activation", {out}, {active});  // a tanh, priced as gelu
  linear_.forward(relation(), active, answer);
  block_.add(OpKind::softmax, "relation.softmax", {answer},
             {firsts("relation.softmax", Role::saved, 2)});
}

void PoolerBuilder::pool_backward(OperandId d_in) {
  const std::int64_t h = inputs_.model.hidden;
  const OperandId out = firsts("pooler.out", Role::saved, h);
  const OperandId d_answer = firsts("relation.out.grad", Role::temporary, 2);
  const OperandId d_active = firsts("pooler.active.grad", Role::temporary, h);
  const OperandId d_out = firsts("pooler.out.grad", Role::temporary, h);
  const OperandId d_first = firsts("first.grad", Role::temporary, h);
  const OperandId follows = block_.operand("sentence_labels", Role::labels, DType::int64,
                                           {1, 1, inputs_.plan.batch.micro});
  block_.add(OpKind::softmax_backward, "relation.backward",
             {firsts("relation.softmax", Role::saved, 2), follows}, {d_answer});
  linear_.backward(relation(), firsts("pooler.active", Role::saved, h), d_answer, d_active);
  block_.add(OpKind::activation_backward, "pooler.activation.backward", {d_active, out}, {d_out});
  linear_.backward(pooler(), firsts("first", Role::saved, h), d_out, d_first);
  block_.add(OpKind::add, "first.add", {d_in, d_first}, {d_in}).bytes =
      block_.at(d_first).bytes() * 3;
}

}  // namespace orrery::models
