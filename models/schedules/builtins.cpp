// Every strategy that a plan can name, in the open. No macros, no static initialisers.

#include "models/schedules/schedule.hpp"

namespace orrery::models {

Registry<Schedule> builtin_schedules() {
  Registry<Schedule> known{"pipeline schedule"};
  known.add("naive", naive);
  known.add("gpipe", gpipe);
  known.add("1f1b", one_f_one_b);
  known.add("interleaved-1f1b", interleaved);
  return known;
}

}  // namespace orrery::models
