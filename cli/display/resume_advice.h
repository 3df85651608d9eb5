#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shoal {

// How far the checkpoints of a run that has ended reach.
struct SavedSteps {
  std::optional<uint64_t> checkpoint;  // the newest one has all steps below; nullopt: there is none
  uint64_t total = 0;                  // of the job; 0: unknown
  uint64_t done = 0;                   // the last known number; 0: unknown
};

// Returns a sentence: which steps the newest checkpoint has, and how many done steps are lost.
std::string DescribeSavedSteps(const SavedSteps& saved);

// Returns the advice that follows, two lines without a newline at the end: from where the run
// continues, and below it `command`, which continues the run.
std::string AdviseToResume(const SavedSteps& saved, const std::string& command);

}  // namespace shoal
