#include <memory>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
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

class Rescaling : public LayerConfig {
 public:
  explicit Rescaling(LayerOptions& options) {
    op_.scale = options.Take(ReadFactors(options["scale"], 1));
    op_.offset = options.Take(ReadFactors(options["offset"], 0));
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    return call.Add(std::make_shared<RescaleOp>(op_));
  }

 private:
  RescaleOp op_;
};

}  // namespace

extern const LayerType kRescalingLayer = {"Rescaling", LayerType::Inputs::kOne,
                                          "x · scale + offset, one of each or one a channel",
                                          ReadAs<Rescaling>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
