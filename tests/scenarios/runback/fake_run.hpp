#pragma once
// Traces of ranks as PyTorch's profiler would write them, of a job whose faults are stated.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace orrery::scenarios {

/// One rank of a fake job, in microseconds.
struct FakeRank {
  double gemm = 200, attention = 80, elementwise = 50;  // each kernel
  double launch = 4;                                    // host time of each launch
  double loading = 0;                                   // host in the data loader, each step
  double transfer = 100;                                // all-reduce of its group, without waiting
  std::vector<int> group{};                             // ranks of it; empty: all
};

struct FakeJob {
  std::vector<FakeRank> ranks;
  int steps = 5, layers = 8;
  double first_step = 0;  // additional host time in the first step
  std::string gpu = "NVIDIA H100 80GB HBM3";

  /// The traces, by rank: a step loads a batch, then each layer runs a GEMM, an attention, an
  /// elementwise kernel and an all-reduce that the next layer waits for; the optimizer ends it.
  std::vector<std::string> traces() const;
};

namespace fake {

struct Writer {
  std::string events;
  int correlation = 0;
  double host = 1000, stream = 0;  // when each is free

  void put(const std::string& event) { events += (events.empty() ? "" : ",\n") + event; }
  void annotation(const std::string& name, double begin, double end, const char* cat) {
    put(fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":1,"ts":{:.3f},"dur":{:.3f},)"
                    R"("args":{{}}}})",
                    cat, name, begin, end - begin));
  }
  /// Launches at the host's time; returns when the kernel could begin.
  double launched(double cost) {
    ++correlation;
    put(fmt::format(R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,)"
                    R"("ts":{:.3f},"dur":1.0,"args":{{"correlation":{}}}}})",
                    host, correlation));
    const double ready = std::max(stream, host + 2);
    host += cost;
    return ready;
  }
  void ran(const std::string& cat, const std::string& name, double begin, double duration,
           const std::string& more = "") {
    put(fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":0,"tid":7,"ts":{:.3f},"dur":{:.3f},)"
                    R"("args":{{"device":0,"stream":7,"correlation":{}{}}}}})",
                    cat, name, begin, duration, correlation, more));
    stream = begin + duration;
  }
  void kernel(const std::string& name, double duration, double cost) {
    const double begin = launched(cost);
    ran("kernel", name, begin, duration);
  }
};

inline std::string list_of(const std::vector<int>& ranks) {
  return fmt::format("[{}]", fmt::join(ranks, ", "));
}

}  // namespace fake

inline std::vector<std::string> FakeJob::traces() const {
  std::vector<fake::Writer> all(ranks.size());
  std::vector<int> everyone;
  for (std::size_t r = 0; r < ranks.size(); ++r) everyone.push_back(static_cast<int>(r));
  for (int step = 0; step < steps; ++step) {
    std::vector<double> begins;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      fake::Writer& own = all[r];
      begins.push_back(own.host);
      if (ranks[r].loading > 0) {
        own.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", own.host,
                       own.host + ranks[r].loading, "user_annotation");
        own.host += ranks[r].loading;
      }
      if (step == 0) own.host += first_step;
    }
    for (int layer = 0; layer < layers; ++layer) {
      std::vector<double> ready(ranks.size());
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        fake::Writer& own = all[r];
        const double op = own.host;
        own.kernel("nvjet_tst_192x192_64x3_2x1_v_bz_coopB_NNN", ranks[r].gemm, ranks[r].launch);
        own.put(fmt::format(
            R"({{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":{:.3f},"dur":1.5,)"
            R"("args":{{"Input Dims":[[4096,1024],[1024,2048]],"Input type":["c10::BFloat16"]}}}})",
            op - 0.2));
        own.kernel("void flash_fwd_kernel<Flash_fwd_kernel_traits<128>>", ranks[r].attention,
                   ranks[r].launch);
        own.kernel("void at::native::vectorized_elementwise_kernel<4>", ranks[r].elementwise,
                   ranks[r].launch);
        ready[r] = own.launched(ranks[r].launch);
      }
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const std::vector<int>& group = ranks[r].group.empty() ? everyone : ranks[r].group;
        double last = 0, transfer = 0;
        for (const int member : group) {
          last = std::max(last, ready[static_cast<std::size_t>(member)]);
          transfer = std::max(transfer, ranks[static_cast<std::size_t>(member)].transfer);
        }
        all[r].ran("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)",
                   ready[r], last + transfer - ready[r],
                   fmt::format(R"(,"Collective name":"allreduce","In msg nelems":1048576,)"
                               R"("Out msg nelems":1048576,"Group size":{},"dtype":"BFloat16",)"
                               R"("Process Group Name":"1","Process Group Description":"tp",)"
                               R"("Process Group Ranks":"{}")",
                               group.size(), fake::list_of(group)));
      }
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      fake::Writer& own = all[r];
      const double begin = own.host - 0.5;
      own.kernel("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<Adam>", 30,
                 ranks[r].launch);
      own.annotation("Optimizer.step#AdamW.step", begin, own.host, "user_annotation");
      // The loss is printed: the host waits for the GPU.
      own.host = std::max(own.host, own.stream) + 10;
      own.annotation(fmt::format("ProfilerStep#{}", step + 3), begins[r], own.host,
                     "user_annotation");
      own.host += 1;
    }
  }
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    texts.push_back(fmt::format(
        R"({{"schemaVersion":1,"deviceProperties":[{{"id":0,"name":"{}","totalGlobalMem":)"
        R"(85028634624}}],"distributedInfo":{{"backend":"nccl","rank":{},"world_size":{}}},)"
        R"("traceEvents":[{}],"traceName":"t"}})",
        gpu, r, ranks.size(), all[r].events));
  }
  return texts;
}

}  // namespace orrery::scenarios
