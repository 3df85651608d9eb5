#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/name_hash.h"
#include "common/model/ops/dropout.h"

namespace shoal {

absl::StatusOr<ValueId> ReadDropout(LayerBuilder& layer) {
  auto op = std::make_shared<DropoutOp>();
  const JsonNode rate = layer.Option("rate");
  SHOAL_ASSIGN_OR_RETURN(op->rate, rate.Number());
  if (op->rate < 0 || op->rate >= 1) {
    return rate.Invalid(absl::StrCat(rate.Text(), " must be at least 0 and below 1"));
  }
  SHOAL_ASSIGN_OR_RETURN(
      const int64_t seed,
      layer.Option("seed").Integer(
          {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}, -1));
  // Each call of a shared layer drops elements of its own.
  op->layer_seed = HashName(absl::StrCat(layer.name(), "/", seed, "/", layer.call()));
  if (op->rate == 0) return layer.inputs()[0];
  return layer.Add(std::move(op), layer.inputs());
}

}  // namespace shoal
