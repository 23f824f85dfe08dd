#pragma once
// Matrix products by cuBLASLt: GEMMs of linear layers, products per head of unfused attention, and
// grouped GEMMs of experts, by cuBLAS where it takes all experts in one call. The library's
// heuristic is asked once for each shape; its choice is kept, together with the layouts.
// cuBLAS is column-major, our operands are row-major: [m, n] there is [n, m] here, so c = a b is
// asked for as c' = b' a', with the same bytes.

#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/device/cuda/products/fp8_product.hpp"
#include "executor/device/cuda/products/product_attempts.hpp"
#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

/// Sums are in fp32, in fp64 for fp64; a tf32 product rounds its fp32 operands to tf32.
class Gemms {
 public:
  /// Memory that split-k algorithms may use. All calls of one Products must be on one queue.
  static constexpr Bytes workspace_size{std::int64_t{32} << 20};

  /// workspace  of `workspace_size` on the current GPU, outlives the products
  explicit Gemms(std::byte* workspace);
  ~Gemms();
  Gemms(const Gemms&) = delete;
  Gemms& operator=(const Gemms&) = delete;

  /// OpKind::gemm without the gradient of a bias (writes[1]): c = op(a) op(b) [+ bias], or c += ...
  /// Columns after c's own keep what they have (row_steps.hpp).
  /// Returns false if there is a bias that the caller must add with a kernel of its own.
  /// factors  on the GPU: of the product, and of what is in c before; null: 1, and 1 or 0
  bool gemm(const Kernel& kernel, const float* factors, Stream stream);
  /// The same for fp8 operands. All sums are kept in fp32: what cuBLASLt calls fast accumulation is
  /// off.
  bool gemm(const Kernel& kernel, const Fp8Operands& operands, Stream stream);
  /// OpKind::batched_gemm. Gradients of a group's query heads are added to their key-value head one
  /// after another, each sum rounded to the format that it is stored in.
  void per_head(const Kernel& kernel, Stream stream);

  /// OpKind::grouped_gemm without its biases. The addresses of the matrices are written to the GPU
  /// when a set of operands first comes. With factors, as above, experts run one after another.
  void grouped(const Kernel& kernel, const float* factors, Stream stream);
  /// One line for each set of operands: "grouped GEMM of 8 bf16 to bf16, n 14336 k 4096: one call
  /// of cuBLAS".
  std::vector<std::string> grouped_choices() const;

  /// The algorithm chosen for one product, in cuBLASLt's own numbers; a calibration notes it.
  struct Choice {
    models::GemmShape shape;
    models::DType from{}, to{};  // of the operands, of the result
    int algorithm = 0, tile = 0, stages = 0, split_k = 0;
    float waves = 0;  // of thread blocks over the whole GPU
    Bytes workspace{};
  };
  std::vector<Choice> choices() const;

 private:
  /// A row-major matrix: elements from a row to the next, and from a product of the batch to the
  /// next.
  struct Matrix {
    const std::byte* data = nullptr;
    std::int64_t row = 0, step = 0;
  };
  struct Call {
    const std::string* name = nullptr;  // of the operation, for errors
    models::GemmShape shape;            // with batch
    models::DType arithmetic{}, from{}, to{};
    Matrix a, b, c;
    const std::byte* bias = nullptr;
    const Fp8Operands* scaled = nullptr;  // where operands are fp8
    const float* factors = nullptr;       // on the GPU; null: 1, and 1 or 0
  };
  struct Plan;
  struct Experts;
  struct FreeExperts {
    void operator()(Experts* of) const noexcept;
  };
  using OwnedExperts = std::unique_ptr<Experts, FreeExperts>;
  using Key = std::vector<std::int64_t>;

  static std::int64_t alignment_of(const Matrix& matrix, models::DType type);
  static Key key_of(const Call& call);
  static Call call_of(const Kernel& kernel);
  static std::string words_of(const Call& call);
  std::unique_ptr<Plan> make_plan(const Call& call, const ProductAttempt& attempt,
                                  std::string& answer) const;
  Plan& plan_of(const Call& call);
  bool multiply(const Call& call, Stream stream);
  static void point(Plan& plan, const Call& call);
  OwnedExperts make_experts(const Kernel& kernel, const float* factors, Stream stream) const;
  bool multiply_at_once(const Experts& experts, Stream stream);

  cublasLtHandle_t handle_ = nullptr;
  cublasHandle_t blas_ = nullptr;  // made by the first grouped GEMM, if this cuBLAS has them
  std::byte* workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
  std::map<std::vector<std::int64_t>, OwnedExperts> experts_;  // by rows, shape and operands
};

}  // namespace orrery::executor::cuda
