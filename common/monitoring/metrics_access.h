#pragma once

#include <optional>
#include <string>

#include "common/base/mutex.h"
#include "common/log/last_result.h"
#include "common/monitoring/http_security.h"
#include "common/monitoring/http_server.h"

namespace shoal {

// Decides who may see /metrics (HttpSecurity says how). The token is read again for each request
// that brings one, so that a new one is valid at once. Whitespace around it is ignored. A file that
// is missing, empty, longer than 4 KiB or readable by others (CheckKeyMode()) lets nobody in.
// Thread-safe.
class MetricsAccess {
 public:
  // Warns if the token cannot be used now.
  explicit MetricsAccess(HttpSecurity security);

  // Returns nothing if the client may see /metrics. Else the answer that says why not: 401 if a
  // token or a certificate would help, 403 if the client has shown a certificate that does not.
  std::optional<HttpReply> Check(const HttpRequest& request);

 private:
  bool HasToken(const std::string& authorization);
  std::string Token();
  // Returns whether the last read has found a token.
  bool IsTokenUsable();

  const HttpSecurity security_;
  Mutex mutex_;
  // Only one thread at a time reads the file. Otherwise a hanging disk could block all of the
  // server's. Meanwhile the others use the last token.
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  std::string token_ ABSL_GUARDED_BY(mutex_);  // empty: lets nobody in
  LastResult result_ ABSL_GUARDED_BY(mutex_);  // of the last read
};

}  // namespace shoal
