#include "worker/compute/runner/executable_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/format_bytes.h"
#include "worker/compute/runner/fitting_batch.h"

namespace shoal {
namespace {

// Training and evaluation need four each: a full batch and a smaller last batch.
constexpr size_t kMaxCompiled = 8;

// The fraction of a device's memory reserved for its programs is 1 / this.
constexpr int64_t kShareOfPrograms = 64;

std::string VerbOf(PlanMode mode) {
  switch (mode) {
    case PlanMode::kTrain:
      return "train with";
    case PlanMode::kEvaluate:
      return "evaluate";
    case PlanMode::kPredict:
    case PlanMode::kPredictTraining:
      break;
  }
  return "predict for";
}

}  // namespace

absl::StatusOr<Executable*> ExecutableCache::Find(PlanMode mode, int64_t examples) {
  const auto found =
      std::find_if(compiled_.begin(), compiled_.end(), [&](const Compiled& compiled) {
        return compiled.mode == mode && compiled.examples == examples;
      });
  if (found != compiled_.end()) {
    compiled_.splice(compiled_.begin(), compiled_, found);
    return compiled_.front().executable.get();
  }
  SHOAL_ASSIGN_OR_RETURN(
      std::unique_ptr<Executable> executable,
      backend_.Compile(Plan(training_, mode, examples, metrics_, {.in_parts = in_parts_})));
  ++compilations_;
  SHOAL_RETURN_IF_ERROR(TakeMemory(*executable, mode, examples));
  compiled_.push_front({mode, examples, std::move(executable)});
  if (compiled_.size() > kMaxCompiled) compiled_.pop_back();
  return compiled_.front().executable.get();
}

absl::Status ExecutableCache::TakeMemory(Executable& executable, PlanMode mode, int64_t examples) {
  const absl::Status taken = executable.TakeMemory();
  if (!absl::IsResourceExhausted(taken)) return taken;
  SHOAL_ASSIGN_OR_RETURN(const int64_t available, backend_.DeviceBytes(mode == PlanMode::kTrain));
  const int64_t needed = executable.device_bytes();
  SHOAL_ASSIGN_OR_RETURN(
      const int64_t fits,
      LargestFittingBatch({.examples = examples,
                           .needed_bytes = needed,
                           // The device needs some memory for its programs, too.
                           .available_bytes = available - available / kShareOfPrograms},
                          [&](int64_t fewer) -> absl::StatusOr<int64_t> {
                            SHOAL_ASSIGN_OR_RETURN(
                                const std::unique_ptr<Executable> smaller,
                                backend_.Compile(Plan(training_, mode, fewer, metrics_,
                                                      {.in_parts = true, .size_only = true})));
                            return smaller->device_bytes();
                          }));
  const std::string advice =
      fits == 0 ? "not even one example would fit: take a device with more memory, or --device=cpu"
                : absl::StrCat(fits, " would fit: set \"micro_batch_size\" to ", fits,
                               ", which computes a batch in parts, or reduce \"batch_size\" to it");
  return absl::FailedPreconditionError(absl::StrCat(
      "the device has too little memory to ", VerbOf(mode), " ", examples,
      " examples at once: they need ", FormatBytes(needed), ", and ", FormatBytes(available),
      " are free (", std::string(taken.message()), "); ", advice));
}

}  // namespace shoal
