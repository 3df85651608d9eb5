#pragma once

#include <string>

#include "cli/validation/job_needs.h"
#include "cli/validation/validated_job.h"

namespace shoal {

// Formats the needs as lines for people. If the number of examples is unknown, a sentence replaces
// the steps; `why_no_examples`, the error of opening the data, ends it.
std::string NeedsText(const ValidatedJob& validated, const JobNeeds& needs,
                      const std::string& why_no_examples);

}  // namespace shoal
