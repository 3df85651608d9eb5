#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace shoal {

// Whether the certificates of a peer lead to a CA. All texts are PEM. `chain_pem` has the peer's
// certificate, then its intermediates. Any thread may call these functions.

// Returns OK if one of the CAs has issued the certificate of a client, by way of the intermediates,
// as OpenSSL verifies it in a handshake. Ignores the dates of the client's own certificate, which
// CheckDates() compares, so that the client can be told. Intermediates and CAs must be valid at
// `now`. Else returns kUnauthenticated, which names the holder by the certificate's own words, its
// serial and its issuer.
absl::Status CheckIssued(std::string_view chain_pem, std::string_view ca_pem, absl::Time now);

// Returns OK if the chain leads to one of the CAs, and all of it is valid at `now`. For a peer
// whose handshake has checked the same with the CAs of its time, and the usages. Else returns
// kUnauthenticated, which says why not and what to do. `name` says whose certificate it is.
absl::Status CheckLeadsToCa(std::string_view chain_pem, std::string_view ca_pem, absl::Time now,
                            const std::string& name);

}  // namespace shoal
