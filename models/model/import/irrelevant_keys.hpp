#pragma once
// Keys of config.json that change neither the number of parameters nor what a training step costs:
// bookkeeping, token ids, dropout, initialisation, epsilons, rotary frequencies, generation,
// router losses, storage of released weights. Any other key that is not read is reported.

#include <string_view>

namespace orrery::models {

bool irrelevant(std::string_view key);

}  // namespace orrery::models
