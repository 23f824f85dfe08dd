#pragma once
// Reads initial parameters from a checkpoint of the transformers library, and exports parameters as
// such a file.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "executor/pretrained/safetensors.hpp"
#include "executor/pretrained/stored_names.hpp"
#include "executor/run/settings.hpp"

namespace orrery::executor {

/// Parameters from `model.safetensors`, from the files that `model.safetensors.index.json` lists,
/// or from the folder in which either lies.
class PretrainedWeights : public ParameterSource {
 public:
  /// Errors  InputError: a file that is missing, damaged or of another kind; names of tensors not
  ///         known for the model's type
  PretrainedWeights(const std::string& path, models::Model model);

  /// Errors  InputError `FILE: has no tensor model.norm.weight`, or one of another shape
  void require(const std::vector<StateTensor>& tensors) override;
  void fill(const StateTensor& tensor, std::int64_t first, std::span<double> to) const override;

 private:
  struct Found {
    StoredPart part;
    const SafetensorsFile* file = nullptr;
    const ListedTensor* tensor = nullptr;
  };

  Found find(const StoredPart& part) const;

  std::string path_;
  models::Model model_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::vector<Found>, std::less<>> parts_;  // by our tensor
};

/// The parameters that a rank holds, and how to read them.
struct ExportedState {
  std::vector<StateTensor> tensors{};
  std::vector<StateRun> runs{};
  std::function<void(std::int64_t local, std::span<double> to)> read{};
  std::size_t first = 0;  // of its tensors, among all that are exported
};

/// The parameters of all ranks as one file; ranks call the steps in order, with barriers between.
class PretrainedExport {
 public:
  /// Errors  InputError: names of tensors not known for the model's type
  PretrainedExport(std::string path, const models::Model& model, models::DType format,
                   const std::vector<StateTensor>& tensors);
  ~PretrainedExport();

  std::string create();  // rank 0; returns the name under which the file is written
  void write(const std::string& created, const ExportedState& state);  // then every rank
  void commit();                                                       // then rank 0

 private:
  void write_run(const ExportedState& state, const StateRun& run);

  SafetensorsWriter writer_;
  std::vector<std::vector<StoredPart>> parts_;  // by our tensor
  bool pending_ = false;
};

}  // namespace orrery::executor
