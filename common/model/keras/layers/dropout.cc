#include "common/model/ops/dropout.h"

#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/name_hash.h"

namespace shoal {
namespace {

class Dropout : public LayerConfig {
 public:
  explicit Dropout(LayerOptions& options) : rate_(options.Number("rate")), seed_(options.Seed()) {
    if (rate_ >= 0 && rate_ < 1) return;
    const JsonNode rate = options["rate"];
    options.Take(rate.Invalid(absl::StrCat(rate.Text(), " must be at least 0 and below 1")));
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    if (rate_ == 0) return call.inputs()[0];
    auto op = std::make_shared<DropoutOp>();
    op->rate = rate_;
    // Each call of a shared layer drops elements of its own.
    op->layer_seed = HashName(absl::StrCat(call.path(), "/", seed_, "/", call.number()));
    return call.Add(std::move(op));
  }

 private:
  const double rate_;
  const int64_t seed_;
};

}  // namespace

extern const LayerType kDropoutLayer = {
    "Dropout", LayerType::Inputs::kOne,
    "Drops elements in training, the same when a step is computed again", ReadAs<Dropout>};

}  // namespace shoal
