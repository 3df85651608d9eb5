#include "ps/streams/session.h"

#include "common/log/logging.h"

namespace shoal {

void Session::End(const absl::Status& status) {
  if (ended) return;
  LogWarning("stream ended", {{"peer", stream->peer()}, {"reason", std::string(status.message())}});
  EndQuietly(status);
}

void Session::EndQuietly(const absl::Status& status) {
  if (!std::exchange(ended, true)) stream->Finish(status);
}

}  // namespace shoal
