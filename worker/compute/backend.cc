#include "worker/compute/backend.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/nearest_name.h"
#include "worker/compute/cpu/cpu_backend.h"
#include "worker/compute/reference/reference_backend.h"

namespace shoal {

absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(const std::string& name) {
  if (name == "reference") return CreateReferenceBackend();
  if (name == "cpu") return CreateCpuBackend();
  const std::string nearest = NearestName(name, {"reference", "cpu"});
  return absl::InvalidArgumentError(
      absl::StrCat("backend \"", name, "\" is not known; there are \"cpu\" and \"reference\"",
                   nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

}  // namespace shoal
