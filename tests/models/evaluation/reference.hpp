#pragma once
// The meaning in priced.hpp a third time, as slow and literal as can be: all equations are
// evaluated again and again from "everything is ready at 0" until nothing changes. One of them can
// be broken on purpose, to see whether the random programs would notice.

#include <string_view>

#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"

namespace orrery::models {

/// What is left out of the meaning, or put in its place.
enum class Mutation {
  none,
  step_launch,             // the first instruction is launched at 0
  last_dependency,         // the last that an operation waits for is ignored
  second_block_input,      // the input is waited for only where it is the first dependency
  queue_order,             // operations do not wait for the one before on their queue
  operation_host_waits,    // the host never waits for an operation that says so
  synchronous,             // launches return at once
  first_output,            // the first operation that writes the output makes it ready
  chained_input,           // a later block's input is the phase's
  channel_order,           // transfers of a channel overlap
  receive_launch,          // a transfer begins before its receive is launched
  send_launch,             // ... before its send is launched
  send_output,             // ... before its output is ready
  transfer_launch,         // sends and receives cost the host nothing
  blocking_receive,        // the host does not wait for what it receives
  blocking_communication,  // ... nor for collectives
  phase_input,             // a phase does not wait for its input
  first_arrival,           // a joint collective begins when its first member is ready
  collective_launch,       // joint collectives cost the host nothing
  collective_compute,      // ... do not wait for what was computed
  collective_order,        // ... do not wait for the one before on comm:dp
  collective_host_waits,   // the host never waits for one that says so
  awaited,                 // a phase does not wait for the token that it awaits
  awaiting_host,           // ... and awaits it as if it were launched at 0
  operation_lead,          // an operation's wire is free for it when the one before has ended
  operation_trail,         // ... and for the next when it has ended
  joint_lead,              // a joint collective's lead takes no time
  carried,                 // comm:dp is free at 0
  bound,                   // a step ends with its last end, whatever its bound
  last,                    // how many there are
};
std::string_view name(Mutation mutation);

/// Errors  no end after 10,000 rounds: ContractError
StepTimes evaluate_reference(const PricedProgram& priced, Mutation mutation = Mutation::none);

}  // namespace orrery::models
