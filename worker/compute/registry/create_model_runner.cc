#include "worker/compute/registry/create_model_runner.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/compute/registry/backends.h"
#include "worker/compute/registry/compute_device.h"
#include "worker/compute/runner/graph_runner.h"
#include "worker/compute/runner/mirrored/mirrored_runner.h"

namespace shoal {

absl::StatusOr<std::unique_ptr<ModelRunner>> CreateModelRunner(ModelRunner::Options options) {
  const std::vector<std::string> names = DevicesIn(options.backend);
  if (names.size() == 1) {
    SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                           CreateBackend(options.backend, options.numerics));
    return GraphRunner::Create(std::move(options), std::move(backend));
  }
  SHOAL_RETURN_IF_ERROR(CheckDeviceName(options.backend, {.automatic = false}));
  std::vector<MirroredRunner::ReplicaDevice> devices;
  for (const std::string& name : names) {
    devices.push_back({.name = name, .create = [&name, &options] {
                         return CreateBackend(name, options.numerics);
                       }});
  }
  return MirroredRunner::Create(options, devices, [&names, &options] {
    return CreateGradientReducer(names, options.numerics);
  });
}

}  // namespace shoal
