#pragma once
// What each file of orrery._core adds to the module.

#include <pybind11/pybind11.h>

namespace orrery::scenarios {

void bind_questions(pybind11::module_& module);
void bind_execution(pybind11::module_& module);
void bind_calibration(pybind11::module_& module);

}  // namespace orrery::scenarios
