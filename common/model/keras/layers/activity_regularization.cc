#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class ActivityRegularization : public LayerConfig {
 public:
  explicit ActivityRegularization(LayerOptions& options) {
    RegularizerConfig regularizer = options.activity_regularizer();
    ReadPenaltyFactors(options, &regularizer.regularizer);
    options.set_activity_regularizer(regularizer);
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override { return call.inputs()[0]; }
};

}  // namespace

extern const LayerType kActivityRegularizationLayer = {
    "ActivityRegularization", LayerType::Inputs::kOne,
    "Its input, which adds to the loss: `l1` times the sum of magnitudes, `l2` times that of "
    "squares",
    ReadAs<ActivityRegularization>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
