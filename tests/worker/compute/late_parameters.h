#pragma once

#include <functional>
#include <map>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/model/model_layout.h"
#include "worker/compute/program/arriving_parameters.h"
#include "worker/compute/program/page_aligned.h"

namespace shoal {

// A buffer of not-a-number into which a variable's values come when it is first awaited, and no
// earlier. Any thread may await.
class LateParameters : public ArrivingParameters {
 public:
  // The layout outlives this.
  LateParameters(const ModelLayout& layout, std::span<const float> values);

  absl::Status Await(int variable) override;

  std::span<float> buffer() { return buffer_; }
  // Times that they were awaited and came, by variable.
  std::map<int, int> awaits();

  // Called before they come, on the thread that awaits; an error is what that hears instead. To be
  // set before anyone awaits.
  std::function<absl::Status(int variable)> on_await;

 private:
  const ModelLayout& layout_;
  const PageAlignedFloats values_;
  PageAlignedFloats buffer_;  // of a variable: written once, before its first Await returns
  Mutex mutex_;
  std::map<int, int> awaits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
