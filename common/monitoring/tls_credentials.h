#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

// GnuTLS's, which its header names gnutls_session_t and gnutls_certificate_credentials_t.
struct gnutls_session_int;
struct gnutls_certificate_credentials_st;

namespace shoal {

// PEM texts for a server.
struct TlsPem {
  std::string certificate;  // the leaf first, then those between it and the CA
  std::string key;
  std::string ca;  // one or more; empty: clients are not asked for a certificate
};

// The certificates of a TLS server that asks its clients for one, but accepts those without.
// Immutable and thread-safe. Must outlive the sessions that use it.
class TlsCredentials {
 public:
  // An error names the text that is not valid, or says that key and certificate do not match.
  static absl::StatusOr<std::shared_ptr<const TlsCredentials>> Make(const TlsPem& pem);
  ~TlsCredentials();
  TlsCredentials(const TlsCredentials&) = delete;
  TlsCredentials& operator=(const TlsCredentials&) = delete;

  // The session uses these. Call it before the handshake.
  void Use(gnutls_session_int* session) const;

 private:
  TlsCredentials(gnutls_certificate_credentials_st* credentials, bool asks_clients)
      : credentials_(credentials), asks_clients_(asks_clients) {}

  gnutls_certificate_credentials_st* const credentials_;
  const bool asks_clients_;
};

// Returns the certificate of the session's client as DER; empty if the client shows none. An error
// if the CA of the session's credentials does not verify it as that of a client, now. Call it after
// the handshake, which has proved that the client has the key.
absl::StatusOr<std::string> ClientCertificate(gnutls_session_int* session);

}  // namespace shoal
