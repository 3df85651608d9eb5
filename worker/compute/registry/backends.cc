#include "worker/compute/registry/backends.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text/nearest_name.h"
#include "worker/compute/cpu/cpu_backend.h"
#include "worker/compute/cuda/create_cuda_backend.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/registry/compute_device.h"

namespace shoal {
namespace {

struct Registered {
  const char* name;
  std::unique_ptr<Backend> (*create)();
};
constexpr Registered kBackends[] = {
    {"cpu", CreateCpuBackend},
    {"reference", CreateReferenceBackend},
};

}  // namespace

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const Registered& backend : kBackends) names.push_back(backend.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(const std::string& name,
                                                       const NumericsOptions& numerics) {
  for (const Registered& backend : kBackends) {
    if (name == backend.name) return backend.create();
  }
  if (const std::optional<int> index = CudaIndexOf(name); index.has_value()) {
    return cuda::CreateCudaBackend(*index, numerics);
  }
  const std::string nearest = NearestName(name, BackendNames());
  return absl::InvalidArgumentError(absl::StrCat(
      "backend \"", name, "\" is not known; there are ", absl::StrJoin(BackendNames(), ", "),
      ", cuda:N", nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

std::unique_ptr<GradientReducer> CreateGradientReducer(const std::vector<std::string>& names,
                                                       const NumericsOptions& numerics) {
  if (!numerics.nondeterministic) return nullptr;
  std::vector<int> indices;
  for (const std::string& name : names) {
    const std::optional<int> index = CudaIndexOf(name);
    if (!index.has_value()) return nullptr;
    indices.push_back(*index);
  }
  return cuda::CreateNcclReducer(indices);
}

}  // namespace shoal
