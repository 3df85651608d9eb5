#include "worker/compute/backend/backend.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/compute/plan/passes/passes.h"

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

absl::StatusOr<std::unique_ptr<Executable>> Backend::Compile(Plan plan) {
  RunPasses([this](const Node& node) { return Supports(node); }, plan);
  return CompileNodes(std::move(plan));
}

absl::Status CheckKernels(const Backend& backend, const Graph& graph) {
  std::map<std::string, std::set<std::string>> missing;
  for (Node node : graph.nodes()) {
    node.compute_dtype = ComputeDtype::kFloat32;
    if (!backend.Supports(node)) missing[node.op->type()].insert(node.layer);
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
  std::map<ComputeDtype, std::set<std::string>> missing;
  for (const Node& node : model.nodes()) {
    if (node.compute_dtype == ComputeDtype::kFloat32 || backend.Supports(node)) continue;
    missing[node.compute_dtype].insert(node.layer);
  }
  if (missing.empty()) return "";
  std::vector<std::string> described;
  for (const auto& [dtype, layers] : missing) described.push_back(Describe(NameOf(dtype), layers));
  return absl::StrCat("the model's dtype policies ask for ", absl::StrJoin(described, ", "),
                      "; the ", backend.name(),
                      " backend has no kernel in this type for some op of each of these layers, "
                      "and computes such an op in float32, which is more exact");
}

}  // namespace shoal
