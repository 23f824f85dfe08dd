#pragma once
// The functions that add each source file's bindings to the module orrery._core.

#include <pybind11/pybind11.h>

namespace orrery::scenarios {

void bind_questions(pybind11::module_& module);
void bind_execution(pybind11::module_& module);
void bind_calibration(pybind11::module_& module);
void bind_sweeps(pybind11::module_& module);

}  // namespace orrery::scenarios
