#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "common/rpc/message.h"
#include "common/step_plan/round.h"
#include "ps/store/aligned_buffer.h"

namespace shoal {

// The gradients of a round that one chunk has, until there are all of them (docs/protocol.md,
// section 13). They are added up in the order of their steps, so that the mean is the same to the
// last bit whoever was faster: one that comes before its turn is kept as a copy until then, as what
// the transport lends is bounded, and changes once its sender has its answer. Samples of moving
// averages are gradients here. Plain state; not thread-safe.
class RoundSum {
 public:
  // Of a chunk of `size` floats; its rounds have `most_steps` at most.
  RoundSum(size_t size, uint64_t most_steps);

  // Whether a chunk that has applied `version` steps, and has not got this one, takes its gradient:
  // kInvalidArgument where the step is not of the round, or the round not the one that the chunk
  // is at. The message follows the name of the push.
  absl::Status Check(const Round& round, uint64_t step, uint64_t version) const;

  // Takes the gradient of a step, for which Check was OK. The mean, where there are all now: valid
  // until the next call; the round is over then. Null: others are missing.
  const Message* Add(const Round& round, uint64_t step, const Message& gradient);

  // Some gradients are there, and others missing.
  bool under_way() const { return round_.has_value(); }
  // Gradients that are kept until their turn comes.
  size_t kept() const { return early_.size(); }

 private:
  void AddInTurn(const Message& gradient);

  const size_t size_;
  const uint64_t most_steps_;
  std::optional<Round> round_;  // that is under way
  uint32_t added_ = 0;          // steps from its first one on that are in sum_
  AlignedBuffer sum_;           // made with the first round that has more than one step
  std::map<uint64_t, std::unique_ptr<float[]>> early_;  // by step
  Message mean_;                                        // refers to sum_
};

}  // namespace shoal
