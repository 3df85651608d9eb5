#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "common/model/compute_dtype.h"
#include "common/model/graph.h"
#include "common/model/keras/json_node.h"

namespace shoal {

// What a layer or a model of that dtype, a name or a policy object of Keras, computes in; float32
// where there is none. Policies under which variables are anything but float32 are refused.
absl::StatusOr<ComputeDtype> ReadDtypePolicy(const JsonNode& dtype);

// Which whole numbers a model's input of that dtype takes, of those up to 2^24 of either sign,
// which float32 holds exactly; nothing where it takes any numbers.
absl::StatusOr<std::optional<WholeNumbers>> ReadInputDtype(const JsonNode& dtype);

// Whether they are those of int32 or int64, in which sums and differences of what float32 holds
// have room. Products beyond 2^31 wrap around in Keras's int32, and do not here.
bool HaveRoom(const WholeNumbers& numbers);

}  // namespace shoal
