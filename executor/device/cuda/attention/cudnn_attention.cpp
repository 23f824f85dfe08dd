#include "executor/device/cuda/attention/cudnn_attention.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "executor/device/cuda/attention/attention_tensors.hpp"
#include "executor/device/cuda/attention/cudnn_graph.hpp"
#include "executor/errors.hpp"

/// Handle of the loaded library, defined where cuDNN's front end looks for it.
void* cudnn_frontend::cudnn_dlhandle = nullptr;

namespace orrery::executor::cuda {

namespace {

namespace graph = cudnn_frontend::graph;
using cudnn_frontend::error_t;
using models::Operation;
using models::OpKind;

/// Memory of each operand, by its id in the graph.
using Places = std::unordered_map<std::int64_t, void*>;

Places places_of(const Kernel& kernel) {
  const AttentionTensors tensors{kernel.operation->attention};
  Places places;
  const auto put = [&](Operand operand, const View& view, const HeadTensor& tensor) {
    places[static_cast<std::int64_t>(operand)] = view.data + tensor.first * (bits(view.dtype) / 8);
  };
  const View& qkv = kernel.reads[0];
  put(Operand::query, qkv, tensors.query);
  put(Operand::key, qkv, tensors.key);
  put(Operand::value, qkv, tensors.value);
  if (kernel.operation->kind == OpKind::attention) {
    put(Operand::context, kernel.writes[0], tensors.context);
    put(Operand::log_sum, kernel.writes[1], tensors.log_sum);
    return places;
  }
  put(Operand::context, kernel.reads[1], tensors.context);
  put(Operand::log_sum, kernel.reads[2], tensors.log_sum);
  put(Operand::d_context, kernel.reads[3], tensors.context);
  put(Operand::d_query, kernel.writes[0], tensors.query);
  put(Operand::d_key, kernel.writes[0], tensors.key);
  put(Operand::d_value, kernel.writes[0], tensors.value);
  return places;
}

/// Validates and lowers a graph, everything before the choice of kernels. `handle` is null for a
/// GPU that is only described to cuDNN.
error_t lower(graph::Graph& graph, cudnnHandle_t handle) {
  if (error_t status = graph.validate(); status.is_bad()) return status;
  return graph.build_operation_graph(handle);
}

/// Compiles the plan that cuDNN's heuristics rank best of those that compile; with sums in one
/// order, only plans that need no more than `ordered_workspace`.
error_t compile(graph::Graph& graph, Sums sums) {
  using cudnn_frontend::HeurMode_t;
  if (error_t status = graph.create_execution_plans({HeurMode_t::A, HeurMode_t::FALLBACK});
      status.is_bad()) {
    return status;
  }
  if (sums == Sums::in_one_order) {
    graph.deselect_workspace_greater_than(ordered_workspace.count());
  }
  if (error_t status = graph.check_support(); status.is_bad()) return status;
  return graph.build_plans();
}

class CudnnPlan final : public AttentionPlan {
 public:
  /// graph  compiled; from then on it holds addresses inside itself and must not move
  CudnnPlan(cudnnHandle_t handle, std::unique_ptr<graph::Graph> graph, std::string disorder)
      : handle_{handle},
        graph_{std::move(graph)},
        workspace_{graph_->get_workspace_size()},
        disorder_{std::move(disorder)} {}

  Bytes workspace() const override { return workspace_; }
  std::string disorder() const override { return disorder_; }

  void run(const Kernel& kernel, Stream stream, std::byte* workspace) override {
    const cudnnStatus_t status = cudnn_frontend::detail::set_stream(handle_, stream);
    if (status != CUDNN_STATUS_SUCCESS) {
      fail(cudnn_frontend::detail::get_error_string(status));
    }
    Places places = places_of(kernel);
    error_t error = graph_->execute(handle_, places, workspace);
    if (error.is_bad()) fail(error.get_message());
  }

 private:
  [[noreturn]] static void fail(const std::string& why) {
    throw RunFailure{Exit::local_failure, "GPU, attention by cuDNN: " + why};
  }

  cudnnHandle_t handle_;
  std::unique_ptr<graph::Graph> graph_;
  Bytes workspace_;
  std::string disorder_;
};

class Cudnn final : public AttentionLibrary {
 public:
  Cudnn(cudnnHandle_t handle, const CudnnOptions& options)
      : handle_{handle}, capability_{options.capability}, sums_{options.sums} {}
  ~Cudnn() override { cudnn_frontend::detail::destroy_handle(handle_); }
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  std::string name() const override {
    const std::size_t version = cudnn_frontend::detail::get_backend_version();
    return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }

  /// Only for backward does cuDNN say that its sums depend on the run.
  PlannedAttention plan(const Operation& op) override {
    if (op.kind == OpKind::attention) return plan(op, Sums::in_any_order, {});
    if (sums_ == SumOrder::any)
      return plan(op, Sums::in_any_order, "the fastest kernel was requested");
    PlannedAttention ordered = plan(op, Sums::in_one_order, {});
    if (ordered.plan != nullptr) return ordered;
    return plan(op, Sums::in_any_order,
                fmt::format("no kernel with a fixed order of sums within {} B of workspace: {}",
                            ordered_workspace.count(), ordered.refusal));
  }

 private:
  PlannedAttention plan(const Operation& op, Sums sums, std::string disorder) {
    try {
      auto graph = std::make_unique<graph::Graph>(attention_graph(op, sums, capability_));
      error_t status = lower(*graph, handle_);
      if (status.is_good()) status = compile(*graph, sums);
      if (status.is_bad()) return {nullptr, status.get_message()};
      return {std::make_unique<CudnnPlan>(handle_, std::move(graph), std::move(disorder)), {}};
    } catch (const std::exception& missing) {  // from the front end, if it cannot load a library
      return {nullptr, missing.what()};
    }
  }

  cudnnHandle_t handle_;
  int capability_;
  SumOrder sums_;
};

/// Opens a library; returns null, with the reason in `why`, if it cannot.
void* opened(const char* library, std::string& why) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) why = dlerror();
  return handle;
}

/// Loads cuDNN; returns why it cannot, or empty. The front end uses CUDA's runtime as a shared
/// library, of the version that this was compiled for; ours is linked in, and both use one context.
std::string load(const char* library) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock{one_at_a_time};
  const char* variable = "CUDNN_FRONTEND_CUDART_LIB_NAME";  // the front end's
  setenv(variable, fmt::format("libcudart.so.{}", CUDART_VERSION / 1000).c_str(), 0);
  std::string why;
  if (opened(std::getenv(variable), why) == nullptr) {
    return why +
           " (cuDNN's front end needs CUDA's runtime as a shared library: put its folder on "
           "LD_LIBRARY_PATH)";
  }
  if (void* const found = opened(library, why)) cudnn_frontend::cudnn_dlhandle = found;
  return why;
}

}  // namespace

OpenedLibrary open_cudnn(const CudnnOptions& options) {
  if (std::string why = load(options.library); !why.empty()) return {nullptr, why};
  try {
    cudnnHandle_t handle = nullptr;
    const cudnnStatus_t status = cudnn_frontend::detail::create_handle(&handle);
    if (status == CUDNN_STATUS_SUCCESS) {
      return {std::make_unique<Cudnn>(handle, options), {}};
    }
    return {nullptr, fmt::format("{} does not start: {}", options.library,
                                 cudnn_frontend::detail::get_error_string(status))};
  } catch (const std::exception& missing) {
    return {nullptr, missing.what()};
  }
}

std::string cudnn_graph_refusal(const Operation& op, const std::string& gpu,
                                const CudnnOptions& options) {
  if (std::string why = load(options.library); !why.empty()) return why;
  const auto properties = std::make_shared<cudnn_frontend::DeviceProperties>();
  if (error_t status = properties->deserialize({gpu.begin(), gpu.end()}); status.is_bad()) {
    return status.get_message();
  }
  graph::Graph graph = attention_graph(op, Sums::in_one_order, options.capability);
  graph.set_device_properties(properties);
  return lower(graph, nullptr).get_message();
}

}  // namespace orrery::executor::cuda
