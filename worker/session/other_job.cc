#include "worker/session/other_job.h"

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"

namespace shoal {

absl::Status OtherJob(const std::string& coordinator, uint32_t its_job, uint32_t own_job) {
  return absl::UnavailableError(
      absl::StrCat("the coordinator at ", coordinator, " now has the job with fingerprint ",
                   ChecksumText(its_job), ", but this process has the one with ",
                   ChecksumText(own_job), "; restart this process"));
}

}  // namespace shoal
