#pragma once
#include <string>

#include "sim/errors.hpp"

namespace orrery {

/// What an action is refused with.
template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const ContractError& error) {
    return error.what();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace orrery
