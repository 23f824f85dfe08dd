// The fit of fused attention.
#include "calibrate/fit/attention_curve.hpp"

#include <catch2/catch.hpp>

namespace orrery::calibrate {

// Times made from a curve of 0.7 at 128, 0.5 at 64, half of it at 400 tokens, backward at 0.8 of
// forward: the fit finds them again.
TEST_CASE("A curve of attention is found again from times made with it") {
  const FlopRate peak = 989_TFLOPS;
  hardware::AttentionCurve curve;
  curve.share_64 = 0.5;
  curve.share_128 = 0.7;
  curve.half_length = 400;
  curve.backward_ratio = 0.8;
  std::vector<AttentionPoint> points;
  for (const int head : {64, 128}) {
    for (std::int64_t seq = 512; seq <= 16384; seq *= 2) {
      for (const auto pass : {hardware::Pass::forward, hardware::Pass::backward}) {
        const hardware::AttentionCall call{
            .work = Flops{seq * seq * head * 256}, .seq = seq, .head_dim = head, .pass = pass};
        points.push_back({call, time_of(curve, peak, call)});
      }
    }
  }
  const AttentionFit fit = fit_attention(points, peak);
  CHECK(fit.curve.share_64 == Approx(0.5).epsilon(0.02));
  CHECK(fit.curve.share_128 == Approx(0.7).epsilon(0.02));
  CHECK(fit.curve.half_length == Approx(400).epsilon(0.05));
  CHECK(fit.curve.backward_ratio == Approx(0.8).epsilon(0.02));
  CHECK(fit.curve.causal_penalty == 0);  // nothing here tells one
  CHECK(fit.median_error_pct < 1);
  CHECK(*fit.leave_out_error_pct < 1);
}

}  // namespace orrery::calibrate
