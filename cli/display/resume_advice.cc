#include "cli/display/resume_advice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shoal {

std::string DescribeSavedSteps(const SavedSteps& saved) {
  const bool any = saved.checkpoint.has_value();
  const uint64_t kept = saved.checkpoint.value_or(0);
  const uint64_t lost = saved.done - std::min(saved.done, kept);
  std::string text = "There is no checkpoint yet";
  if (any) {
    const bool one = (saved.total > 0 ? saved.total : kept) == 1;
    text = absl::StrCat("The newest checkpoint has the first ", kept,
                        saved.total > 0 ? absl::StrCat(" of ", saved.total) : "",
                        one ? " step" : " steps");
  }
  if (lost > 0) {
    absl::StrAppend(&text, "; at least ", lost, any ? " more" : "",
                    lost == 1 ? " step was done and is lost" : " steps were done and are lost");
  }
  return text + ".";
}

std::string AdviseToResume(const SavedSteps& saved, const std::string& command) {
  return absl::StrCat(saved.checkpoint.has_value()
                          ? absl::StrCat("To continue from step ", *saved.checkpoint)
                          : "To start again",
                      ":\n  ", command);
}

}  // namespace shoal
