#include "common/rpc/admission/stream_admission.h"

#include "absl/strings/str_cat.h"

namespace shoal {

absl::Status StreamAdmission::Admit(
    const NewStream& stream,
    absl::FunctionRef<void(uint64_t displaced, const absl::Status& reason)> displace) {
  silent_.insert(stream.number);
  if (!options_.connections->OpenStream(stream.connection)) {
    return absl::ResourceExhaustedError(absl::StrCat(options_.address, " accepts at most ",
                                                     options_.max_streams_per_client,
                                                     " streams on one connection"));
  }
  if (streams() <= options_.max_streams) return absl::OkStatus();
  const absl::Status crowded = absl::ResourceExhaustedError(
      absl::StrCat(options_.address, " has ", options_.max_streams, " streams open, the max"));
  while (streams() > options_.max_streams) {
    const uint64_t oldest = *silent_.begin();
    if (oldest == stream.number) return stream.always ? absl::OkStatus() : crowded;
    silent_.erase(silent_.begin());
    displace(oldest, crowded);
    const Time now = options_.loop->Now();
    if (options_.warn && (!warned_at_ || now - *warned_at_ >= kCrowdedWarningPeriod)) {
      warned_at_ = now;
      options_.warn(absl::StrCat(crowded.message(), "; it ends silent ones for new ones"));
    }
  }
  return absl::OkStatus();
}

void StreamAdmission::SetTalks(uint64_t stream, uint64_t connection, bool talks) {
  if (talks) {
    silent_.erase(stream);
    ++talking_;
    options_.connections->BeginTalk(connection);
  } else {
    silent_.insert(stream);
    --talking_;
    options_.connections->EndTalk(connection);
  }
}

void StreamAdmission::Remove(uint64_t stream, uint64_t connection) {
  silent_.erase(stream);
  options_.connections->CloseStream(connection);
}

}  // namespace shoal
