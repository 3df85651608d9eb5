#include "common/saved_model/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

constexpr size_t kMaxLines = 1000;  // of each kind, for the user

struct VariableName {
  std::string layer;  // "tower/wide"
  std::string name;   // "kernel"
};

VariableName Split(const std::string& variable) {
  const size_t slash = variable.rfind('/');
  if (slash == std::string::npos) return {"", variable};
  return {variable.substr(0, slash), variable.substr(slash + 1)};
}

const SavedTensor* FindNamed(const std::vector<SavedTensor>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const SavedTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

// Compares only the models' configs. Ignores how each model was compiled for training before.
bool IsSameModel(const std::string& a, const std::string& b) {
  const absl::StatusOr<nlohmann::json> of_a = ParseJson(a, ""), of_b = ParseJson(b, "");
  if (!of_a.ok() || !of_b.ok() || !of_a->is_object() || !of_b->is_object()) return false;
  const auto layers_a = of_a->find("config"), layers_b = of_b->find("config");
  return layers_a != of_a->end() && layers_b != of_b->end() && *layers_a == *layers_b;
}

class Matching {
 public:
  Matching(InitialWeights* weights, const std::vector<Variable>& variables)
      : weights_(weights), variables_(variables) {
    for (const Variable& variable : variables) ++counts_[Split(variable.name).layer];
  }

  void Run() {
    for (const Variable& variable : variables_) {
      const VariableName name = Split(variable.name);
      const size_t index = seen_[name.layer]++;
      std::string why;
      const SavedTensor* tensor = Find(name, index, &why);
      if (tensor != nullptr && tensor->shape != variable.shape) {
        why = absl::StrCat("has shape ", ShapeToString(tensor->shape), " there, ",
                           ShapeToString(variable.shape), " here");
        tensor = nullptr;
      }
      weights_->tensors.push_back(tensor);
      if (tensor != nullptr) {
        used_.insert(tensor);
      } else {
        weights_->missed.push_back({variable.name, why});
      }
    }
    for (const auto& [layer, tensors] : weights_->saved.layers) {
      for (const SavedTensor& tensor : tensors) {
        if (used_.contains(&tensor)) continue;
        weights_->unused.push_back(absl::StrCat(Printable(layer, kMaxNameBytes), ": ",
                                                Printable(tensor.place, kMaxNameBytes), " ",
                                                ShapeToString(tensor.shape)));
      }
    }
  }

 private:
  const SavedTensor* Find(const VariableName& variable, size_t index, std::string* why) const {
    const auto layer = weights_->saved.layers.find(variable.layer);
    if (layer == weights_->saved.layers.end()) {
      *why = absl::StrCat("there is no layer \"", variable.layer, "\" with weights there");
      return nullptr;
    }
    const std::vector<SavedTensor>& tensors = layer->second;
    if (tensors[0].name.empty()) {
      const size_t count = counts_.at(variable.layer);
      if (tensors.size() == count) return &tensors[index];
      *why = absl::StrCat("its layer has ", tensors.size(), " variables there, ", count, " here");
      return nullptr;
    }
    const SavedTensor* tensor = FindNamed(tensors, variable.name);
    // The name of DepthwiseConv2D's kernel in Keras 2.
    if (tensor == nullptr && variable.name == "kernel" &&
        FindNamed(tensors, "pointwise_kernel") == nullptr) {
      tensor = FindNamed(tensors, "depthwise_kernel");
    }
    if (tensor == nullptr) *why = absl::StrCat("its layer has no \"", variable.name, "\" there");
    return tensor;
  }

  InitialWeights* const weights_;
  const std::vector<Variable>& variables_;
  std::map<std::string, size_t> counts_;  // of variables, by layer
  std::map<std::string, size_t> seen_;
  std::set<const SavedTensor*> used_;
};

template <typename T, typename Line>
void AppendLines(const std::string& title, const std::vector<T>& items, Line line,
                 std::string* text) {
  if (items.empty()) return;
  absl::StrAppend(text, "  ", title, ":\n");
  for (size_t i = 0; i < std::min(items.size(), kMaxLines); ++i)
    absl::StrAppend(text, "    ", line(items[i]), "\n");
  if (items.size() > kMaxLines)
    absl::StrAppend(text, "    and ", items.size() - kMaxLines, " more\n");
}

}  // namespace

std::string InitialWeights::ToText() const {
  std::string text = absl::StrCat("initial weights: ", tensors.size() - missed.size(), " of ",
                                  tensors.size(), " variables are loaded from ", saved.path, "\n");
  AppendLines(
      "not loaded, but from their initializers", missed,
      [](const Missed& each) { return absl::StrCat(each.variable, ": ", each.why); }, &text);
  AppendLines(
      "in the file and not used", unused, [](const std::string& each) { return each; }, &text);
  return text;
}

absl::StatusOr<InitialWeights> FindInitialWeights(const std::string& path,
                                                  const std::string& model_json,
                                                  const std::vector<Variable>& variables) {
  InitialWeights weights;
  SHOAL_ASSIGN_OR_RETURN(weights.saved, OpenSavedWeights(path, model_json));
  Matching(&weights, variables).Run();
  if (weights.missed.empty()) return weights;
  if (weights.missed.size() == variables.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": no weight of this file fits the model\n", weights.ToText()));
  }
  if (IsSameModel(weights.saved.model_json, model_json)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": does not have all weights of its own model\n", weights.ToText()));
  }
  return weights;
}

absl::Status ReadSavedValues(const SavedWeights& saved, const SavedTensor& tensor, uint64_t first,
                             std::span<float> out) {
  SHOAL_RETURN_IF_ERROR(tensor.read(first, out));
  const auto bad =
      std::find_if_not(out.begin(), out.end(), [](float value) { return std::isfinite(value); });
  if (bad == out.end()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(saved.path, ": ", Printable(tensor.place, kMaxNameBytes),
                                          ": value number ", first + (bad - out.begin()), " is ",
                                          *bad, ", not a finite number"));
}

}  // namespace shoal
