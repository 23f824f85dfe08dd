#include "tests/executor/cuts.hpp"

#include <catch2/catch.hpp>

namespace orrery::executor {

using models::Model;
using models::Plan;
using models::Recompute;
using models::Zero;

const Outcome& reference(const Cut& cut, Arithmetic arithmetic) {
  static std::map<std::string, Outcome> known;
  const std::string key = cut.model.name + std::to_string(cut.model.layers.size()) + " " +
                          std::to_string(cut.plan.batch.global) + " " +
                          std::to_string(static_cast<int>(arithmetic)) +
                          std::to_string(static_cast<int>(cut.plan.formats.precision));
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  Plan whole = small_plan(cut.plan.batch.global);
  whole.formats.precision = cut.plan.formats.precision;
  whole.batch.micro = whole.batch.global;
  return known[key] =
             run({.model = cut.model, .plan = whole, .arithmetic = arithmetic, .steps = 3});
}

namespace {

using models::ContextForm;

/// Ranks that share sequences, in every form.
void add_context(std::vector<Cut>& all) {
  const auto add = [&](std::string name, const Model& model, auto change) {
    all.push_back(cut(std::move(name), model, change));
  };
  for (const Model& model : {small_gpt(), small_llama()}) {
    for (const auto form : {ContextForm::all_gather, ContextForm::contiguous, ContextForm::ring,
                            ContextForm::ulysses}) {
      const std::string of = std::string{word_of(models::context_form_words, form)} + " of 2 ranks";
      add(of + " of " + model.name, model, [&](Plan& p) {
        p.context = 2;
        p.context_exchange.form = form;
        p.batch.micro = 2;
      });
      add(of + ", data, tensor, sequence, ZeRO-3 of " + model.name, model, [&](Plan& p) {
        p.context = p.data = p.tensor = 2;
        p.context_exchange.form = form;
        p.sequence_parallel = true;
        p.sharding.zero = Zero::three;
      });
      add(of + ", 2 stages, all recomputed of " + model.name, model, [&](Plan& p) {
        p.context = p.pipeline = 2;
        p.context_exchange.form = form;
        p.recompute.kind = Recompute::full;
      });
    }
    for (const auto form : {ContextForm::all_gather, ContextForm::ring, ContextForm::ulysses}) {
      add(std::string{word_of(models::context_form_words, form)} +
              " of 4 ranks, attention recomputed of " + model.name,
          model, [&](Plan& p) {
            p.context = 4;
            p.context_exchange.form = form;
            p.recompute.kind = Recompute::selective;
            p.sharding.zero = Zero::one;
            p.sharding.bucket = Bytes{1};
          });
    }
    add("groups of 2 in a ring of " + model.name, model, [](Plan& p) {
      p.context = 4;
      p.context_exchange.form = ContextForm::hierarchical;
      p.context_exchange.heads = 2;
      p.batch.micro = 2;
      p.tensor = 2;
    });
  }
}

}  // namespace

std::vector<Cut> cuts() {
  std::vector<Cut> all;
  const auto add = [&](std::string name, const Model& model, auto change) {
    all.push_back(cut(std::move(name), model, change));
  };
  for (const Model& model : {small_gpt(), small_llama()}) {
    const std::string of = " of " + model.name;
    add("accumulation" + of, model, [](Plan&) {});
    add("data in buckets" + of, model, [](Plan& p) {
      p.data = 2;
      p.sharding.bucket = Bytes{1};
    });
    add("data behind backward" + of, model, [](Plan& p) {
      p.data = 4;
      p.overlap.gradients = false;
    });
    add("ZeRO-1" + of, model, [](Plan& p) {
      p.data = 2;
      p.sharding.zero = Zero::one;
      p.sharding.bucket = Bytes{1};
    });
    for (const Zero zero : {Zero::two, Zero::three}) {
      const std::string stage = zero == Zero::two ? "ZeRO-2" : "ZeRO-3";
      add(stage + of, model, [&](Plan& p) {
        p.data = 2;
        p.sharding.zero = zero;
        p.sharding.bucket = Bytes{1};
      });
      add(stage + " behind backward" + of, model, [&](Plan& p) {
        p.data = 2;
        p.sharding.zero = zero;
        p.overlap.gradients = false;
      });
      add(stage + ", data 4, sequence, recomputation" + of, model, [&](Plan& p) {
        p.tensor = 2;
        p.data = 4;
        p.sharding.zero = zero;
        p.sequence_parallel = true;
        p.recompute.kind = Recompute::full;
      });
    }
    for (const Zero zero : {Zero::one, Zero::two, Zero::three}) {
      const std::string stage = "ZeRO-" + std::to_string(static_cast<int>(zero));
      add(stage + ", copies of shards" + of, model, [&](Plan& p) {
        p.data = 4;
        p.sharding.ranks = 2;
        p.sharding.zero = zero;
        p.sharding.bucket = Bytes{1};
      });
      add(stage + ", copies of shards, tensor, pipeline" + of, model, [&](Plan& p) {
        p.tensor = p.pipeline = 2;
        p.data = 2;
        p.sharding.ranks = zero == Zero::one ? 0 : 2;
        p.sharding.zero = zero;
        p.sequence_parallel = true;
      });
    }
    for (const Zero zero : {Zero::one, Zero::two, Zero::three}) {
      add("ZeRO-" + std::to_string(static_cast<int>(zero)) + ", the host updates" + of, model,
          [&](Plan& p) {
            p.data = p.tensor = 2;
            p.sharding.zero = zero;
            p.offload.state = models::Offload::optimizer;
          });
    }
    add("ZeRO-3, the host keeps weights" + of, model, [&](Plan& p) {
      p.data = p.pipeline = 2;
      p.sharding.zero = Zero::three;
      p.offload.state = models::Offload::parameters;
    });
    for (const models::Recompute repeats : {models::Recompute::none, models::Recompute::full}) {
      const bool all = repeats == models::Recompute::full;
      add(std::string{"the host keeps activations, "} + (all ? "and repeated" : "of one layer") +
              of,
          model, [&](Plan& p) {
            p.tensor = p.data = 2;
            p.offload.layers = all ? 2 : 1;
            p.recompute.kind = repeats;
            p.sequence_parallel = all;
          });
    }
    for (const bool reshard : {true, false}) {
      add("ZeRO-3 on 2 stages, units kept or not" + of, model, [&](Plan& p) {
        p.pipeline = p.data = 2;
        p.sharding.zero = Zero::three;
        p.sharding.reshard = reshard;
        p.sharding.prefetch = 2;
      });
    }
    add("tensor 2" + of, model, [](Plan& p) { p.tensor = 2; });
    add("tensor 4" + of, model, [](Plan& p) { p.tensor = 4; });
    add("sequence" + of, model, [](Plan& p) {
      p.tensor = 2;
      p.sequence_parallel = true;
      p.batch.micro = 2;
    });
    add("recompute attention" + of, model,
        [](Plan& p) { p.recompute.kind = Recompute::selective; });
    add("recompute all, sequence" + of, model, [](Plan& p) {
      p.tensor = 2;
      p.sequence_parallel = true;
      p.recompute.kind = Recompute::full;
    });
    add("1f1b" + of, model, [](Plan& p) { p.pipeline = 2; });
    add("tensor, data and pipeline" + of, model, [](Plan& p) {
      p.tensor = p.data = p.pipeline = 2;
      p.sharding.zero = Zero::one;
      p.sequence_parallel = true;
      p.recompute.kind = Recompute::selective;
    });
  }
  add_context(all);
  const Model four = small_gpt(4);
  for (const char* schedule : {"naive", "gpipe", "1f1b"}) {
    add(std::string{schedule} + " on 4 stages", four, [&](Plan& p) {
      p.pipeline = 4;
      p.stages.schedule = schedule;
    });
  }
  for (const char* schedule : {"zb-h1", "zb-h2", "zb-1p", "zb-2p"}) {
    add(std::string{schedule} + " on 2 stages", four, [&](Plan& p) {
      p.pipeline = 2;
      p.stages.schedule = schedule;
    });
  }
  for (const Model& model : {small_gpt(4), small_llama(4)}) {
    add("deferred gradients of the head, tensor, data, ZeRO-1, of " + model.name, model,
        [](Plan& p) {
          p.pipeline = p.tensor = p.data = 2;
          p.sharding.zero = Zero::one;
          p.sharding.bucket = Bytes{1};
          p.stages.deferred_head_gradients = 1;
        });
    for (const char* schedule : {"zb-v", "dualpipev"}) {
      add(std::string{schedule} + " of " + model.name, model, [&](Plan& p) {
        p.pipeline = p.stages.virtual_stages = 2;
        p.stages.schedule = schedule;
      });
    }
    add("dualpipe of " + model.name, model, [](Plan& p) {
      p.pipeline = 2;
      p.stages.schedule = "dualpipe";
    });
    add("zb-h1, tensor, data, sequence, recomputation of " + model.name, model, [](Plan& p) {
      p.pipeline = p.tensor = p.data = 2;
      p.sequence_parallel = true;
      p.recompute.kind = Recompute::full;
      p.sharding.zero = Zero::one;
      p.sharding.bucket = Bytes{1};
      p.stages.schedule = "zb-h1";
    });
  }
  add("dualpipe, data, ZeRO-1", small_llama(4), [](Plan& p) {
    p.pipeline = p.data = 2;
    p.batch.global = 8;
    p.sharding.zero = Zero::one;
    p.sharding.bucket = Bytes{1};
    p.stages.schedule = "dualpipe";
  });
  add("a schedule from a file", four, [](Plan& p) {
    p.pipeline = 2;
    p.stages.virtual_stages = 2;
    p.stages.schedule = "given.csv";
    // Chunks 0 and 3 on rank 1; some backwards whole.
    p.stages.table = models::parse_schedule(
        "1F0,1F1,2F0,2F1,2I0,1F2,2B1,1I0,2W0,1W0,1F3,2F2,2F3,2B2,1B1,2I3,1B2,1B3,2W3\n"
        "0F0,0F1,0F2,3F0,3B0,0F3,3F1,3I1,0I0,0W0,3W1,3F2,3B2,0B1,3F3,3I3,0B2,0B3,3W3\n",
        "given.csv");
  });
  add("interleaved", four, [](Plan& p) {
    p.pipeline = p.stages.virtual_stages = 2;
    p.stages.schedule = "interleaved-1f1b";
  });
  add("interleaved, data, ZeRO-1", small_llama(4), [](Plan& p) {
    p.pipeline = p.stages.virtual_stages = p.data = 2;
    p.stages.schedule = "interleaved-1f1b";
    p.sharding.zero = Zero::one;
    p.sharding.bucket = Bytes{1};
  });
  add("interleaved, copies of shards, ZeRO-3", four, [](Plan& p) {
    p.pipeline = p.stages.virtual_stages = 2;
    p.data = 4;
    p.sharding.ranks = 2;
    p.batch.global = 8;
    p.stages.schedule = "interleaved-1f1b";
    p.sharding.zero = Zero::three;
  });
  add("uneven stages", four, [](Plan& p) {
    p.pipeline = 2;
    p.stages.layers = {3, 1};
  });
  add("tensor 2, data 4", small_llama(), [](Plan& p) {
    p.tensor = 2;
    p.data = 4;
    p.sharding.zero = Zero::one;
  });
  return all;
}

void check_bits(const Outcome& many, const Outcome& reference) {
  CHECK(same_bits(many.parameters, reference.parameters));
  CHECK(same_bits(many.first, reference.first));
  CHECK(same_bits(many.second, reference.second));
  for (std::size_t step = 0; step < 3; ++step) {
    CHECK(many.steps[step].ring_loss == reference.steps[step].ring_loss);
    CHECK(many.steps[step].ring_norm == reference.steps[step].ring_norm);
  }
}

void check_in_ring(const std::vector<Cut>& cuts) {
  for (const Cut& each : cuts) {
    INFO(each.name);
    const Outcome& one = reference(each, Arithmetic::ring);
    const Outcome many =
        run({.model = each.model, .plan = each.plan, .arithmetic = Arithmetic::ring, .steps = 3});
    CHECK(same_bits(many.gradients, one.gradients));
    check_bits(many, one);
  }
}

void check_in_fp64(const std::vector<Cut>& cuts) {
  for (const Cut& each : cuts) {
    INFO(each.name);
    const Outcome& one = reference(each, Arithmetic::real);
    const Outcome many = run({.model = each.model, .plan = each.plan, .steps = 3});
    CHECK(distance(many.gradients, one.gradients) < 1e-12);
    CHECK(distance(many.parameters, one.parameters) < 1e-9);
    for (std::size_t step = 0; step < 3; ++step) {
      CHECK(many.steps[step].loss == Approx(one.steps[step].loss).epsilon(1e-11));
      CHECK(many.steps[step].gradient_norm == Approx(one.steps[step].gradient_norm).epsilon(1e-9));
    }
  }
}

void check_in_fp32(const std::vector<Cut>& cuts) {
  for (Cut each : cuts) {
    each.plan.formats.precision = models::Precision::fp32;
    INFO(each.name);
    const Outcome& one = reference(each, Arithmetic::real);
    const Outcome many = run({.model = each.model, .plan = each.plan, .steps = 1});
    CHECK(distance(many.gradients, one.gradients) < 1e-5);
    CHECK(many.steps[0].loss == Approx(one.steps[0].loss).epsilon(1e-6));
  }
}

}  // namespace orrery::executor
