#include "common/training_metric/confusion.h"

#include <nlohmann/json.hpp>

#include "common/json/keras_object.h"

namespace shoal {

using nlohmann::json;

Confusion::Confusion(KerasOptions& options) {
  double resolved = 0.5;
  const json* given = options.given().Find("thresholds");
  if (given != nullptr && !given->is_null()) {
    // With a list, Keras has one figure for each threshold; here a metric has one figure.
    const json& value = given->is_array() && given->size() == 1 ? given->front() : *given;
    if (value.is_number() && value >= 0 && value <= 1) {
      threshold_ = value.get<float>();
      resolved = value.get<double>();
    } else {
      options.given().AddWrong("thresholds", *given,
                               "a number from 0 to 1; for several, give the metric once for each, "
                               "under names of their own");
    }
  }
  options.Resolve("thresholds", resolved, "`thresholds` (0.5; 0 to 1)");
  class_id_ = options.IntegerOrNull("class_id", {0, 1 << 20});
  RejectUnlessNull(options.given(), "top_k", "precision or recall of the k largest outputs");
}

}  // namespace shoal
