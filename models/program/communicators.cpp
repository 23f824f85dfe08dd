#include "models/program/mesh.hpp"

namespace orrery::models {

namespace {

/// The axes of `set` that have several ranks.
AxisSet used(AxisSet set, const Mesh& mesh) {
  AxisSet found;
  for (const AxisRow& each : axes) {
    if (set.has(each.axis) && mesh.degree(each.axis) > 1) found = found | each.axis;
  }
  return found;
}

}  // namespace

std::vector<Communicator> communicators_of(const Mesh& mesh) {
  using Role = CommunicatorRole;
  const AxisSet tensor = MeshAxis::tensor, pipe = MeshAxis::pipeline;
  const AxisSet data = used(context_axes, mesh) | MeshAxis::data;
  const std::int64_t last = mesh.degree(MeshAxis::pipeline) - 1;
  std::vector<Communicator> groups{
      {"tp", Role::tensor, tensor, {}, Lane::tensor, TimeClass::tp},
      {"dp", Role::data, data, {}, Lane::data, TimeClass::dp},
      {"pp_f", Role::pipe_forward, pipe, {}, Lane::data, TimeClass::pp},
      {"pp_b", Role::pipe_backward, pipe, {}, Lane::data, TimeClass::pp},
      {"model", Role::model, tensor | pipe},
      {"world", Role::world, tensor | data | used(MeshAxis::replica, mesh) | pipe},
      {"tie", Role::tie, pipe, {0, last}}};
  const auto add = [&](const char* name, Role role, MeshAxis axis, Lane lane) {
    if (mesh.degree(axis) == 1) return;
    groups.push_back({name, role, axis, {}, lane, row_of(axis).time_class});
  };
  add("cp", Role::context, MeshAxis::context, Lane::context);
  add("cph", Role::context_heads, MeshAxis::context_heads, Lane::context);
  add("replica", Role::replica, MeshAxis::replica, Lane::data);
  return groups;
}

}  // namespace orrery::models
