// Commands that are asked to end: their exit code says which signal it was.
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

// Each of these takes many seconds; a signal after one finds it at work.
TEST_CASE("The exit code of a search or fit says whether Ctrl-C or SIGTERM ended it", "[heavy]") {
  const std::string longest[] = {
      "plan --model deepseek-v3 --cluster 'dgx-h100 x 1024' --global-batch 16384 --seq-len 4096",
      "buy --model gpt3-175b --tokens 300B",
      "fit software --stack megatron-lm --from " ORRERY_SOURCE "/scenarios/validation/runs.csv"};
  const Scratch scratch;
  for (const std::string& arguments : longest) {
    for (const auto& [signal, code] : {std::pair{"TERM", 143}, std::pair{"INT", 130}}) {
      INFO(arguments << " ended by " << signal);
      const std::string line = std::string{"timeout --preserve-status -s "} + signal +
                               (slow_build ? " 10 " : " 0.5 ") + ORRERY_COMMAND + " " + arguments +
                               " >" + scratch.path("out") + " 2>" + scratch.path("error");
      const int status = std::system(line.c_str());
      CHECK((WIFEXITED(status) ? WEXITSTATUS(status) : -1) == code);
    }
  }
}

}  // namespace orrery::scenarios
