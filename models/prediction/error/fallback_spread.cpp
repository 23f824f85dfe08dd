#include "models/prediction/error/fallback_spread.hpp"

#include <algorithm>
#include <string>

#include "hardware/gpu/fallback.hpp"
#include "models/pricing/price.hpp"
#include "models/program/counts.hpp"

namespace orrery::models {

namespace {

double gemm_spread(const hardware::Gpu& gpu, DType type) {
  const auto curve = gpu.gemm.find(type);
  return curve == gpu.gemm.end() ? 0 : curve->second.origin.spread;
}

/// Of a kernel of the GPU; 0 for anything else.
double spread_of(const Operation& op, const hardware::Gpu& gpu, std::string_view kernel) {
  if (op.queue != Lane::compute || op.kind == OpKind::copy) return 0;
  switch (op.kind) {
    case OpKind::collective:
      return 0;
    case OpKind::gemm:
    case OpKind::batched_gemm:
    case OpKind::grouped_gemm:
      return gemm_spread(gpu, op.dtype);
    case OpKind::attention:
    case OpKind::attention_backward: {
      const auto curve = gpu.attention.find(attention_curve(kernel, op.dtype));
      return curve == gpu.attention.end() ? gemm_spread(gpu, op.dtype)
                                          : curve->second.origin.spread;
    }
    default:
      return gpu.memory_bound.origin.spread;
  }
}

}  // namespace

double spread_of_fallbacks(const Question& question, const Prediction& prediction) {
  return spread_of_fallbacks(question, prediction, prediction.priced.counts[prediction.slowest]);
}

double spread_of_fallbacks(const Question& question, const Prediction& prediction,
                           const TargetCounts& counts) {
  const hardware::Gpu& gpu = question.cluster.gpu();
  const Program& program = *prediction.program;
  const std::string kernel{
      with_attention(question.software, program.attention).attention(gpu.generation.name)};
  double sum = 0;
  for (std::size_t p = 0; p < counts.phases.size(); ++p) {
    for (const Invocation& run : program.phases[p].invocations) {
      const std::vector<Operation>& operations = program.blocks[run.block].operations;
      for (std::size_t i = 0; i < operations.size(); ++i) {
        const double times = static_cast<double>(run.count * counts.phases[p]);
        sum += spread_of(operations[i], gpu, kernel) * times *
               seconds(prediction.priced.blocks[run.block][i].duration);
      }
    }
  }
  return std::min(sum / seconds(prediction.step), hardware::unknown_spread);
}

}  // namespace orrery::models
