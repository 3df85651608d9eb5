#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace shoal {

// Returns OK if one of the CAs in `ca_pem` has issued the certificate of a client, the first of
// `chain_pem`, by way of the others, as OpenSSL verifies it in a handshake. One thing is left to
// CheckDates(): the client's own certificate may have expired or not be valid yet, so that the
// client can be told. Intermediates and CAs must be valid at `now`. Returns kUnauthenticated, which
// names the holder by the certificate's own words, its serial and its issuer. Stateless: any thread
// may call it.
absl::Status CheckIssued(std::string_view chain_pem, std::string_view ca_pem, absl::Time now);

}  // namespace shoal
