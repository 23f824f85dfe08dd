#include "executor/layout/sequences.hpp"

#include <atomic>

namespace orrery::executor {

namespace {

using models::MeshAxis;
using models::SequenceCut;

void append(std::vector<std::int64_t>& places, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) places.push_back(first + i);
}

/// The places in the sequence of the i-th of n context ranks.
std::vector<std::int64_t> piece(const models::StepShape& step, std::int64_t i, std::int64_t n) {
  std::vector<std::int64_t> places;
  if (step.cut == SequenceCut::contiguous) {
    append(places, i * step.seq_len / n, step.seq_len / n);
  } else {
    const std::int64_t half = step.seq_len / (2 * n);
    append(places, i * half, half);
    append(places, (2 * n - 1 - i) * half, half);
  }
  return places;
}

void cut_documents(const models::StepShape& step, TokenMap& map) {
  std::vector<std::int64_t> documents = step.documents;
  if (documents.empty()) documents = {step.seq_len};
  for (const std::int64_t length : documents) {
    const std::int64_t begin = map.sequence();
    map.begins.insert(map.begins.end(), static_cast<std::size_t>(length), begin);
    map.ends.insert(map.ends.end(), static_cast<std::size_t>(length), begin + length);
  }
}

}  // namespace

TokenMap token_map(const models::Program& program, std::int64_t rank) {
  const models::Mesh& mesh = program.mesh;
  const std::int64_t pieces = mesh.degree(MeshAxis::context);
  const std::int64_t heads = mesh.degree(MeshAxis::context_heads);
  static std::atomic<std::uint64_t> maps{0};
  TokenMap map;
  map.id = ++maps;
  for (std::int64_t i = 0; i < pieces; ++i) {
    map.attended.push_back(piece(program.step, i, pieces));
  }
  map.index = static_cast<std::size_t>(mesh.coordinate(rank, MeshAxis::context));
  const std::int64_t own = std::ssize(map.own()) / heads;
  const auto first = map.own().begin() + mesh.coordinate(rank, MeshAxis::context_heads) * own;
  map.places.assign(first, first + own);
  cut_documents(program.step, map);
  for (const std::int64_t place : map.places) {
    map.positions.push_back(place - map.begins[static_cast<std::size_t>(place)]);
  }
  return map;
}

}  // namespace orrery::executor
