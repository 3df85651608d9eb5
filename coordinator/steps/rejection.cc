#include "coordinator/steps/rejection.h"

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"

namespace shoal {

proto::Rejected Rejection(const std::string& reason, bool final) {
  proto::Rejected rejected;
  rejected.set_reason(reason);
  rejected.set_final(final);
  return rejected;
}

proto::Rejected RejectionOfOtherJob(uint32_t theirs, uint32_t ours) {
  proto::Rejected rejected =
      Rejection(absl::StrCat("it computes the job with fingerprint ", ChecksumText(theirs),
                             ", the coordinator has the one with ", ChecksumText(ours),
                             "; start that process again"),
                /*final=*/false);
  rejected.set_other_job(true);
  return rejected;
}

}  // namespace shoal
