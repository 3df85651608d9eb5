#include "tests/worker/compute/models/small_models.h"

#include "tests/worker/compute/models/model_building.h"

namespace shoal {

Graph SmallModel() {
  ModelBuilding model({kBatch, 6, 6, 2});
  model.Conv2D(3, {.size = {3, 3}, .padding = Padding::kSame}).BatchNormalization().Relu();
  const ValueId shared = model.current();
  model.Conv2D(3, {.size = {1, 1}}).Relu().Add(shared);
  return model.Flatten().Dropout(0.3).Dense(6).Relu().Dense(4).Build();
}

Graph NormalizedModel() {
  ModelBuilding model({kBatch, 4, 4, 2});
  model.Conv2D(3, {.size = {3, 3}}).BatchNormalization().Relu();
  return model.Flatten().Dropout(0.3).Dense(5).Relu().Dense(4).Build();
}

}  // namespace shoal
