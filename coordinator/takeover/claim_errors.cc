#include "coordinator/takeover/claim_errors.h"

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/term.h"
#include "common/base/text/printable.h"

namespace shoal {

std::string DescribeClaimant(const proto::Claimant& claimant) {
  if (claimant.address().empty()) return "a coordinator that does not say where it is";
  const auto shown = [](const std::string& text) { return Printable(text, kMaxNameBytes); };
  return absl::StrCat("the coordinator at ", shown(claimant.address()), " (host ",
                      shown(claimant.host()), ", pid ", claimant.pid(), ", run directory ",
                      shown(claimant.run_directory()), ")");
}

std::string DescribePs(int ps, const std::string& address) {
  return absl::StrCat("ps ", ps, " at ", address);
}

absl::Status PsOfAnotherJob(const std::string& ps, const proto::Claimed& claimed, uint32_t job) {
  return absl::FailedPreconditionError(absl::StrCat(
      ps,
      " holds the variables of another job, or of this one with other epochs, steps or "
      "checkpoints (fingerprint ",
      ChecksumText(claimed.job_fingerprint()), ", this job has ", ChecksumText(job),
      "). If a coordinator trains that job, give this one other ps; this one has not disturbed it. "
      "If none does, start one with that job and drain it, so that it writes a checkpoint; then "
      "stop all ps, workers and the evaluator, and start them again"));
}

absl::Status PsWithImplausibleTerm(const std::string& ps, const PromisedTerm& term) {
  return absl::FailedPreconditionError(absl::StrCat(
      ps, " has promised the term ", TermText(term.promised),
      ", which no coordinator of this job has reached: the highest is ", TermText(term.highest),
      "; restart that ps, then this coordinator: the job continues from its newest "
      "checkpoint"));
}

absl::Status PsInUse(const std::string& ps, const proto::Claimant& holder) {
  return absl::FailedPreconditionError(
      absl::StrCat(ps, " is in use by ", DescribeClaimant(holder),
                   ", which trains with it. Stop that coordinator first, or give this one other "
                   "ps; --take_over takes them away from it, and it ends"));
}

absl::Status FencedOff(const NewerTerm& term, const proto::Claimant& by) {
  return absl::AbortedError(absl::StrCat("fenced off by term ", TermText(term.promised), ": ",
                                         DescribeClaimant(by),
                                         " has taken over this job (own term: ", TermText(term.own),
                                         "); this one has nothing left to do"));
}

}  // namespace shoal
