#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "common/json/json_node.h"
#include "common/model/compute_dtype.h"
#include "common/model/graph.h"

namespace shoal {

// Returns the compute dtype for `dtype`, a name or a policy object of Keras; float32 if it is null.
// Rejects policies whose variables are not float32.
absl::StatusOr<ComputeDtype> ReadDtypePolicy(const JsonNode& dtype);

// Returns the whole numbers that a model's input of this dtype accepts, limited to [-2^24, 2^24],
// which float32 holds exactly. Returns an empty optional if it accepts any numbers.
absl::StatusOr<std::optional<WholeNumbers>> ReadInputDtype(const JsonNode& dtype);

// Whether `numbers` is the range of int32 or int64. These types hold all sums and differences of
// float32's whole numbers. Products beyond 2^31 wrap around in Keras's int32, but not here.
bool HaveRoom(const WholeNumbers& numbers);

}  // namespace shoal
