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

// A buffer of not-a-number that receives a variable's values when the variable is first awaited.
// Any thread may await.
class LateParameters : public ArrivingParameters {
 public:
  // `layout` must outlive this.
  LateParameters(const ModelLayout& layout, std::span<const float> values);

  absl::Status Await(int variable) override;

  std::span<float> buffer() { return buffer_; }
  // Returns for each variable how often its values were awaited and arrived.
  std::map<int, int> awaits();

  // Called before the values arrive, on the awaiting thread, which receives its error. Set it
  // before the first await.
  std::function<absl::Status(int variable)> on_await;

 private:
  const ModelLayout& layout_;
  const PageAlignedFloats values_;
  PageAlignedFloats buffer_;  // each variable is written once, before its first Await returns
  Mutex mutex_;
  std::map<int, int> awaits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
