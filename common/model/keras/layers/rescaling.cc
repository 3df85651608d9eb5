#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/ops/rescale.h"

namespace shoal {
namespace {

// One number, or one per channel.
absl::StatusOr<std::vector<double>> ReadFactors(const JsonNode& json, double absent) {
  if (!json.is_array()) {
    SHOAL_ASSIGN_OR_RETURN(const double factor, json.Number(absent));
    return std::vector<double>{factor};
  }
  std::vector<double> factors;
  for (size_t i = 0; i < json.size(); ++i) {
    SHOAL_ASSIGN_OR_RETURN(const double factor, json.at(i).Number());
    factors.push_back(factor);
  }
  return factors;
}

}  // namespace

absl::StatusOr<ValueId> ReadRescaling(LayerBuilder& layer) {
  auto op = std::make_shared<RescaleOp>();
  SHOAL_ASSIGN_OR_RETURN(op->scale, ReadFactors(layer.Option("scale"), 1));
  SHOAL_ASSIGN_OR_RETURN(op->offset, ReadFactors(layer.Option("offset"), 0));
  return layer.Add(std::move(op), layer.inputs());
}

}  // namespace shoal
