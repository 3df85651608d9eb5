#include "worker/compute/backend/backend.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shoal {
namespace {

// Enough names to find the other layers in the model.
constexpr size_t kMaxLayersNamed = 3;

// "BatchNormalization (layers "a", "b", "c" and 5 more)"
std::string Describe(const std::string& what, const std::set<std::string>& layers) {
  std::vector<std::string> named;
  for (const std::string& layer : layers) {
    if (named.size() < kMaxLayersNamed) named.push_back(absl::StrCat("\"", layer, "\""));
  }
  const size_t others = layers.size() - named.size();
  return absl::StrCat(what, layers.size() == 1 ? " (layer " : " (layers ",
                      absl::StrJoin(named, ", "),
                      others > 0 ? absl::StrCat(" and ", others, " more)") : ")");
}

}  // namespace

absl::Status CheckKernels(const Backend& backend, const Graph& graph) {
  const std::set<std::string> known = backend.op_types();
  std::map<std::string, std::set<std::string>> missing;
  for (const Node& node : graph.nodes()) {
    if (!known.contains(node.op->type())) missing[node.op->type()].insert(node.layer);
  }
  if (missing.empty()) return absl::OkStatus();
  std::vector<std::string> described;
  for (const auto& [type, layers] : missing) described.push_back(Describe(type, layers));
  return absl::UnimplementedError(absl::StrCat("the ", backend.name(),
                                               " backend cannot compute this model: it has no "
                                               "kernel for ",
                                               absl::StrJoin(described, ", ")));
}

std::string DescribePrecision(const Backend& backend, const Graph& model) {
  const std::set<ComputeDtype> known = backend.compute_dtypes();
  std::map<ComputeDtype, std::set<std::string>> missing;
  for (const Node& node : model.nodes()) {
    if (!known.contains(node.compute_dtype)) missing[node.compute_dtype].insert(node.layer);
  }
  if (missing.empty()) return "";
  std::vector<std::string> described;
  for (const auto& [dtype, layers] : missing) described.push_back(Describe(NameOf(dtype), layers));
  return absl::StrCat("the model's dtype policies ask for ", absl::StrJoin(described, ", "),
                      "; the ", backend.name(),
                      " backend computes these in float32, which is more exact");
}

}  // namespace shoal
