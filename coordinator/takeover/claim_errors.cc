#include "coordinator/takeover/claim_errors.h"

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/term.h"
#include "common/base/text/printable.h"
#include "common/base/text/shell_word.h"

namespace shoal {

namespace {

// Returns "COMMAND HOST:PORT" for the claimant's coordinator, or `otherwise` if that is unknown.
std::string CommandFor(const char* command, const proto::Claimant& claimant,
                       const char* otherwise) {
  if (claimant.address().empty()) return otherwise;
  return absl::StrCat(command, " ", ShellWord(Printable(claimant.address(), kMaxNameBytes)));
}

}  // namespace

std::string DescribeClaimant(const proto::Claimant& claimant) {
  if (claimant.address().empty()) return "a coordinator with an unknown address";
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
      "checkpoints: its fingerprint is ",
      ChecksumText(claimed.job_fingerprint()), ", this job's is ", ChecksumText(job),
      ". If a coordinator trains that job, list other ps in this cluster spec; this coordinator "
      "has not disturbed it. If none does, keep its last steps: start shoal-coordinator with that "
      "job and its run directory, then run `shoal drain chief RUN_DIR`. Then restart all ps, "
      "workers and the evaluator"));
}

absl::Status PsWithImplausibleTerm(const std::string& ps, const PromisedTerm& term) {
  return absl::FailedPreconditionError(absl::StrCat(
      ps, " has promised the term ", TermText(term.promised),
      ", which no coordinator of this job has reached: the highest is ", TermText(term.highest),
      "; restart that ps, then start shoal-coordinator again with the same run directory. The job "
      "continues from its newest checkpoint"));
}

absl::Status PsInUse(const std::string& ps, const proto::Claimant& holder) {
  return absl::FailedPreconditionError(absl::StrCat(
      ps, " is in use by ", DescribeClaimant(holder),
      ", which trains with it. List other ps in this cluster spec. To take the ps from that run, "
      "start this coordinator again with --take_over; the other one then ends. To end that run: ",
      CommandFor("shoal drain chief", holder, "stop its coordinator")));
}

absl::Status FencedOff(const NewerTerm& term, const proto::Claimant& by) {
  return absl::AbortedError(
      absl::StrCat("fenced off by term ", TermText(term.promised), ": ", DescribeClaimant(by),
                   " has taken over this job; this one had the term ", TermText(term.own),
                   " and ends. To see the progress of the job: ",
                   CommandFor("shoal status", by, "shoal status RUN_DIR")));
}

}  // namespace shoal
