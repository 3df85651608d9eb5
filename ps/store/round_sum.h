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

// The gradients of one chunk in a round, until all have arrived (docs/protocol.md, section 13).
// Adds them in step order, not in the order of arrival. This makes the mean the same to the last
// bit. Copies a gradient that comes before its turn: the transport lends a bounded number of bytes,
// and they change once the sender has its answer. Samples of moving averages are gradients here.
// Plain state; not thread-safe.
class RoundSum {
 public:
  // For a chunk of `size` floats, with rounds of at most `max_steps` steps.
  RoundSum(size_t size, uint64_t max_steps);

  // Returns OK if a chunk that has applied `version` steps, and lacks this one, takes its gradient.
  // kInvalidArgument: the step is not of the round, or the chunk is at another round. The caller
  // puts the name of the push before the message.
  absl::Status Check(const Round& round, uint64_t step, uint64_t version) const;

  // Takes the gradient of a step for which Check was OK. Returns the mean once all gradients are
  // there, which ends the round; it is valid until the next call. Null: others are missing.
  const Message* Add(const Round& round, uint64_t step, const Message& gradient);

  // True while some gradients of a round have arrived and others are missing.
  bool in_progress() const { return round_.has_value(); }
  // Number of gradients that wait for their turn.
  size_t early_count() const { return early_.size(); }

 private:
  void AddInTurn(const Message& gradient);

  const size_t size_;
  const uint64_t max_steps_;
  std::optional<Round> round_;  // the round under way
  uint32_t added_ = 0;          // steps, from its first one on, that are in sum_
  AlignedBuffer sum_;           // made with the first round of several steps
  std::map<uint64_t, std::unique_ptr<float[]>> early_;  // by step
  Message mean_;                                        // refers to sum_
};

}  // namespace shoal
