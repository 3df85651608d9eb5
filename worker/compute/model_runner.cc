#include "worker/compute/model_runner.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/compute/backends.h"
#include "worker/compute/graph_runner.h"

namespace shoal {

absl::StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Create(Options options) {
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                         CreateBackend(options.backend, options.freedoms));
  return GraphRunner::Create(std::move(options), std::move(backend));
}

}  // namespace shoal
