#include "common/model/keras/options/number_list.h"

#include "common/base/status_macros.h"

namespace shoal {

absl::StatusOr<std::vector<double>> ReadNumbers(const JsonNode& json,
                                                std::optional<double> absent) {
  const JsonNode class_name = json["class_name"];
  if (class_name.is_string() && *class_name.String() == "__numpy__") {
    return ReadNumbers(json["config"]["value"]);
  }
  std::vector<double> numbers;
  if (!json.is_array()) {
    SHOAL_ASSIGN_OR_RETURN(numbers.emplace_back(), json.Number(absent));
    return numbers;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    SHOAL_ASSIGN_OR_RETURN(numbers.emplace_back(), json.at(i).Number());
  }
  return numbers;
}

}  // namespace shoal
