// Commands that are asked to end: they report what they have, and their exit code says which signal
// it was.
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

// Each of these takes many seconds; a signal after one finds it at work.
TEST_CASE("A search or fit that Ctrl-C or SIGTERM ends prints its results so far", "[heavy]") {
  const std::string longest[] = {
      "plan --model gpt3-175b --cluster 'dgx-h100 x 128' --global-batch 1536 --seq-len 2048",
      "buy --model gpt3-175b --tokens 300B",
      "fit software --stack megatron-lm --from " ORRERY_SOURCE "/scenarios/validation/runs.csv"};
  const Scratch scratch;
  for (const std::string& arguments : longest) {
    for (const auto& [signal, code] : {std::pair{"TERM", 143}, std::pair{"INT", 130}}) {
      INFO(arguments << " ended by " << signal);
      const std::string line = std::string{"timeout --preserve-status -s "} + signal +
                               (slow_build ? " 10 " : " 1 ") + ORRERY_COMMAND + " " + arguments +
                               " >" + scratch.path("out") + " 2>" + scratch.path("error");
      const int status = std::system(line.c_str());
      CHECK((WIFEXITED(status) ? WEXITSTATUS(status) : -1) == code);
      CHECK_FALSE(scratch.read("out").empty());
    }
  }
}

}  // namespace orrery::scenarios
