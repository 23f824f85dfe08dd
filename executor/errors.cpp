#include "executor/errors.hpp"

#include <algorithm>

namespace orrery::executor {

namespace {

struct ExitMeaning {
  Exit code;
  std::string_view words;
};
constexpr ExitMeaning meanings[] = {
    {Exit::done, "done"},
    {Exit::wrong_input, "the input is wrong"},
    {Exit::our_fault, "internal error"},
    {Exit::invalid_program, "starting again does not help"},
    {Exit::peer_failed, "a peer failed: start again from the checkpoint"},
    {Exit::local_failure, "this machine failed: exclude it"},
    {Exit::output_failed, "a file cannot be written or read"},
    {Exit::requeue, "preempted: queue the job again"},
    {Exit::deadline, "the deadline has passed"},
    {Exit::interrupted, "interrupted"},
    {Exit::terminated, "terminated without a checkpoint"}};

}  // namespace

std::string_view meaning(Exit code) {
  const auto* const found = std::find_if(std::begin(meanings), std::end(meanings),
                                         [&](const auto& each) { return each.code == code; });
  return found == std::end(meanings) ? "unknown" : found->words;
}

}  // namespace orrery::executor
